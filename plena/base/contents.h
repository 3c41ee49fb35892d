// Bytes that lie in memory or in a file, whoever looks at them; and files without a name, which
// hold what is too large for memory and leave nothing behind.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "plena/base/error.h"
#include "plena/base/files.h"

namespace plena {

/// Bytes that copies share: a buffer, or part of a mapped file that is read when somebody looks.
class Contents {
 public:
  using value_type = std::uint8_t;
  using const_iterator = std::span<const std::uint8_t>::iterator;

  Contents() = default;
  Contents(Bytes bytes);
  Contents(std::initializer_list<std::uint8_t> bytes) : Contents(Bytes(bytes)) {}
  /// Bytes offset … offset + count - 1 of a file, which has them.
  Contents(std::shared_ptr<const MappedFile> file, std::uint64_t offset, std::uint64_t count);

  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] const_iterator begin() const { return bytes_.begin(); }
  [[nodiscard]] const_iterator end() const { return bytes_.end(); }

  /// The file they are part of, from file_offset() on; null where they lie in memory.
  [[nodiscard]] const std::shared_ptr<const MappedFile>& file() const { return file_; }
  [[nodiscard]] std::uint64_t file_offset() const { return file_offset_; }

  friend bool operator==(const Contents& a, const Contents& b);

 private:
  std::shared_ptr<const Bytes> buffer_;
  std::shared_ptr<const MappedFile> file_;
  std::uint64_t file_offset_ = 0;
  std::span<const std::uint8_t> bytes_;
};

/// A file that no folder lists. It goes when nobody has it open any more, however the program
/// ends, unless give_name() was called before.
class UnnamedFile {
 public:
  /// `bytes` zeros, on the file system of `folder`; an error where that has no room for them.
  static Result<UnnamedFile> create(const std::string& folder, std::uint64_t bytes);
  /// The same in memory.
  static Result<UnnamedFile> in_memory(std::uint64_t bytes);
  UnnamedFile(UnnamedFile&& other) noexcept;
  UnnamedFile& operator=(UnnamedFile&& other) noexcept;
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  ~UnnamedFile();

  /// Several threads may write at once.
  Status write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) const;

  /// The finished file, to be read.
  Result<MappedFile> map() &&;

 private:
  UnnamedFile(int fd, std::string place) : fd_(fd), place_(std::move(place)) {}
  Status resize(std::uint64_t bytes) const;

  int fd_ = -1;
  std::string place_;  // for errors
};

/// Gives a file without a name one, so that it stays. False where it cannot be had without copying:
/// the file has a name already, or lies on another file system.
bool give_name(const MappedFile& file, const std::string& path);

}  // namespace plena
