// Rows of Vector SRAM as kernels want them, prepared once for all the tiles they meet: programs
// multiply the same few rows with every tile of a matrix. What was handed out stays in place until
// clear().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "plena/machine/machine.h"
#include "plena/numerics/scratch.h"

namespace plena {

class PreparedProgram;

/// Single rows, as StreamedProduct::prepare() arranges them.
class ArrangedRows {
 public:
  [[nodiscard]] bool full() const { return count_ == kMost; }
  void clear() { count_ = 0; }
  /// The MLEN lanes from element `row` on. Not when full().
  const void* at(std::uint64_t row, const PreparedProgram& program, const Machine& machine);

 private:
  static constexpr std::size_t kMost = 256;

  std::size_t count_ = 0;
  std::array<std::uint64_t, kMost> rows_{};
  std::array<std::uint16_t, 64> newest_{};  // by place of the row
  std::unique_ptr<CacheLine[]> arranged_;   // [kMost][lines of one]
};

/// Up to MLEN rows at a time, as MatrixUnit::pack_rows() packs them. They are kept from batch to
/// batch, until something is written where any of them came from.
class PackedRows {
 public:
  /// `rows` windows of MLEN lanes from element `first` on, VLEN apart; null where there is no room.
  const void* at(std::uint64_t first, std::size_t rows, const PreparedProgram& program,
                 const Machine& machine);

  /// Elements begin … end - 1 are about to be written; nobody refers to any rows.
  void before_write(std::uint64_t begin, std::uint64_t end) {
    if (begin < end_ && end > begin_) clear();
  }
  /// They will be, at the latest when this batch ends.
  void written_later(std::uint64_t begin, std::uint64_t end) {
    if (begin < end_ && end > begin_) stale_ = true;
  }
  /// Nobody refers to any rows any more.
  void after_batch() {
    if (stale_ || count_ > kMost / 2) clear();
  }

 private:
  static constexpr std::size_t kMost = 128;
  struct Rows {
    std::uint64_t first = 0;
    std::size_t count = 0;
    friend bool operator==(const Rows&, const Rows&) = default;
  };

  void clear() {
    count_ = 0;
    begin_ = end_ = 0;
    stale_ = false;
  }

  std::size_t count_ = 0;
  std::uint64_t begin_ = 0, end_ = 0;  // all rows lie between these
  bool stale_ = false;
  std::array<Rows, kMost> rows_{};
  std::unique_ptr<CacheLine[]> packed_;  // [kMost][lines of MLEN rows]
};

}  // namespace plena
