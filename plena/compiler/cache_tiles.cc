#include "plena/compiler/cache_tiles.h"

namespace plena {

void CacheTiles::load() const {
  const RegionScope region(e_, "load_cache");
  for (std::uint32_t row = 0; row < layout_.span; ++row) load_row(row);
}

void CacheTiles::load_older() const {
  const RegionScope region(e_, "load_cache");
  for (std::uint32_t row = 0; row < layout_.span; ++row) load_older_row(row, false);
}

void CacheTiles::load_older_of_next() const {
  const RegionScope region(e_, "load_cache");
  e_.comment("older tiles of the next layer");
  for (std::uint32_t row = 0; row < layout_.span; ++row) load_older_row(row, true);
}

void CacheTiles::change_halves() const {
  HeldGp half(e_, "half in use");
  HeldGp other(e_, "the other one");
  load_kept(context_, half, context_.plan.cache_half, "half in use");
  e_.set(other, half_elements());
  e_.emit(Op::S_SUB_INT, {other, other, half}, "the other one");
  keep(context_, other, context_.plan.cache_half);
}

void CacheTiles::add_half(Gp to) const {
  if (loads_ahead()) add_kept(to, context_.plan.cache_half);
}

void CacheTiles::load_newest() const {
  const RegionScope region(e_, "load_cache");
  for (std::uint32_t row = 0; row < layout_.span; ++row) load_newest_row(row);
}

void CacheTiles::set_resident_sweep(Gp from, Gp last, std::uint64_t place) const {
  e_.set(from, place + resident_stride() - tile_elements_, "place of the newest tile");
  add_half(from);
  e_.copy(last, from);
  subtract_kept(from, context_.plan.newest_tile);
  if (op_.window != 0) add_kept(from, window().first_tile);
}

void CacheTiles::set_region_sweep(Gp from, Gp last, std::uint64_t index) const {
  set_region(from, index);
  e_.copy(last, from);
  add_kept(last, context_.plan.newest_tile);
  if (op_.window != 0) add_kept(from, window().first_tile);
}

// Where region `index` of this tile of lanes starts.
void CacheTiles::set_region(Gp to, std::uint64_t index) const {
  load_kept(context_, to, layout_.tiles > 1 ? context_.plan.keys_at : context_.plan.cache_at,
            "regions of this tile");
  if (index != 0) e_.advance(to, index * context_.plan.cache_stride, "region");
}

void CacheTiles::add_kept(Gp to, const Block& place) const {
  HeldGp term(e_, place.name);
  load_kept(context_, term, place, place.name);
  e_.emit(Op::S_ADD_INT, {to, to, term});
}

void CacheTiles::subtract_kept(Gp to, const Block& place) const {
  HeldGp term(e_, place.name);
  load_kept(context_, term, place, place.name);
  e_.emit(Op::S_SUB_INT, {to, to, term});
}

void CacheTiles::load_row(std::uint32_t row) const {
  HeldGp key(e_, "K in the cache");
  HeldGp last(e_, "newest tile");
  HeldGp key_to(e_, "K tiles");
  set_region_sweep(key, last, row);
  e_.set(key_to, newest_key(row), "place of the newest K tile");
  add_half(key_to);
  subtract_kept(key_to, context_.plan.newest_tile);
  if (op_.window != 0) add_kept(key_to, window().first_tile);
  load_tiles(key, last, key_to);
}

void CacheTiles::load_older_row(std::uint32_t row, bool of_next) const {
  HeldGp key(e_, "K in the cache");
  HeldGp last(e_, "newest of the older tiles");
  HeldGp key_to(e_, "K tiles");
  set_region(key, row);
  if (of_next) {
    e_.advance(key, context_.tiled.cache_regions() * context_.plan.cache_stride, "next layer");
  }
  e_.copy(last, key);
  add_kept(last, context_.plan.older_tile);
  e_.set(key_to, newest_key(row) - tile_elements_ + (of_next ? half_elements() : 0),
         "place before the newest K tile");
  if (of_next) {
    subtract_kept(key_to, context_.plan.cache_half);
  } else {
    add_half(key_to);
  }
  subtract_kept(key_to, context_.plan.older_tile);
  if (op_.window != 0) {
    add_kept(key, window().first_tile);
    add_kept(key_to, window().first_tile);
  }
  load_tiles(key, last, key_to);
}

// K and V tiles of the same positions in turn.
void CacheTiles::load_tiles(Gp key, Gp last, Gp key_to) const {
  HeldGp value(e_, "V in the cache");
  HeldGp value_to(e_, "V tiles");
  e_.offset(value, key, values(), "V in the cache");
  e_.offset(value_to, key_to, value_tiles() - key_tiles(), "V tiles");
  SweepLoop tiles(e_, key, last, "tiles of positions");
  e_.emit(Op::H_PREFETCH_M, {key_to, key, kCacheBase, kContiguous, kKeyValue});
  e_.emit(Op::H_PREFETCH_M, {value_to, value, kCacheBase, kContiguous, kKeyValue});
  e_.advance(key, tile_elements_);
  e_.advance(value, tile_elements_);
  e_.advance(key_to, tile_elements_);
  e_.advance(value_to, tile_elements_);
}

void CacheTiles::load_newest_row(std::uint32_t row) const {
  HeldGp from(e_, "newest tile in the cache");
  HeldGp to(e_, "its place");
  set_region(from, row);
  add_kept(from, context_.plan.newest_tile);
  e_.set(to, newest_key(row), "place of the newest K tile");
  add_half(to);
  e_.emit(Op::H_PREFETCH_M, {to, from, kCacheBase, kContiguous, kKeyValue});
  e_.advance(from, values());
  e_.advance(to, value_tiles() - key_tiles(), "V tile");
  e_.emit(Op::H_PREFETCH_M, {to, from, kCacheBase, kContiguous, kKeyValue});
}

NextLayerTiles::NextLayerTiles(const CacheTiles& cache, Which which)
    : cache_(cache), from_(cache.e_, "tile of the next layer"), to_(cache.e_, "its place") {
  const KernelContext& context = cache.context_;
  const bool keys = which == Which::Keys;
  const std::uint64_t regions =
      context.tiled.cache_regions() + (keys ? 0 : cache.layout_.key_rows());
  cache.set_region(from_, regions);
  const std::uint64_t place = keys ? cache.key_tiles() : cache.value_tiles();
  cache.e_.set(to_, place + cache.half_elements() + cache.resident_stride() - cache.tile_elements_,
               "place of the newest tile");
  cache.subtract_kept(to_, context.plan.cache_half);
  cache.subtract_kept(to_, context.plan.newest_tile);
}

void NextLayerTiles::load_one() const {
  Emitter& e = cache_.e_;
  e.emit(Op::H_PREFETCH_M, {to_, from_, kCacheBase, kContiguous, kKeyValue});
  e.advance(from_, cache_.tile_elements_);
  e.advance(to_, cache_.tile_elements_);
}

}  // namespace plena
