// A large byte array that costs nothing until it is touched: address space is reserved, pages
// come when they are written, and which chunks were written is known exactly, so that copies,
// comparisons and dumps touch only those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "plena/base/error.h"
#include "plena/base/files.h"

namespace plena {

class WriteStamps;

class SparseMemory {
 public:
  SparseMemory();

  /// Reserves `bytes`; `chunk_bytes` (a power of two) is the granularity of touched().
  static Result<SparseMemory> reserve(std::uint64_t bytes, std::size_t chunk_bytes);

  SparseMemory(SparseMemory&& other) noexcept;
  SparseMemory& operator=(SparseMemory&& other) noexcept;
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  ~SparseMemory();

  /// A copy that holds the same bytes; only touched chunks are copied.
  [[nodiscard]] Result<SparseMemory> clone() const;

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] const std::uint8_t* data() const { return data_; }

  /// For writing `count` bytes at `offset`, at once: marks their chunks and, where writes are
  /// stamped, their time. The range lies inside size().
  std::uint8_t* writable(std::uint64_t offset, std::uint64_t count) {
    if (count != 0) {
      const std::uint64_t last = (offset + count - 1) >> chunk_shift_;
      for (std::uint64_t chunk = offset >> chunk_shift_; chunk <= last; ++chunk)
        touched_[chunk] = 1;
      if (stamps_ != nullptr) stamp(offset, count);
    }
    return data_ + offset;
  }

  /// Bytes `from` … of a file to `offset`, `count` of them, as if they were written: those that
  /// make whole pages at equal places are read when somebody looks and copied when somebody writes.
  /// Both ranges lie inside; the file must not become shorter meanwhile.
  Status map(std::uint64_t offset, const MappedFile& file, std::uint64_t from, std::uint64_t count);

  /// From now on the time of every write is kept. Does nothing where it already is; a clone starts
  /// without.
  Status stamp_writes();
  /// Null until stamp_writes().
  [[nodiscard]] const WriteStamps* stamps() const { return stamps_.get(); }

  [[nodiscard]] std::size_t chunk_bytes() const { return std::size_t{1} << chunk_shift_; }
  [[nodiscard]] std::size_t chunk_count() const { return touched_.size(); }
  /// Whether anything in a chunk was ever written; an untouched chunk reads 0.
  [[nodiscard]] bool touched(std::size_t chunk) const { return touched_[chunk] != 0; }
  /// Bytes of a chunk; the last one may be shorter.
  [[nodiscard]] std::size_t chunk_size(std::size_t chunk) const;
  /// One past the last byte that is not 0.
  [[nodiscard]] std::uint64_t used_bytes() const;

  /// Same size and same bytes, wherever they were written.
  friend bool operator==(const SparseMemory& a, const SparseMemory& b);

 private:
  void stamp(std::uint64_t offset, std::uint64_t count);

  std::uint8_t* data_ = nullptr;
  std::uint64_t size_ = 0;
  unsigned chunk_shift_ = 0;
  std::vector<std::uint8_t> touched_;  // one byte a chunk: a store without a read
  std::unique_ptr<WriteStamps> stamps_;
};

}  // namespace plena
