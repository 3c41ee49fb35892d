#include "plena/compiler/weight_stream.h"

#include <algorithm>
#include <numeric>

namespace plena {

namespace {

constexpr std::size_t kEncodeChunk = 1 << 16;  // values quantised at a time

// Elements that make whole blocks and whole bytes of a type.
std::size_t whole_unit(DataType type) {
  const std::size_t bytes = 8 / std::gcd(std::size_t{8}, std::size_t{type.width()});
  return std::lcm(bytes, std::size_t{type.is_mx() ? type.block : 1});
}

}  // namespace

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
  std::vector<float> row(mlen);
  for (std::size_t n = first; n < first + count; ++n) {
    const auto outputs = std::span(product.outputs).subspan(n * mlen, mlen);
    for (const std::uint32_t input : product.inputs) {
      std::ranges::fill(row, 0.0F);
      if (input != kPadding) {
        const float gain =
            product.factor * (product.input_gain.empty() ? 1.0F : product.input_gain[input]);
        for (std::size_t j = 0; j < mlen; ++j) {
          if (outputs[j] == kPadding) continue;
          row[j] = gain * product.weights[outputs[j] * product.columns + input];
        }
      }
      stream.append(row);
    }
  }
}

void append_tiles(Quantiser& stream, const PackedProduct& product, std::uint32_t mlen) {
  append_tiles(stream, product, mlen, 0, product.outputs.size() / mlen);
}

}  // namespace plena
