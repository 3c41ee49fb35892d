// Places of Matrix SRAM that hold a tile without a copy of it: what the place reads as is a tile of
// the cache, or bytes of HBM that nobody has decoded yet. Each stays so until the place is loaded
// again; the copy is made when somebody looks otherwise, or when what it would be made of changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plena/machine/sparse_memory.h"
#include "plena/numerics/hbm_codec.h"
#include "plena/numerics/streamed_product.h"

namespace plena {

struct CachedTile;
class SettledCopies;

/// A tile as it lies in HBM. Rows begin on whole blocks and bytes.
struct StreamedTile {
  const HbmCodec* codec = nullptr;  // null: none
  StreamedRows rows;
  std::uint64_t elements_begin = 0, elements_end = 0;  // bytes of HBM it is made of
  std::uint64_t scales_begin = 0, scales_end = 0;
  std::uint32_t uses = 0;  // products taken from the bytes

  [[nodiscard]] bool touches(std::uint64_t begin, std::uint64_t end) const {
    return (begin < elements_end && end > elements_begin) ||
           (begin < scales_end && end > scales_begin);
  }
};

/// Whoever reads machine.mram needs settle() first.
class ShownTiles {
 public:
  ShownTiles(SparseMemory& mram, std::size_t side, std::size_t element_bytes)
      : mram_(mram), side_(side), row_bytes_(side * element_bytes) {}

  /// For `places` tiles; none where everything is to be copied at once. `settled` remembers the
  /// copies of cached tiles; null where there are none.
  void resize(std::size_t places, SettledCopies* settled) {
    places_.assign(places, {});
    settled_ = settled;
  }

  [[nodiscard]] bool can_show(std::uint64_t place) const { return place < places_.size(); }

  /// The cached tile a place shows, or null.
  [[nodiscard]] CachedTile* cached(std::uint64_t place) const {
    return place < places_.size() ? places_[place].cached : nullptr;
  }
  /// The bytes of HBM a place shows, or null.
  [[nodiscard]] StreamedTile* streamed(std::uint64_t place) {
    if (place >= places_.size() || places_[place].streamed.codec == nullptr) return nullptr;
    return &places_[place].streamed;
  }

  /// Whether any place shows bytes of HBM.
  [[nodiscard]] bool shows_bytes() const { return shown_bytes_ != 0; }

  void show(std::uint64_t place, CachedTile& tile);
  void show(std::uint64_t place, const StreamedTile& tile);
  /// The place is about to be written as a whole.
  void hide(std::uint64_t place);

  /// Copies what a place shows.
  void settle(std::uint64_t place);
  /// Copies `tile`, which is about to change, to all places that show it.
  void settle(const CachedTile& tile);
  /// Bytes begin … end - 1 of HBM are about to be written: decodes the places that show any of
  /// them.
  void settle_bytes(std::uint64_t begin, std::uint64_t end);
  /// Copies everything.
  void settle();

 private:
  void copy(std::uint64_t place, const CachedTile& tile);

  struct Place {
    CachedTile* cached = nullptr;
    StreamedTile streamed;
    [[nodiscard]] bool shows() const { return cached != nullptr || streamed.codec != nullptr; }
  };

  SparseMemory& mram_;
  std::size_t side_;  // MLEN
  std::size_t row_bytes_;
  std::vector<Place> places_;
  SettledCopies* settled_ = nullptr;
  std::size_t shown_ = 0;
  std::size_t shown_bytes_ = 0;  // places that show bytes of HBM
  // All such bytes since there was none lie between these.
  std::uint64_t lowest_ = 0, highest_ = 0;
};

}  // namespace plena
