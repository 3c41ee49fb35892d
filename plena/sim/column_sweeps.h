// M_MM and M_TMM take BLEN columns of a tile at a time; programs mostly take all of them, one block
// after the other, with the same rows of Vector SRAM. Whoever is three blocks into such a sweep, or
// begins one where the last one went to the end, gets all of them computed in one product, which
// costs a fraction of one by one. Where the last sweep had a second block, as the heads of a narrow
// model have, the first one brings the second along.
//
// Dot products do not depend on what they are added to, so what was computed ahead is what the
// instruction would compute, as long as neither its rows nor its tile was written since.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace plena {

/// Which product: rows of Vector SRAM from element `rows` on, times a tile or its transpose.
struct SweepKey {
  std::uint64_t rows = 0;
  std::uint64_t place = 0;  // of the tile in Matrix SRAM
  bool transposed = false;
  bool operator==(const SweepKey&) const = default;
};

class ColumnSweeps {
 public:
  /// A tile has `blocks` column blocks; `window` elements of Vector SRAM belong to a product.
  ColumnSweeps(std::size_t mlen, std::size_t blen, std::uint64_t window)
      : mlen_(mlen),
        blen_(blen),
        blocks_(mlen / blen),
        window_(window),
        minus_zeros_(blen * mlen, -0.0F) {}

  struct Sweep {
    SweepKey key;
    std::size_t next = 0;         // the block that goes on with it
    std::size_t length = 0;       // blocks it has gone on for; 0: there is none
    bool to_the_end = false;      // the one before it in this slot went to the last block
    bool has_second = false;      // the one before it went on after its first
    std::size_t begin = 0;        // `products` holds blocks begin … end - 1;
    std::size_t end = 0;          // none where both are 0
    std::vector<float> products;  // [BLEN][MLEN]

    [[nodiscard]] bool computed() const { return end != 0; }
  };

  /// Blocks begin … end - 1 of a tile; none where begin == end.
  struct Blocks {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  /// The sweep that block `block` of a product belongs to: one begun before, or a new one.
  Sweep& at(const SweepKey& key, std::size_t block);

  /// What to compute of a sweep now that its block `block` is wanted.
  [[nodiscard]] Blocks worth_computing(const Sweep& sweep, std::size_t block) const {
    constexpr std::size_t kSure = 3;  // the third block in a row is hardly the last
    if (sweep.length >= kSure || sweep.to_the_end) return {0, blocks_};
    if (sweep.length == 1 && sweep.has_second && block + 2 <= blocks_) return {block, block + 2};
    return {};
  }

  /// Room for the products of blocks that are about to be computed, [BLEN][MLEN] from the first
  /// block's column on: all −0, to which adding changes nothing.
  float* begin_computing(Sweep& sweep, Blocks blocks);

  /// accumulators[BLEN][BLEN] += the products of a block, which were computed.
  void add(Sweep& sweep, std::size_t block, float* accumulators);

  /// Elements of Vector SRAM are about to be written.
  void before_write(std::uint64_t element, std::uint64_t count) {
    if (element < highest_ && element + count > lowest_) [[unlikely]]
      drop_rows(element, count);
  }
  /// A tile of Matrix SRAM is about to be written.
  void before_load(std::uint64_t place);

 private:
  void drop_rows(std::uint64_t element, std::uint64_t count);
  void drop(Sweep& sweep);

  // More than the input tiles of most products; a newer sweep takes an older one's slot.
  static constexpr std::size_t kSweeps = 64;

  std::size_t mlen_, blen_, blocks_;
  std::uint64_t window_;
  std::vector<float> minus_zeros_;  // of a tile's products
  std::array<Sweep, kSweeps> sweeps_;
  std::size_t computed_ = 0;  // sweeps that are
  // The rows of all those since there was none lie between these.
  std::uint64_t lowest_ = 0, highest_ = 0;
};

}  // namespace plena
