#include "plena/compiler/weight_stream.h"

#include <algorithm>
#include <numeric>

namespace plena {

namespace {

constexpr std::size_t kEncodeChunk = 1 << 16;  // values quantised at a time

// The rows of W that one output tile holds: centred, turned and gained.
class OutputTile {
 public:
  OutputTile(const PackedProduct& product, std::uint32_t mlen)
      : matrix_(product.matrix),
        outputs_of_all_(product.outputs),
        mlen_(mlen),
        columns_(product.matrix.weight.columns()),
        gains_(columns_, product.matrix.factor),
        rows_(std::size_t{mlen} * columns_),
        row_(mlen) {
    if (!matrix_.input_gain) return;
    for (std::size_t i = 0; i < columns_; ++i) gains_[i] *= (*matrix_.input_gain)[i];
  }

  void read(std::size_t tile) {
    outputs_ = std::span(outputs_of_all_).subspan(tile * mlen_, mlen_);
    if (matrix_.output_turn) {
      read_turned_blocks();
    } else {
      read_runs();
    }
    for (std::size_t j = 0; j < mlen_; ++j) {
      if (is_row(outputs_[j])) prepare(std::span(rows_).subspan(j * columns_, columns_));
    }
  }

  /// W[output j][inputs].
  std::span<const float> row(std::size_t j, std::span<const std::uint32_t> inputs) {
    std::ranges::fill(row_, 0.0F);
    if (!is_row(outputs_[j])) return row_;
    const float* const w = rows_.data() + j * columns_;
    for (std::size_t k = 0; k < mlen_; ++k) {
      if (inputs[k] < columns_) row_[k] = w[inputs[k]];
    }
    return row_;
  }

 private:
  [[nodiscard]] bool is_row(std::uint32_t output) const { return output < matrix_.weight.rows(); }

  // Reads what lies one after the other at once.
  void read_runs() {
    for (std::size_t j = 0; j < mlen_;) {
      if (!is_row(outputs_[j])) {
        ++j;
        continue;
      }
      std::size_t run = 1;
      while (j + run < mlen_ && outputs_[j + run] == outputs_[j] + run && is_row(outputs_[j + run]))
        ++run;
      read_centred(outputs_[j], std::span(rows_).subspan(j * columns_, run * columns_));
      j += run;
    }
  }

  // A turned row is a sum of all rows of its block. Lanes mostly take a block in order.
  void read_turned_blocks() {
    const std::uint32_t rows = matrix_.output_turn.block;
    std::vector<float> block(rows * columns_);
    std::uint32_t in_hand = kPadding;
    for (std::size_t j = 0; j < mlen_; ++j) {
      if (!is_row(outputs_[j])) continue;
      const std::uint32_t first = outputs_[j] / rows * rows;
      if (first != in_hand) {
        read_centred(first, block);
        matrix_.output_turn.turn_columns(block, columns_);
        in_hand = first;
      }
      const auto row = std::span(block).subspan((outputs_[j] - first) * columns_, columns_);
      std::ranges::copy(row, rows_.begin() + static_cast<std::ptrdiff_t>(j * columns_));
    }
  }

  void read_centred(std::uint32_t first, std::span<float> rows) const {
    matrix_.weight.read_rows(first, rows);
    if (matrix_.centre.empty()) return;
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] -= matrix_.centre[i % columns_];
  }

  void prepare(std::span<float> row) const {
    for (std::size_t i = 0; i < columns_; ++i) row[i] *= gains_[i];
    matrix_.input_turn.turn(row);
  }

  const Matrix& matrix_;
  const LaneMap& outputs_of_all_;
  std::size_t mlen_;
  std::size_t columns_;
  std::vector<float> gains_;  // [columns]
  std::vector<float> rows_;   // [mlen, columns]
  std::vector<float> row_;    // [mlen]
  std::span<const std::uint32_t> outputs_;
};

}  // namespace

std::size_t whole_unit(DataType type) {
  const std::size_t bytes = 8 / std::gcd(std::size_t{8}, std::size_t{type.width()});
  return std::lcm(bytes, std::size_t{type.is_mx() ? type.block : 1});
}

Quantiser::Quantiser(DataType type, ScaleRule rule)
    : codec_(type, kFp32), rule_(rule), unit_(whole_unit(type)) {}

void Quantiser::append(std::span<const float> values) {
  count_ += values.size();
  pending_.insert(pending_.end(), values.begin(), values.end());
  if (pending_.size() >= kEncodeChunk) encode_pending(pending_.size() / unit_ * unit_);
}

QuantisedTensor Quantiser::finish() && {
  pending_.resize((pending_.size() + unit_ - 1) / unit_ * unit_, 0.0F);
  encode_pending(pending_.size());
  return std::move(tensor_);
}

void Quantiser::encode_pending(std::size_t n) {
  if (n == 0) return;
  const DataType type = codec_.hbm_type();
  const std::size_t element_bytes = n * type.width() / 8;
  const std::size_t scale_bytes = type.is_mx() ? n / type.block : 0;
  tensor_.elements.resize(tensor_.elements.size() + element_bytes);
  tensor_.scales.resize(tensor_.scales.size() + scale_bytes);
  std::uint8_t* elements = tensor_.elements.data() + tensor_.elements.size() - element_bytes;
  std::uint8_t* scales = tensor_.scales.data() + tensor_.scales.size() - scale_bytes;
  if (rule_ == ScaleRule::LeastError && type.is_mx()) {
    encode_with_least_error(type, pending_.data(), n, elements, scales);
  } else {
    codec_.encode(pending_.data(), n, elements, scales);
  }
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(n));
}

void append_tiles(Quantiser& stream, const PackedProduct& product, std::uint32_t mlen,
                  std::size_t first, std::size_t count) {
  OutputTile tile(product, mlen);
  for (std::size_t n = first; n < first + count; ++n) {
    tile.read(n);
    for (std::size_t i = 0; i < product.inputs.size(); i += mlen) {
      const auto inputs = std::span(product.inputs).subspan(i, mlen);
      for (std::size_t j = 0; j < mlen; ++j) stream.append(tile.row(j, inputs));
    }
  }
}

void append_tiles(Quantiser& stream, const PackedProduct& product, std::uint32_t mlen) {
  append_tiles(stream, product, mlen, 0, product.outputs.size() / mlen);
}

}  // namespace plena
