// Where attention finds the cache: K and V tiles of one tile of lanes, in HBM and, where those of
// the whole context fit, in Matrix SRAM.
//
// There the newest tile has the last place and older ones those before it:
// they can come while nothing but the newest one's key is missing.
#pragma once

#include <cstdint>

#include "plena/compiler/kernels.h"

namespace plena {

/// One tile of K lanes: its regions of the cache.
///
/// Where layers load ahead (WeightPipeline::cache_ahead), there are two halves of K tiles: one in
/// use, and one that the next layer's older tiles come into meanwhile. V comes while the layer's
/// own scores are computed.
class CacheTiles {
 public:
  CacheTiles(const KernelContext& context, const AttentionOp& op)
      : context_(context),
        e_(context.emitter),
        op_(op),
        layout_(context.tiled.heads),
        tile_elements_(context.tiled.tile_elements()) {}

  [[nodiscard]] bool resident() const { return context_.plan.key_tiles.count != 0; }

  /// Whether the older tiles are loaded before this position's key is known: where there is
  /// one tile of lanes, and there may be older tiles whatever the window.
  [[nodiscard]] bool loads_early() const {
    return resident() && layout_.tiles == 1 && context_.tiled.context_tiles > 1 &&
           (op_.window == 0 || op_.window > context_.tiled.mlen);
  }

  /// From a row of a head to the next one's tile of the same positions, in Matrix SRAM.
  [[nodiscard]] std::uint64_t resident_stride() const {
    return context_.tiled.context_tiles * tile_elements_;
  }
  [[nodiscard]] std::uint64_t key_tiles() const { return context_.tile(context_.plan.key_tiles); }
  [[nodiscard]] std::uint64_t value_tiles() const {
    return context_.tile(context_.plan.value_tiles);
  }

  /// K and V of all positions in sight.
  void load() const;

  /// Those of all tiles but the newest; at least one tile, whatever it is.
  void load_older() const;
  void load_newest() const;

  [[nodiscard]] bool loads_ahead() const { return context_.pipeline.cache_ahead != nullptr; }
  void change_halves() const;

  /// from, last: the first and the last tile in sight in Matrix SRAM; of V those of a row of a
  /// head.
  void set_key_sweep(Gp from, Gp last) const;
  void set_value_sweep(Gp from, Gp last, std::uint32_t row) const;

  /// The same as elements of region `index` of the cache in HBM.
  void set_region_sweep(Gp from, Gp last, std::uint64_t index) const;

 private:
  friend class TileLoads;
  [[nodiscard]] const WindowPlaces& window() const { return context_.plan.windows.at(op_.window); }
  [[nodiscard]] std::uint64_t newest_key(std::uint32_t row) const {
    return key_tiles() + (row + 1) * resident_stride() - tile_elements_;
  }
  [[nodiscard]] std::uint64_t newest_value(std::uint32_t row) const {
    return newest_key(row) + value_tiles() - key_tiles();
  }
  /// Elements of the cache from a K tile to the V tile of the same positions.
  [[nodiscard]] std::uint64_t values() const {
    return layout_.key_rows() * context_.plan.cache_stride;
  }
  [[nodiscard]] std::uint64_t half_elements() const {
    return (context_.plan.other_keys.first - context_.plan.key_tiles.first) * tile_elements_;
  }
  void add_half(Gp to) const;
  void set_region(Gp to, std::uint64_t index) const;
  void add_kept(Gp to, const Block& place) const;
  void subtract_kept(Gp to, const Block& place) const;
  void set_resident_sweep(Gp from, Gp last) const;
  void load_row(std::uint32_t row) const;
  void load_older_row(std::uint32_t row) const;
  void load_newest_row(std::uint32_t row) const;
  void load_tiles(Gp key, Gp last, Gp key_to) const;

  const KernelContext& context_;
  Emitter& e_;
  const AttentionOp& op_;
  const HeadLayout& layout_;
  std::uint64_t tile_elements_;
};

/// Loads the tiles in sight one after the other, where heads take one row and there is no window.
class TileLoads {
 public:
  enum class Which : std::uint8_t { NextLayersKeys, Values };
  TileLoads(const CacheTiles& cache, Which which);

  void load_one() const;

 private:
  const CacheTiles& cache_;
  HeldGp from_;
  HeldGp to_;
};

}  // namespace plena
