// A file, pipe or device read piece by piece, for work that needs no more of it at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plena/base/error.h"

namespace plena {

class FileReader {
 public:
  static Result<FileReader> open(const std::string& path);
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&& other) noexcept;
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  ~FileReader();

  /// The next bytes, valid until the next call; empty at the end. A signal that ends the wait for
  /// them is ErrorCode::Interrupted.
  Result<std::string_view> next();

  /// Bytes of a regular file, 0 where that is not known.
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  FileReader(std::string path, int fd, std::uint64_t size);

  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::vector<char> buffer_;
};

}  // namespace plena
