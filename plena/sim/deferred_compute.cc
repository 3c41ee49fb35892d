// What deferred products come to: groups of chains into Vector SRAM, by any thread.
#include <algorithm>

#include "plena/numerics/scratch.h"
#include "plena/sim/deferred_products.h"
#include "plena/sim/prepared.h"

namespace plena {

namespace {

struct SumsScratch {};
struct SumRowsScratch {};
struct ActivationScratch {};
struct DecodedTileScratch {};
struct PackedScratch {};

}  // namespace

// A chain that was not written out yet stays in the array.
void DeferredProducts::fold_chain() {
  const bool row = kind_ == Kind::Row;
  for (std::size_t i = first_term_; i < terms_.size(); ++i) {
    if (row) {
      multiply(terms_[i], 0, 1, program_.mlen, machine_.array.row.data());
    } else {
      multiply(terms_[i], terms_[i].column, program_.blen, program_.blen,
               machine_.array.block.data());
    }
  }
  kind_ = Kind::None;
}

void DeferredProducts::compute(const Part& part) const {
  const Group& first = groups_[part.first_group];
  if (first.on_matrix_unit) return compute_on_matrix_unit(first, part);
  for (std::size_t i = 0; i < part.groups; ++i) compute(groups_[part.first_group + i]);
}

void DeferredProducts::compute(const Group& group) const {
  const std::size_t sums = std::size_t{group.rows} * group.columns;
  auto* out = static_cast<float*>(thread_scratch<SumsScratch>(sums * sizeof(float)));
  std::fill_n(out, sums, 0.0F);
  for (std::size_t i = group.first_term; i < group.first_term + group.terms; ++i)
    multiply(terms_[i], terms_[i].column, group.rows, group.columns, out);
  for (std::size_t r = 0; r < group.rows; ++r)
    program_.vector->from_f32(out + r * group.columns, group.out + r * group.out_pitch,
                              group.columns);
}

// `rows` windows of a term as f32.
DeferredProducts::Activations DeferredProducts::activations(const Term& term,
                                                            std::size_t rows) const {
  const auto& p = program_;
  const std::uint8_t* lanes = machine_.vram.data() + term.rows * p.vector_bytes;
  if (p.vector_format == kFp32) return {reinterpret_cast<const float*>(lanes), p.vlen};
  auto* values =
      static_cast<float*>(thread_scratch<ActivationScratch>(rows * p.mlen * sizeof(float)));
  for (std::size_t r = 0; r < rows; ++r)
    p.vector->to_f32(lanes + r * p.vlen * p.vector_bytes, values + r * p.mlen, p.mlen);
  return {values, p.mlen};
}

// Rows `begin` to `end` of a tile of bytes, in the Matrix SRAM format: row `begin` first.
const std::uint8_t* DeferredProducts::decoded_rows(const TileWeights& weights, std::size_t begin,
                                                   std::size_t end) const {
  const std::size_t row_bytes = program_.mlen * program_.matrix_bytes;
  auto* tile =
      static_cast<std::uint8_t*>(thread_scratch<DecodedTileScratch>(row_bytes * (end - begin)));
  const StreamedRows& bytes = weights.bytes;
  const DataType& type = weights.codec->hbm_type();
  const std::size_t bits = bytes.element_pitch * 8;
  if (bits == program_.mlen * type.width() &&
      (!type.is_mx() || bytes.scale_pitch * type.block == program_.mlen)) {
    // Row after row without a gap.
    weights.codec->decode(bytes.elements + begin * bytes.element_pitch,
                          bytes.scales + begin * bytes.scale_pitch, 0,
                          (end - begin) * program_.mlen, tile);
    return tile;
  }
  for (std::size_t row = begin; row < end; ++row) {
    weights.codec->decode(weights.bytes.elements + row * weights.bytes.element_pitch,
                          weights.bytes.scales + row * weights.bytes.scale_pitch, 0, program_.mlen,
                          tile + (row - begin) * row_bytes);
  }
  return tile;
}

// out[rows][columns] += the term's rows times its columns from `column` on.
void DeferredProducts::multiply(const Term& term, std::uint32_t column, std::size_t rows,
                                std::size_t columns, float* out) const {
  const auto& p = program_;
  const TileWeights& weights = term.weights;
  const bool bytes = weights.columns == nullptr && weights.rows == nullptr;
  if (bytes && !term.transposed) return multiply_bytes(term, columns, out);
  const Activations a = activations(term, rows);
  const ProductShape shape{rows, columns, p.mlen, p.blen, weights.finite};
  if (weights.columns != nullptr) {
    return p.matrix->product(shape, a.values, a.stride, weights.columns + column * p.matrix_bytes,
                             p.mlen, out, columns);
  }
  const std::uint8_t* tile_rows = bytes ? decoded_rows(weights, column, column + columns)
                                        : weights.rows + column * p.mlen * p.matrix_bytes;
  p.matrix->product_transposed(shape, a.values, a.stride, tile_rows, p.mlen, out, columns);
}

// The same for the one row and all columns of M_TMV: the bytes as they lie, and the tile's rows
// that cannot be taken so decoded.
void DeferredProducts::multiply_bytes(const Term& term, std::size_t columns, float* out) const {
  const auto& p = program_;
  const std::size_t done =
      p.streamed_weights.product(term.prepared_rows, p.mlen, term.weights.bytes, columns, out);
  if (done == columns) [[likely]]
    return;
  const ProductShape rest{1, columns - done, p.mlen, p.blen};
  const Activations a = activations(term, 1);
  p.matrix->product_transposed(rest, a.values, a.stride, decoded_rows(term.weights, done, columns),
                               p.mlen, out + done, p.mlen);
}

// ------------------------------------------------------------ the matrix unit

// Columns `begin` to `end` of the factor.
const void* DeferredProducts::pack_weights(const Term& term, std::size_t begin,
                                           std::size_t end) const {
  const std::size_t side = program_.mlen;
  const std::uint8_t* rows = term.weights.rows != nullptr
                                 ? term.weights.rows + begin * side * program_.matrix_bytes
                                 : decoded_rows(term.weights, begin, end);
  void* packed = thread_scratch<PackedScratch>(MatrixUnit::packed_bytes(end - begin, side));
  program_.matrix_unit->pack_weights(rows, end - begin, side, packed);
  return packed;
}

// Columns of a group. Sums are [column][row] until all terms are in them.
void DeferredProducts::compute_on_matrix_unit(const Group& group, const Part& part) const {
  const std::size_t side = program_.mlen;
  const std::size_t begin = part.first_column, columns = part.columns;
  const std::size_t tile_bytes = side * side * sizeof(float);
  auto* sums = static_cast<float*>(thread_scratch<SumsScratch>(tile_bytes));
  auto* rows = static_cast<float*>(thread_scratch<SumRowsScratch>(tile_bytes));
  const std::size_t panels = (group.rows + MatrixUnit::kPanel - 1) / MatrixUnit::kPanel;
  std::fill_n(sums, columns * side, 0.0F);
  for (std::size_t i = group.first_term; i < group.first_term + group.terms; ++i) {
    const Term& term = terms_[i];
    if (program_.matrix_unit->product(term.prepared_rows, panels * MatrixUnit::kPanel,
                                      pack_weights(term, begin, begin + columns), columns, side,
                                      sums, side))
      continue;
    // To −0 a product adds as it is.
    std::fill_n(rows, group.rows * columns, -0.0F);
    multiply(term, static_cast<std::uint32_t>(begin), group.rows, columns, rows);
    for (std::size_t r = 0; r < group.rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) sums[c * side + r] += rows[r * columns + c];
    }
  }
  matrix_kernels(kFp32, program_.simd).transpose(sums, rows, side);
  for (std::size_t r = 0; r < group.rows; ++r) {
    program_.vector->from_f32(
        rows + r * side, group.out + r * group.out_pitch + begin * program_.vector_bytes, columns);
  }
}

}  // namespace plena
