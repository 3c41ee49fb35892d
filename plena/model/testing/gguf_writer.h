// Writes small GGUF files for tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plena/base/files.h"
#include "plena/model/tensor.h"

namespace plena::testing {

class GgufWriter {
 public:
  void u32(std::string_view key, std::uint32_t value);
  void f32(std::string_view key, float value);
  void boolean(std::string_view key, bool value);
  void text(std::string_view key, std::string_view value);
  void texts(std::string_view key, std::span<const std::string> values);
  void i32s(std::string_view key, std::span<const std::int32_t> values);
  void f32s(std::string_view key, std::span<const float> values);
  /// As F32; `shape` outermost first.
  void tensor(std::string_view name, std::vector<std::uint64_t> shape,
              std::span<const float> values);

  [[nodiscard]] Bytes file() const;

 private:
  Bytes metadata_;
  Bytes tensors_;  // their descriptions
  Bytes elements_;
  std::uint64_t keys_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace plena::testing
