// Whole files: read, map, and write so that no half-written file is ever left behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plena/base/error.h"

namespace plena {

using Bytes = std::vector<std::uint8_t>;

Result<Bytes> read_file(const std::string& path);
Result<std::string> read_text(const std::string& path);

/// Writes to `path` by way of a temporary neighbour that is renamed at the end.
Status write_file(const std::string& path, std::span<const std::uint8_t> bytes);
Status write_text(const std::string& path, std::string_view text);

/// A file mapped read-only; the bytes stay valid while the object lives. An empty file maps to
/// an empty span.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {data_, size_}; }
  [[nodiscard]] std::string_view text() const {
    return {reinterpret_cast<const char*>(data_), size_};
  }

 private:
  MappedFile(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace plena
