#include "plena/sim/shown_tiles.h"

#include <algorithm>
#include <cstring>

#include "plena/sim/tile_cache.h"

namespace plena {

void ShownTiles::show(std::uint64_t place, CachedTile& tile) {
  hide(place);
  places_[place].cached = &tile;
  ++tile.shown;
  ++shown_;
}

void ShownTiles::show(std::uint64_t place, const StreamedTile& tile) {
  hide(place);
  places_[place].streamed = tile;
  ++shown_;
  if (shown_bytes_++ == 0) {
    lowest_ = tile.elements_begin;
    highest_ = tile.elements_end;
  }
  lowest_ = std::min(lowest_, tile.elements_begin);
  highest_ = std::max(highest_, tile.elements_end);
  if (tile.scales_begin == tile.scales_end) return;
  lowest_ = std::min(lowest_, tile.scales_begin);
  highest_ = std::max(highest_, tile.scales_end);
}

void ShownTiles::hide(std::uint64_t place) {
  if (place >= places_.size()) return;
  Place& at = places_[place];
  if (at.cached != nullptr) {
    --at.cached->shown;
    --shown_;
    at.cached = nullptr;
  } else if (at.streamed.codec != nullptr) {
    --shown_bytes_;
    --shown_;
    at.streamed.codec = nullptr;
  }
}

void ShownTiles::copy(std::uint64_t place, const CachedTile& tile) {
  const std::size_t tile_bytes = row_bytes_ * side_;
  if (settled_->hold(mram_, place, tile_bytes, tile.version)) return;
  std::memcpy(mram_.writable(place * tile_bytes, tile_bytes), tile.rows, tile_bytes);
  settled_->made(mram_, place, tile.version);
}

void ShownTiles::settle(std::uint64_t place) {
  if (!can_show(place) || !places_[place].shows()) return;
  if (const CachedTile* tile = places_[place].cached) {
    copy(place, *tile);
  } else {
    const std::size_t tile_bytes = row_bytes_ * side_;
    std::uint8_t* to = mram_.writable(place * tile_bytes, tile_bytes);
    const StreamedTile& bytes = places_[place].streamed;
    for (std::size_t row = 0; row < side_; ++row) {
      bytes.codec->decode(bytes.rows.elements + row * bytes.rows.element_pitch,
                          bytes.rows.scales + row * bytes.rows.scale_pitch, 0, side_,
                          to + row * row_bytes_);
    }
  }
  hide(place);
}

void ShownTiles::settle(const CachedTile& tile) {
  for (std::size_t place = 0; tile.shown != 0; ++place) {
    if (places_[place].cached == &tile) settle(place);
  }
}

void ShownTiles::settle_bytes(std::uint64_t begin, std::uint64_t end) {
  if (shown_bytes_ == 0 || begin >= highest_ || end <= lowest_) return;
  for (std::size_t place = 0; place < places_.size(); ++place) {
    const StreamedTile* tile = streamed(place);
    if (tile != nullptr && tile->touches(begin, end)) settle(place);
  }
}

void ShownTiles::settle() {
  for (std::size_t place = 0; shown_ != 0; ++place) settle(place);
}

}  // namespace plena
