#include "plena/compiler/cache_tiles.h"

namespace plena {

void CacheTiles::load() const {
  const RegionScope region(e_, "load_cache");
  for (std::uint32_t row = 0; row < layout_.span; ++row) load_row(row);
}

void CacheTiles::load_older() const {
  const RegionScope region(e_, "load_cache");
  for (std::uint32_t row = 0; row < layout_.span; ++row) load_older_row(row);
}

void CacheTiles::load_newest() const {
  const RegionScope region(e_, "load_cache");
  for (std::uint32_t row = 0; row < layout_.span; ++row) load_newest_row(row);
}

void CacheTiles::change_halves() const {
  HeldGp half(e_, "half in use");
  HeldGp other(e_, "the other one");
  load_kept(context_, half, context_.plan.key_half, "half in use");
  e_.set(other, half_elements());
  e_.emit(Op::S_SUB_INT, {other, other, half}, "the other one");
  keep(context_, other, context_.plan.key_half);
}

void CacheTiles::add_half(Gp to) const {
  if (loads_ahead()) add_kept(to, context_.plan.key_half);
}

void CacheTiles::set_key_sweep(Gp from, Gp last) const {
  e_.set(from, newest_key(0), "place of the newest tile");
  add_half(from);
  set_resident_sweep(from, last);
}

void CacheTiles::set_value_sweep(Gp from, Gp last, std::uint32_t row) const {
  e_.set(from, newest_value(row), "place of the newest tile");
  set_resident_sweep(from, last);
}

// From the place of the newest tile in `from`.
void CacheTiles::set_resident_sweep(Gp from, Gp last) const {
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
  subtract_kept(key_to, context_.plan.newest_tile);
  if (op_.window != 0) add_kept(key_to, window().first_tile);
  load_tiles(key, last, key_to);
}

void CacheTiles::load_older_row(std::uint32_t row) const {
  HeldGp key(e_, "K in the cache");
  HeldGp last(e_, "newest of the older tiles");
  HeldGp key_to(e_, "K tiles");
  set_region(key, row);
  e_.copy(last, key);
  add_kept(last, context_.plan.older_tile);
  e_.set(key_to, newest_key(row) - tile_elements_, "place before the newest K tile");
  subtract_kept(key_to, context_.plan.older_tile);
  if (op_.window != 0) {
    add_kept(key, window().first_tile);
    add_kept(key_to, window().first_tile);
  }
  load_tiles(key, last, key_to);
}

// K and V tiles of the same positions in turn; with layers that load ahead K alone.
void CacheTiles::load_tiles(Gp key, Gp last, Gp key_to) const {
  if (loads_ahead()) {
    SweepLoop tiles(e_, key, last, "tiles of positions");
    e_.emit(Op::H_PREFETCH_M, {key_to, key, kCacheBase, kContiguous, kKeyValue});
    e_.advance(key, tile_elements_);
    return e_.advance(key_to, tile_elements_);
  }
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
  if (loads_ahead()) return;
  e_.advance(from, values());
  e_.advance(to, value_tiles() - key_tiles(), "V tile");
  e_.emit(Op::H_PREFETCH_M, {to, from, kCacheBase, kContiguous, kKeyValue});
}

TileLoads::TileLoads(const CacheTiles& cache, Which which)
    : cache_(cache), from_(cache.e_, "tile in the cache"), to_(cache.e_, "its place") {
  const KernelContext& context = cache.context_;
  if (which == Which::Values) {
    cache.set_region(from_, cache.layout_.key_rows());
    cache.e_.set(to_, cache.newest_value(0), "place of the newest tile");
  } else {
    cache.set_region(from_, context.tiled.cache_regions());
    cache.e_.set(to_, cache.newest_key(0) + cache.half_elements(), "place of the newest tile");
    cache.subtract_kept(to_, context.plan.key_half);
  }
  cache.subtract_kept(to_, context.plan.newest_tile);
}

void TileLoads::load_one() const {
  Emitter& e = cache_.e_;
  e.emit(Op::H_PREFETCH_M, {to_, from_, kCacheBase, kContiguous, kKeyValue});
  e.advance(from_, cache_.tile_elements_);
  e.advance(to_, cache_.tile_elements_);
}

}  // namespace plena
