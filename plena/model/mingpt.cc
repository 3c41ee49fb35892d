#include "plena/model/mingpt.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/model/base64.h"

namespace plena {

namespace {

using nlohmann::json;

constexpr std::size_t kMostTensorDimensions = 8;

// The shape of a tensor whose elements take `bytes` bytes.
std::optional<std::vector<std::uint64_t>> read_shape(const json& list, std::uint64_t bytes) {
  if (!list.is_array() || list.size() > kMostTensorDimensions) return {};
  std::vector<std::uint64_t> shape;
  std::uint64_t expected = sizeof(float);
  for (const json& size : list) {
    if (!size.is_number_unsigned()) return {};
    shape.push_back(size.get<std::uint64_t>());
    if (__builtin_mul_overflow(expected, shape.back(), &expected)) return {};
  }
  if (expected != bytes) return {};
  return shape;
}

}  // namespace

Result<MinGptTensors> read_mingpt_tensors(const json& object, const std::string& path) {
  MinGptTensors tensors;
  for (const auto& [name, value] : object.items()) {
    if (name == "config") continue;
    const auto reject = [&](std::string_view reason) {
      return fail_with_hint(ErrorCode::Format, fmt::format("{}: {} {}", path, name, reason),
                            "a tensor has shape, dtype torch.float32, and base64 elements in data");
    };
    if (!value.is_object() || !value.contains("shape") || !value.contains("data") ||
        !value["data"].is_string()) {
      return reject("is no tensor");
    }
    if (value.value("dtype", json()) != "torch.float32") return reject("has another dtype");
    auto bytes = decode_base64(value["data"].get_ref<const std::string&>());
    if (!bytes) return reject("is no base64");
    auto shape = read_shape(value["shape"], bytes->size());
    if (!shape)
      return reject(
          fmt::format("has {} bytes, which are not what its shape asks for", bytes->size()));
    auto elements = std::make_shared<const Bytes>(*std::move(bytes));
    tensors.table.try_emplace(name,
                              StoredTensor{"F32", StoredType::F32, *std::move(shape), *elements});
    tensors.storage.push_back(std::move(elements));
  }
  return tensors;
}

}  // namespace plena
