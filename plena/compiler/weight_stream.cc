#include "plena/compiler/weight_stream.h"

#include <algorithm>
#include <numeric>

namespace plena {

namespace {

constexpr std::size_t kEncodeChunk = 1 << 16;  // values quantised at a time

// The rows of W that one output tile holds, gained and centred.
class OutputTile {
 public:
  OutputTile(const PackedProduct& product, std::uint32_t mlen)
      : matrix_(product.matrix),
        outputs_of_all_(product.outputs),
        mlen_(mlen),
        columns_(product.matrix.weight.columns()),
        rows_(std::size_t{mlen} * columns_),
        row_(mlen) {}

  /// Reads what lies one after the other at once.
  void read(std::size_t tile) {
    outputs_ = std::span(outputs_of_all_).subspan(tile * mlen_, mlen_);
    for (std::size_t j = 0; j < mlen_;) {
      if (!is_row(outputs_[j])) {
        ++j;
        continue;
      }
      std::size_t run = 1;
      while (j + run < mlen_ && outputs_[j + run] == outputs_[j] + run && is_row(outputs_[j + run]))
        ++run;
      matrix_.weight.read_rows(outputs_[j], std::span(rows_).subspan(j * columns_, run * columns_));
      j += run;
    }
  }

  /// W[output j][inputs].
  std::span<const float> row(std::size_t j, std::span<const std::uint32_t> inputs) {
    std::ranges::fill(row_, 0.0F);
    if (!is_row(outputs_[j])) return row_;
    const float* const w = rows_.data() + j * columns_;
    for (std::size_t k = 0; k < mlen_; ++k) {
      if (inputs[k] >= columns_) continue;
      const float centre = matrix_.centre.empty() ? 0.0F : matrix_.centre[inputs[k]];
      row_[k] = gain(inputs[k]) * (w[inputs[k]] - centre);
    }
    return row_;
  }

 private:
  [[nodiscard]] bool is_row(std::uint32_t output) const { return output < matrix_.weight.rows(); }
  [[nodiscard]] float gain(std::uint32_t input) const {
    return matrix_.factor * (matrix_.input_gain ? (*matrix_.input_gain)[input] : 1.0F);
  }

  const Matrix& matrix_;
  const LaneMap& outputs_of_all_;
  std::size_t mlen_;
  std::size_t columns_;
  std::vector<float> rows_;  // [mlen, columns]
  std::vector<float> row_;   // [mlen]
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
