// Which tile of the cache each place of Matrix SRAM was last given a copy of, from one run to the
// next. Decoding a token ends with the same weights in most places as the token before: those
// copies are not made again.
//
// Exact as the cache is: whether anything was written to a place since, by whomever, is asked of
// Matrix SRAM itself (WriteStamps).
#pragma once

#include <cstdint>
#include <vector>

#include "plena/machine/sparse_memory.h"
#include "plena/machine/write_stamps.h"

namespace plena {

class SettledCopies {
 public:
  /// Whether the `bytes` bytes of a place are still the copy of contents `version`, which no other
  /// contents of any tile have had.
  [[nodiscard]] bool hold(const SparseMemory& mram, std::uint64_t place, std::uint64_t bytes,
                          std::uint64_t version) const {
    if (place >= copies_.size() || copies_[place].version != version) return false;
    const WriteStamps* stamps = mram.stamps();
    const Copy& copy = copies_[place];
    return stamps != nullptr && stamps->identity() == copy.mram &&
           (!stamps->perhaps_written(place * bytes, bytes, copy.made_at) ||
            stamps->written(place * bytes, bytes, copy.made_at).empty());
  }
  /// The copy was made just now.
  void made(const SparseMemory& mram, std::uint64_t place, std::uint64_t version) {
    const WriteStamps* stamps = mram.stamps();
    if (stamps == nullptr) return;
    if (place >= copies_.size()) copies_.resize(place + 1);
    copies_[place] = {stamps->identity(), version, stamps->now()};
  }

 private:
  struct Copy {
    std::uint64_t mram = 0;     // WriteStamps::identity(); 0: no copy
    std::uint64_t version = 0;  // CachedTile::version
    std::uint64_t made_at = 0;  // time of Matrix SRAM's stamps
  };

  std::vector<Copy> copies_;  // by place
};

}  // namespace plena
