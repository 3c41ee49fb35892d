// When which bytes of a large memory were written, so that what was computed from them can be kept
// until they change. Time is a count of writes; bytes are told apart in granules.
#pragma once

#include <cstdint>
#include <memory>

#include "plena/base/error.h"
#include "plena/machine/sparse_memory.h"

namespace plena {

class WriteStamps {
 public:
  static constexpr std::uint64_t kGranule = 64;             // bytes that share a stamp
  static constexpr std::uint64_t kRegion = 256 * kGranule;  // bytes that share a coarse one

  /// For a memory of `bytes` bytes, none of which was written so far. Costs memory only for
  /// regions that are written: 8 bytes a granule.
  static Result<std::unique_ptr<WriteStamps>> reserve(std::uint64_t bytes);

  /// `count` > 0 bytes at `offset` are written now, inside the memory.
  void mark(std::uint64_t offset, std::uint64_t count);

  /// The time of the last write.
  [[nodiscard]] std::uint64_t now() const { return now_; }

  /// No other object of this process has it: tells memories apart that follow each other in one
  /// place. Never 0.
  [[nodiscard]] std::uint64_t identity() const { return identity_; }

  /// False: nothing of these bytes was written after `time`. True may be wrong, but comes fast.
  [[nodiscard]] bool perhaps_written(std::uint64_t offset, std::uint64_t count,
                                     std::uint64_t time) const;

  /// Bytes begin … end - 1; none where begin == end.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    [[nodiscard]] bool empty() const { return begin == end; }
  };

  /// A range that holds all bytes among `count` > 0 at `offset` that were written after `time`,
  /// cut to them.
  [[nodiscard]] Range written(std::uint64_t offset, std::uint64_t count, std::uint64_t time) const;

 private:
  WriteStamps(SparseMemory granules, SparseMemory regions);

  SparseMemory granules_, regions_;  // time of the last write, 64 bits each
  std::uint64_t now_ = 0;
  std::uint64_t identity_;
};

}  // namespace plena
