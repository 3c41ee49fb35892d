// Whole files: read, map, and write so that no half-written file is ever left behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plena/base/error.h"

namespace plena {

using Bytes = std::vector<std::uint8_t>;

/// What read_file() takes at most, so that /dev/zero or a runaway pipe is an error and not the end
/// of the machine's memory. Larger files are mapped.
inline constexpr std::uint64_t kMostBytesRead = std::uint64_t{256} << 20;

Result<Bytes> read_file(const std::string& path);
Result<std::string> read_text(const std::string& path);

/// A file written piece by piece, by way of a temporary neighbour: it appears under its name when
/// commit() renames that, and not at all without. Pipes and devices are written directly.
class FileWriter {
 public:
  static Result<FileWriter> create(const std::string& path);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&& other) noexcept;
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  Status append(std::span<const std::uint8_t> bytes);
  /// The same with `count` zeros, which take no space where the file system has holes.
  Status append_zeros(std::uint64_t count);
  Status commit();

 private:
  FileWriter(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

  std::string path_;
  std::string temporary_;  // empty: written directly
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

/// The whole file at once, by a FileWriter.
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

  /// The open file, for whoever maps parts of it once more.
  [[nodiscard]] int descriptor() const { return fd_; }

 private:
  friend class UnnamedFile;
  /// Maps the regular file `fd`, which becomes this object's.
  static Result<MappedFile> map(int fd, const std::string& path);
  MappedFile(int fd, const std::uint8_t* data, std::size_t size)
      : fd_(fd), data_(data), size_(size) {}

  int fd_ = -1;
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace plena
