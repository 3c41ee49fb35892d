// Matrix instructions: products into the array and its write-outs (semantics 6.1 to 6.6).
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "plena/numerics/scratch.h"
#include "plena/sim/prepared.h"

namespace plena {

namespace {

// ------------------------------------------------------------ operands
//
// Inlined everywhere: a product that was computed ahead takes little more than its checks.

[[gnu::always_inline]] inline void require_tile(Execution& x, std::uint64_t address,
                                                const char* operand) {
  const std::uint64_t start = address - x.program.tile_divisor.modulo(address);
  x.require(start + x.program.tile_elements <= x.program.mram_elements,
            TrapCause::AddressOutOfRange, [&] {
              return std::pair(
                  fmt::format("{} = {}", operand, address),
                  fmt::format("Matrix SRAM holds {} tile(s) of {} elements (semantics 1)",
                              x.program.mram_elements / x.program.tile_elements,
                              x.program.tile_elements));
            });
}

// Address tile + c with c a multiple of `multiple` below MLEN; returns c.
[[gnu::always_inline]] inline std::uint64_t column_offset(Execution& x, std::uint64_t address,
                                                          const Divisor& multiple,
                                                          const char* multiple_name,
                                                          const char* operand) {
  const std::uint64_t column = x.program.tile_divisor.modulo(address);
  x.require(column < x.program.mlen && multiple.divides(column), TrapCause::MisalignedAddress, [&] {
    return std::pair(
        fmt::format("{} = {}, offset {} in its tile", operand, address, column),
        fmt::format("a column offset is a multiple of {} below MLEN = {} (semantics 6.1, 6.4)",
                    multiple_name, x.program.mlen));
  });
  require_tile(x, address, operand);
  return column;
}

// Address tile + r·MLEN with r a multiple of `multiple`; returns r.
[[gnu::always_inline]] inline std::uint64_t row_offset(Execution& x, std::uint64_t address,
                                                       const Divisor& multiple,
                                                       const char* multiple_name,
                                                       const char* operand) {
  const std::uint64_t offset = x.program.tile_divisor.modulo(address);
  const std::uint64_t row = x.program.mlen_divisor.quotient(offset);
  x.require(
      x.program.mlen_divisor.divides(offset) && multiple.divides(row), TrapCause::MisalignedAddress,
      [&] {
        return std::pair(
            fmt::format("{} = {}, offset {} in its tile", operand, address, offset),
            fmt::format("a row offset is a multiple of {} rows of MLEN = {} (semantics 6.2, 6.3)",
                        multiple_name, x.program.mlen));
      });
  require_tile(x, address, operand);
  return row;
}

// `rows` windows of MLEN lanes as f32 [rows][stride]; fp32 rows are used where they lie.
struct Activations {
  const float* values;
  std::size_t stride;
};
Activations load_activations(Execution& x, std::uint64_t address, std::uint64_t rows) {
  if (x.program.vector_format == kFp32) {
    return {reinterpret_cast<const float*>(x.vram(address)), x.program.vlen};
  }
  const std::size_t mlen = x.program.mlen;
  const std::uint8_t* from = x.vram(address);  // what was noted is in the array and there now
  if (x.activation_rows.hold(address, rows)) return {x.activations.data(), mlen};
  if (x.activations.size() < rows * mlen) x.activations.resize(rows * mlen);
  const std::size_t pitch = x.program.vlen * x.program.vector_bytes;
  for (std::uint64_t r = 0; r < rows; ++r) {
    x.program.vector->to_f32(from + r * pitch, x.activations.data() + r * mlen, mlen);
  }
  if (x.reuses) x.activation_rows.loaded(address, rows, (rows - 1) * x.program.vlen + mlen);
  return {x.activations.data(), mlen};
}

// Columns a thread takes at a time of a product that several share.
constexpr std::size_t kSharedColumns = 128;

// MatrixKernels::product of rows MLEN apart, by all workers where it is large.
void product(const Execution& x, const ProductShape& shape, const Activations& a,
             const std::uint8_t* weights, float* out, std::size_t out_stride) {
  const auto& p = x.program;
  if (x.workers == nullptr)
    return p.matrix->product(shape, a.values, a.stride, weights, p.mlen, out, out_stride);
  x.workers->split(shape.columns, kSharedColumns, shape.rows * shape.n,
                   [&](std::size_t first, std::size_t count) {
                     ProductShape part = shape;
                     part.columns = count;
                     p.matrix->product(part, a.values, a.stride, weights + first * p.matrix_bytes,
                                       p.mlen, out + first, out_stride);
                   });
}

// The same for MatrixKernels::product_transposed.
void product_transposed(const Execution& x, const ProductShape& shape, const Activations& a,
                        const std::uint8_t* weights, float* out, std::size_t out_stride) {
  const auto& p = x.program;
  if (x.workers == nullptr)
    return p.matrix->product_transposed(shape, a.values, a.stride, weights, p.mlen, out,
                                        out_stride);
  x.workers->split(shape.columns, kSharedColumns, shape.rows * shape.n,
                   [&](std::size_t first, std::size_t count) {
                     ProductShape part = shape;
                     part.columns = count;
                     p.matrix->product_transposed(part, a.values, a.stride,
                                                  weights + first * p.mlen * p.matrix_bytes, p.mlen,
                                                  out + first, out_stride);
                   });
}

// out += a times the part of a tile that starts at `address`, or times the transpose of it.
template <bool kTransposed>
void multiply(Execution& x, const ProductShape& shape, const float* a, std::size_t a_stride,
              std::uint64_t address, float* out, std::size_t out_stride) {
  const auto& p = x.program;
  if constexpr (kTransposed) {
    if (const std::uint8_t* columns = x.mram_columns(address)) {
      // Element (r, c) of the tile is (c, r) there.
      const std::uint64_t offset = p.tile_divisor.modulo(address);
      const std::uint64_t r = p.mlen_divisor.quotient(offset), c = p.mlen_divisor.modulo(offset);
      product(x, shape, {a, a_stride}, columns + (c * p.mlen + r) * p.matrix_bytes, out,
              out_stride);
      return;
    }
    product_transposed(x, shape, {a, a_stride}, x.mram(address), out, out_stride);
  } else {
    product(x, shape, {a, a_stride}, x.mram(address), out, out_stride);
  }
}

// ------------------------------------------------------------ the array

[[gnu::always_inline]] inline void require_shape(Execution& x, ArrayShape shape) {
  const ArrayShape held = x.machine.array.shape;
  x.require(held == ArrayShape::Clear || held == shape, TrapCause::ArrayShape, [&] {
    return std::pair(fmt::format("the array holds {}", array_shape_name(held)),
                     fmt::format("this instruction needs {} or a clear array (semantics 3)",
                                 array_shape_name(shape)));
  });
}

// The accumulators of a head-shaped array come to life at the first M_BMM; they are large.
std::vector<float>& head_accumulators(Execution& x) {
  auto& heads = x.machine.array.heads;
  if (heads.empty()) heads.assign(x.program.heads * x.program.tile_elements, 0.0F);
  return heads;
}

// Writes one row of accumulators, rounded to the Vector SRAM type, and clears them (semantics 4.7).
void write_out_row(Execution& x, std::uint64_t address, float* accumulators, std::size_t n) {
  x.program.vector->from_f32(accumulators, x.writable_vram(address, n), n);
  std::fill_n(accumulators, n, 0.0F);
}

// The same for BLEN rows, `pitch` elements apart. Small blocks are rounded as a whole.
void write_out_block(Execution& x, std::uint64_t address, std::uint64_t pitch) {
  const auto& p = x.program;
  float* block = x.machine.array.block.data();
  const std::size_t sums = std::size_t{p.blen} * p.blen;
  if (sums > p.vlen) {
    for (std::uint64_t r = 0; r < p.blen; ++r)
      write_out_row(x, address + r * pitch, block + r * p.blen, p.blen);
    return;
  }
  if (x.deferred.any()) x.deferred.finish();  // it may be what fills the block
  const std::size_t row_bytes = p.blen * p.vector_bytes;
  p.vector->from_f32(block, x.row_bytes.data(), sums);
  for (std::uint64_t r = 0; r < p.blen; ++r) {
    std::memcpy(x.writable_vram(address + r * pitch, p.blen), x.row_bytes.data() + r * row_bytes,
                row_bytes);
  }
  std::fill_n(block, sums, 0.0F);
}

// gp + imm and gp + gp do not wrap (semantics 6.14).
std::uint64_t write_out_address(const Execution& x, const Prepared& i) {
  return std::uint64_t{x.gp(i.rd)} + i.imm;
}

// ------------------------------------------------------------ M_MM, M_TMM

// The products of column blocks of a tile, to where a sweep keeps them.
template <bool kTransposed>
void multiply_ahead(Execution& x, ColumnSweeps::Sweep& sweep, ColumnSweeps::Blocks blocks) {
  const auto& p = x.program;
  const std::uint64_t tile = sweep.key.place * p.tile_elements;
  const Activations a = load_activations(x, sweep.key.rows, p.blen);
  const std::size_t columns = (blocks.end - blocks.begin) * p.blen;
  const ProductShape shape{p.blen, columns, p.mlen, p.blen, x.mram_is_finite(tile)};
  const std::uint8_t* weights = kTransposed ? x.mram_columns(tile) : x.mram(tile);
  if (weights == nullptr) weights = x.turned.columns(sweep.key.place, x.mram(tile));
  product(x, shape, a, weights + blocks.begin * p.blen * p.matrix_bytes,
          x.sweeps.begin_computing(sweep, blocks), p.mlen);
}

// The column block at `matrix_address` into the accumulators: by itself, or out of a product of
// all.
template <bool kTransposed>
void multiply_column_block(Execution& x, std::uint64_t vector_address,
                           std::uint64_t matrix_address) {
  const auto& p = x.program;
  float* accumulators = x.machine.array.block.data();
  if (x.sweeps_ahead) {
    const std::uint64_t place = p.tile_divisor.quotient(matrix_address);
    const std::uint64_t offset = p.tile_divisor.modulo(matrix_address);
    const std::uint64_t column = kTransposed ? p.mlen_divisor.quotient(offset) : offset;
    const std::size_t block = p.blen_divisor.quotient(column);
    ColumnSweeps::Sweep& sweep = x.sweeps.at({vector_address, place, kTransposed}, block);
    if (!sweep.computed()) {
      const ColumnSweeps::Blocks blocks = x.sweeps.worth_computing(sweep, block);
      if (blocks.begin != blocks.end) multiply_ahead<kTransposed>(x, sweep, blocks);
    }
    if (sweep.computed()) return x.sweeps.add(sweep, block, accumulators);
  }
  const Activations a = load_activations(x, vector_address, p.blen);
  const ProductShape shape{p.blen, p.blen, p.mlen, p.blen};
  multiply<kTransposed>(x, shape, a.values, a.stride, matrix_address, accumulators, p.blen);
}

// The tile at a place as a factor of [k][c].
template <bool kTransposed>
TileWeights tile_weights(Execution& x, std::uint64_t place) {
  const std::uint64_t tile = place * x.program.tile_elements;
  TileWeights weights{.columns = kTransposed ? x.mram_columns(tile) : x.mram(tile),
                      .finite = x.mram_is_finite(tile),
                      .in_place = x.shown.cached(place) == nullptr};
  if (weights.columns == nullptr) {
    weights.columns = x.turned.columns(place, x.mram(tile));
    weights.in_place = true;
  }
  return weights;
}

// The tile at a place as the matrix unit has it packed: not transposed, and not even decoded.
TileWeights tile_rows(Execution& x, std::uint64_t place) {
  const std::uint64_t tile = place * x.program.tile_elements;
  TileWeights weights{.finite = x.mram_is_finite(tile)};
  if (const StreamedTile* bytes = x.shown.streamed(place)) {
    weights.codec = bytes->codec;
    weights.bytes = bytes->rows;
    return weights;
  }
  weights.rows = x.mram(tile);
  weights.in_place = x.shown.cached(place) == nullptr;
  return weights;
}

// Whether the product was noted, for the array to hold when somebody looks.
template <bool kTransposed>
bool defer_block(Execution& x, std::uint64_t vector_address, std::uint64_t matrix_address) {
  const auto& p = x.program;
  const std::uint64_t offset = p.tile_divisor.modulo(matrix_address);
  const std::uint64_t column = kTransposed ? p.mlen_divisor.quotient(offset) : offset;
  const BlockProduct product{vector_address, p.tile_divisor.quotient(matrix_address),
                             static_cast<std::uint32_t>(column), kTransposed};
  const bool clear = x.machine.array.shape == ArrayShape::Clear;
  if (!x.deferred.takes_block(product, clear)) return false;
  x.deferred.add_block(product, kTransposed && p.matrix_unit != nullptr
                                    ? tile_rows(x, product.place)
                                    : tile_weights<kTransposed>(x, product.place));
  return true;
}

template <bool kTransposed>
bool block_product(Execution& x, const Prepared& i) {
  const auto& p = x.program;
  const std::uint32_t vector_address = x.gp(kTransposed ? i.rs1 : i.rs2);
  const std::uint32_t matrix_address = x.gp(kTransposed ? i.rs2 : i.rs1);
  if (x.deferred.goes_on(vector_address, matrix_address, kTransposed)) {
    x.machine.array.shape = ArrayShape::Block;
    return true;
  }
  x.require_windows(vector_address, p.blen, kTransposed ? "gp<rs1>" : "gp<rs2>");
  if constexpr (kTransposed) {
    row_offset(x, matrix_address, p.blen_divisor, "BLEN", "gp<rs2>");
  } else {
    column_offset(x, matrix_address, p.blen_divisor, "BLEN", "gp<rs1>");
  }
  require_shape(x, ArrayShape::Block);
  if (x.faulted) return false;

  if (!x.defers || !defer_block<kTransposed>(x, vector_address, matrix_address))
    multiply_column_block<kTransposed>(x, vector_address, matrix_address);
  x.machine.array.shape = ArrayShape::Block;
  return true;
}

// The middle operand is the row stride of the destination when `wostride` is on (semantics 8).
bool block_write_out(Execution& x, const Prepared& i) {
  const auto& p = x.program;
  const std::uint64_t address = write_out_address(x, i);
  const std::uint64_t stride = i.rs1 == 0 ? 1 : x.gp(i.rs1);
  const std::uint64_t last = (p.blen - 1) * stride * p.vlen + p.blen;
  if (x.deferred.write_goes_on(address, stride)) {
    x.before_vram_write(address, last);
    x.machine.array.shape = ArrayShape::Clear;
    return true;
  }
  x.require(p.blen_divisor.divides(address), TrapCause::MisalignedAddress, [&] {
    return std::pair(
        fmt::format("gp<rd> + imm = {}", address),
        fmt::format("the write-out starts at a multiple of BLEN = {} lanes (semantics 6.6)",
                    p.blen));
  });
  x.require(address + last <= p.vram_elements, TrapCause::AddressOutOfRange, [&] {
    return std::pair(
        fmt::format("gp<rd> + imm = {}, {} rows, {} apart", address, p.blen, stride * p.vlen),
        fmt::format("Vector SRAM has {} elements (semantics 6.15)", p.vram_elements));
  });
  require_shape(x, ArrayShape::Block);
  if (x.faulted) return false;
  if (x.deferred.any() && x.deferred.write_out_block(address, stride)) {
    x.before_vram_write(address, last);
    x.machine.array.shape = ArrayShape::Clear;
    return true;
  }
  write_out_block(x, address, stride * p.vlen);
  x.machine.array.shape = ArrayShape::Clear;
  return true;
}

// ------------------------------------------------------------ M_MV, M_TMV

struct ArrangedScratch {};

// M_TMV of a tile whose bytes are in HBM; false where none of it was taken from there.
bool streamed_row_product(Execution& x, const float* a, std::uint64_t address, float* out) {
  const auto& p = x.program;
  const StreamedTile* tile = x.mram_bytes(address);
  if (tile == nullptr) return false;
  void* arranged = thread_scratch<ArrangedScratch>(StreamedProduct::prepared_bytes(p.mlen));
  p.streamed_weights.prepare(a, p.mlen, arranged);
  const std::size_t done = p.streamed_weights.product(arranged, p.mlen, tile->rows, p.mlen, out);
  if (done == p.mlen) return true;
  const ProductShape rest{1, p.mlen - done, p.mlen, p.blen};
  p.matrix->product_transposed(rest, a, p.mlen, x.mram(address + done * p.mlen), p.mlen, out + done,
                               p.mlen);
  return true;
}

// Whether an M_TMV was noted: chains of tiles that are not at hand decoded.
bool defer_row(Execution& x, std::uint64_t vector_address, std::uint64_t matrix_address) {
  if (!x.deferred.in_row_chain() && !x.shown.shows_bytes()) return false;
  if (!x.deferred.takes_row(vector_address, x.machine.array.shape == ArrayShape::Clear))
    return false;
  const std::uint64_t place = x.program.tile_divisor.quotient(matrix_address);
  TileWeights weights;
  if (const StreamedTile* tile = x.mram_bytes(matrix_address)) {
    weights.codec = tile->codec;
    weights.bytes = tile->rows;
  } else {
    weights = tile_weights<true>(x, place);
  }
  x.deferred.add_row(vector_address, place, weights);
  return true;
}

template <bool kTransposed>
bool row_product(Execution& x, const Prepared& i) {
  const auto& p = x.program;
  const std::uint64_t vector_address = x.gp(i.rs1), matrix_address = x.gp(i.rs2);
  x.require_windows(vector_address, 1, "gp<rs1>");
  x.require(p.tile_divisor.divides(matrix_address), TrapCause::MisalignedAddress, [&] {
    return std::pair(
        fmt::format("gp<rs2> = {}", matrix_address),
        fmt::format("the address of a whole tile is a multiple of MLEN^2 = {} (semantics 6.5)",
                    p.tile_elements));
  });
  require_tile(x, matrix_address, "gp<rs2>");
  require_shape(x, ArrayShape::Row);
  if (x.faulted) return false;

  if (kTransposed && x.defers && defer_row(x, vector_address, matrix_address)) {
    x.machine.array.shape = ArrayShape::Row;
    return true;
  }
  x.machine.array.shape = ArrayShape::Row;
  const Activations a = load_activations(x, vector_address, 1);
  float* out = x.machine.array.row.data();
  if (kTransposed && streamed_row_product(x, a.values, matrix_address, out)) return true;
  const ProductShape shape{1, p.mlen, p.mlen, p.blen, x.mram_is_finite(matrix_address)};
  multiply<kTransposed>(x, shape, a.values, a.stride, matrix_address, out, p.mlen);
  return true;
}

bool row_write_out(Execution& x, const Prepared& i) {
  const std::uint64_t address = write_out_address(x, i);
  x.require_windows(address, 1, "gp<rd> + imm");
  require_shape(x, ArrayShape::Row);
  if (x.faulted) return false;
  if (x.deferred.any() && x.deferred.write_out_row(address)) {
    x.before_vram_write(address, x.program.mlen);
    x.machine.array.shape = ArrayShape::Clear;
    return true;
  }
  write_out_row(x, address, x.machine.array.row.data(), x.program.mlen);
  x.machine.array.shape = ArrayShape::Clear;
  return true;
}

// ------------------------------------------------------------ M_BMM, M_BTMM, M_BMV, M_BTMV

// One product a head: HLEN lanes of each activation row times an HLEN-deep slice of the tile,
// out[h][row][j]. M_BMM takes HLEN rows of the tile, M_BTMM HLEN columns.
template <bool kTransposed>
bool head_products(Execution& x, std::uint64_t vector_address, std::uint64_t matrix_address,
                   std::size_t rows, ArrayShape array_shape) {
  const auto& p = x.program;
  x.require_windows(vector_address, rows, "gp<rs2>");
  if constexpr (kTransposed) {
    column_offset(x, matrix_address, p.hlen_divisor, "HLEN", "gp<rs1>");
  } else {
    row_offset(x, matrix_address, p.hlen_divisor, "HLEN", "gp<rs1>");
  }
  require_shape(x, array_shape);
  if (x.faulted) return false;

  const Activations a = load_activations(x, vector_address, rows);
  float* out = array_shape == ArrayShape::Heads ? head_accumulators(x).data()
                                                : x.machine.array.head_rows.data();
  const ProductShape shape{rows, p.mlen, p.hlen, p.blen};
  for (std::size_t head = 0; head < p.heads; ++head) {
    multiply<kTransposed>(x, shape, a.values + head * p.hlen, a.stride, matrix_address,
                          out + head * rows * p.mlen, p.mlen);
  }
  x.machine.array.shape = array_shape;
  return true;
}

template <bool kTransposed>
bool batched_product(Execution& x, const Prepared& i) {
  return head_products<kTransposed>(x, x.gp(i.rs2), x.gp(i.rs1), x.program.mlen, ArrayShape::Heads);
}

template <bool kTransposed>
bool batched_row_product(Execution& x, const Prepared& i) {
  const std::uint64_t matrix_address = std::uint64_t{x.gp(i.rs1)} + x.gp(i.rd);
  return head_products<kTransposed>(x, x.gp(i.rs2), matrix_address, 1, ArrayShape::HeadRows);
}

bool write_out_rows(Execution& x, const Prepared& i, std::size_t rows, ArrayShape shape) {
  const auto& p = x.program;
  const std::uint64_t address = write_out_address(x, i);
  x.require_windows(address, rows, "gp<rd> + imm");
  require_shape(x, shape);
  if (x.faulted) return false;
  float* accumulators =
      shape == ArrayShape::Heads ? head_accumulators(x).data() : x.machine.array.head_rows.data();
  for (std::size_t r = 0; r < rows; ++r) {
    write_out_row(x, address + r * p.vlen, accumulators + r * p.mlen, p.mlen);
  }
  x.machine.array.shape = ArrayShape::Clear;
  return true;
}

// Head-major: row i of head h goes to row h·MLEN + i (semantics 6.6, 6.16).
bool batched_write_out(Execution& x, const Prepared& i) {
  return write_out_rows(x, i, std::size_t{x.program.heads} * x.program.mlen, ArrayShape::Heads);
}
bool batched_row_write_out(Execution& x, const Prepared& i) {
  return write_out_rows(x, i, x.program.heads, ArrayShape::HeadRows);
}

}  // namespace

Handler matrix_handler(const Instruction& instruction, const Dialect& dialect) {
  if (Handler rs = rs_matrix_handler(instruction, dialect)) return rs;
  switch (instruction.op) {
    case Op::M_MM:
      return block_product<false>;
    case Op::M_TMM:
      return block_product<true>;
    case Op::M_MM_WO:
      return block_write_out;
    case Op::M_MV:
      return row_product<false>;
    case Op::M_TMV:
      return row_product<true>;
    case Op::M_MV_WO:
      return row_write_out;
    case Op::M_BMM:
      return batched_product<false>;
    case Op::M_BTMM:
      return batched_product<true>;
    case Op::M_BMM_WO:
      return batched_write_out;
    case Op::M_BMV:
      return batched_row_product<false>;
    case Op::M_BTMV:
      return batched_row_product<true>;
    case Op::M_BMV_WO:
      return batched_row_write_out;
    default:
      return nullptr;
  }
}

}  // namespace plena
