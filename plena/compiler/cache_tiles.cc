#include "plena/compiler/cache_tiles.h"

namespace plena {

void CacheTiles::load() const {
  const RegionScope region(e_, "load_cache");
  for (std::uint32_t row = 0; row < layout_.span; ++row) load_row(row);
}

void CacheTiles::load_newest() const {
  const RegionScope region(e_, "load_cache");
  for (std::uint32_t row = 0; row < layout_.span; ++row) load_newest(row);
}

void CacheTiles::set_walk(Gp from, Gp end, std::uint64_t base, Gp first_token,
                          Gp last_token) const {
  e_.set(from, base, "tiles of positions");
  load_kept(context_, end, context_.plan.cache_end, "end of the tiles in sight", last_token);
  e_.emit(Op::S_ADD_INT, {end, end, from});
  if (op_.window == 0) return;
  HeldGp first(e_, "first tile");
  load_kept(context_, first, context_.plan.windows.at(op_.window).first_tile, "first tile in sight",
            first_token);
  e_.emit(Op::S_ADD_INT, {from, from, first});
}

void CacheTiles::set_region_walk(Gp from, Gp end, std::uint64_t index, Gp first_token,
                                 Gp last_token) const {
  set_walk(from, end, index * context_.plan.cache_stride, first_token, last_token);
  HeldGp keys(e_, "regions of the tile");
  load_kept(context_, keys, layout_.tiles > 1 ? context_.plan.keys_at : context_.plan.cache_at,
            "regions of this tile");
  e_.emit(Op::S_ADD_INT, {from, from, keys});
  e_.emit(Op::S_ADD_INT, {end, end, keys});
}

// K and V of one row of a head, a tile of each in turn. Tiles keep their places: the tile of
// position p is p / MLEN behind the first.
void CacheTiles::load_row(std::uint32_t row) const {
  HeldGp key(e_, "K in the cache");
  HeldGp end(e_, "end of K");
  HeldGp value(e_, "V in the cache");
  HeldGp key_to(e_, "K tile");
  HeldGp value_to(e_, "V tile");
  {
    HeldGp last(e_, "last token");
    if (context_.tokens > 1) e_.set(last, context_.tokens - 1, "last token");
    set_region_walk(key, end, row, kZeroGp, context_.tokens > 1 ? Gp(last) : kZeroGp);
  }
  e_.offset(value, key, layout_.key_rows() * context_.plan.cache_stride, "V in the cache");
  e_.set(key_to, key_tile(row), "K tiles");
  if (op_.window != 0) {
    HeldGp first(e_, "first tile");
    load_kept(context_, first, context_.plan.windows.at(op_.window).first_tile,
              "first tile in sight");
    e_.emit(Op::S_ADD_INT, {key_to, key_to, first});
  }
  e_.offset(value_to, key_to, value_tile(row) - key_tile(row), "V tiles");
  WalkLoop tiles(e_, key, end, "tiles of positions");
  e_.emit(Op::H_PREFETCH_M, {key_to, key, kCacheBase, kContiguous, kKeyValue});
  e_.emit(Op::H_PREFETCH_M, {value_to, value, kCacheBase, kContiguous, kKeyValue});
  e_.advance(key_to, tile_elements_);
  e_.advance(value_to, tile_elements_);
  e_.advance(key, tile_elements_);
  e_.advance(value, tile_elements_);
}

void CacheTiles::load_newest(std::uint32_t row) const {
  HeldGp from(e_, "tile of the cache");
  HeldGp to(e_, "tile");
  HeldGp regions(e_, "cache of the layer");
  load_kept(context_, to, context_.plan.cache_end, "end of the tiles in sight");
  load_kept(context_, regions, context_.plan.cache_at, "cache of this layer");
  e_.emit(Op::S_ADD_INT, {from, to, regions});
  // Offsets of the region and the place less the tile that ends there.
  const std::uint64_t key_region = row * context_.plan.cache_stride;
  const std::uint64_t values = layout_.key_rows() * context_.plan.cache_stride;
  HeldGp tile(e_, "elements of a tile");
  e_.set(tile, tile_elements_);
  e_.emit(Op::S_SUB_INT, {from, from, tile}, "tile of this position");
  e_.emit(Op::S_SUB_INT, {to, to, tile}, "its place");
  if (key_region != 0) e_.advance(from, key_region);
  e_.advance(to, key_tile(row), "K tile");
  e_.emit(Op::H_PREFETCH_M, {to, from, kCacheBase, kContiguous, kKeyValue});
  e_.advance(from, values);
  e_.advance(to, value_tile(row) - key_tile(row), "V tile");
  e_.emit(Op::H_PREFETCH_M, {to, from, kCacheBase, kContiguous, kKeyValue});
}

}  // namespace plena
