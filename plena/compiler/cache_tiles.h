// Where attention finds the cache: K and V tiles of one tile of lanes, in HBM and, where those of
// the whole context fit, in Matrix SRAM.
#pragma once

#include <cstdint>

#include "plena/compiler/kernels.h"

namespace plena {

/// What the tokens of a block share of one tile of K lanes: its regions of the cache.
class CacheTiles {
 public:
  CacheTiles(const KernelContext& context, const AttentionOp& op)
      : context_(context),
        e_(context.emitter),
        op_(op),
        layout_(context.tiled.heads),
        tile_elements_(context.tiled.tile_elements()) {}

  [[nodiscard]] bool resident() const { return context_.plan.key_tiles.count != 0; }

  /// Whether all tiles but the one of this position can be loaded before its key is known: where
  /// one token looks at one tile of lanes, whose tiles nothing else uses.
  [[nodiscard]] bool loads_early() const {
    return resident() && context_.tokens == 1 && layout_.tiles == 1;
  }

  /// From a row of a head to the next one's tile of the same positions, in Matrix SRAM.
  [[nodiscard]] std::uint64_t resident_stride() const {
    return context_.tiled.context_tiles * tile_elements_;
  }

  /// K and V of all positions in sight of the block.
  void load() const;

  /// The tiles of this position once more, behind a load() that did not see its key and value.
  void load_newest() const;

  /// from … end: offsets of the tiles in sight of a token in a region that starts at `base`.
  void set_walk(Gp from, Gp end, std::uint64_t base, Gp first_token, Gp last_token) const;

  /// The same in region `index` of the cache in HBM.
  void set_region_walk(Gp from, Gp end, std::uint64_t index, Gp first_token, Gp last_token) const;

 private:
  [[nodiscard]] std::uint64_t key_tile(std::uint32_t row) const {
    return context_.tile(context_.plan.key_tiles) + row * resident_stride();
  }
  [[nodiscard]] std::uint64_t value_tile(std::uint32_t row) const {
    return context_.tile(context_.plan.value_tiles) + row * resident_stride();
  }
  void load_row(std::uint32_t row) const;
  void load_newest(std::uint32_t row) const;

  const KernelContext& context_;
  Emitter& e_;
  const AttentionOp& op_;
  const HeadLayout& layout_;
  std::uint64_t tile_elements_;
};

}  // namespace plena
