#include "plena/model/weight_reader.h"

#include <array>
#include <cmath>
#include <functional>
#include <span>

#include <fmt/ranges.h>

namespace plena {

bool WeightReader::has(const std::string& name) const {
  return table_ != nullptr && table_->contains(name);
}

void WeightReader::reject(ErrorCode code, std::string message, std::string hint) {
  if (!error_) error_ = Error{code, std::move(message), {}, std::move(hint)};
}

Status WeightReader::status() const {
  if (error_) return tl::unexpected(*error_);
  return {};
}

const StoredTensor* WeightReader::find(const std::string& name,
                                       std::span<const std::uint64_t> shape) {
  const auto at = table_->find(name);
  if (at == table_->end()) {
    reject(ErrorCode::Format, fmt::format("{} holds no tensor {}", name_, name),
           "is a part of the model missing, or is config.json of another one?");
    return nullptr;
  }
  const StoredTensor& stored = at->second;
  if (!std::equal(stored.shape.begin(), stored.shape.end(), shape.begin(), shape.end())) {
    reject(ErrorCode::Format,
           fmt::format("{}: {} has the shape [{}]", name_, name, fmt::join(stored.shape, ", ")),
           fmt::format("the model's sizes ask for [{}]", fmt::join(shape, ", ")));
    return nullptr;
  }
  return &stored;
}

Tensor WeightReader::tensor(const std::string& name, std::initializer_list<std::uint64_t> shape) {
  const std::vector<std::uint64_t> sizes(shape);
  const std::uint64_t columns = sizes.back();
  std::uint64_t rows = 1;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) rows *= sizes[i];
  if (table_ == nullptr) {
    const auto deviation = 1 / std::sqrt(static_cast<float>(columns));
    return Tensor::normal(seed_ ^ std::hash<std::string>{}(name), deviation, rows, columns);
  }
  const StoredTensor* stored = find(name, sizes);
  if (stored == nullptr) return {};
  if (!stored->type) {
    reject(ErrorCode::Unsupported,
           fmt::format("{}: {} is stored as {}", name_, name, stored->dtype),
           "weights are F32, F16, BF16, or one of the GGUF types docs/models.md lists");
    return {};
  }
  return Tensor::stored(*stored->type, stored->bytes, rows, columns);
}

Norm WeightReader::norm(const std::string& prefix, std::uint64_t size) {
  if (table_ == nullptr) return {Tensor::normal(seed_, 0, 1, size).plus(1), {}};
  Norm norm{tensor(prefix + ".weight", {size}), {}};
  if (has(prefix + ".bias")) norm.bias = tensor(prefix + ".bias", {size});
  return norm;
}

Linear WeightReader::linear(const std::string& prefix, std::uint64_t out, std::uint64_t in,
                            bool with_bias) {
  Linear linear{tensor(prefix + ".weight", {out, in}), {}};
  if (with_bias) linear.bias = tensor(prefix + ".bias", {out});
  return linear;
}

Tensor WeightReader::mxfp4(const std::string& prefix, std::uint64_t experts, std::uint64_t rows,
                           std::uint64_t columns) {
  constexpr std::uint64_t kBlock = 32;
  const std::uint64_t blocks = columns / kBlock;
  const std::array<std::uint64_t, 4> block_shape{experts, rows, blocks, kBlock / 2};
  const std::array<std::uint64_t, 3> scale_shape{experts, rows, blocks};
  const StoredTensor* elements = find(prefix + "_blocks", block_shape);
  const StoredTensor* scales = find(prefix + "_scales", scale_shape);
  if (elements == nullptr || scales == nullptr) return {};
  if (columns % kBlock != 0 || elements->dtype != "U8" || scales->dtype != "U8") {
    reject(ErrorCode::Format, fmt::format("{}: {} is no MXFP4 tensor", name_, prefix),
           "its blocks and scales are U8, and its columns a multiple of 32");
    return {};
  }
  return Tensor::mxfp4(elements->bytes, scales->bytes, experts * rows, columns);
}

}  // namespace plena
