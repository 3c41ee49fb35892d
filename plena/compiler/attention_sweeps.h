// Inside attention: sweeps over the tiles of positions that kernels share. Each takes what else is
// to be done for a tile of positions along, so that one loop serves for both.
#pragma once

#include <cstdint>
#include <functional>

#include "plena/compiler/attention_tile.h"

namespace plena {

/// Emitted once a turn of a sweep, with pointers of its own.
using Rider = std::function<void()>;

/// heads[slot][group] = query row of the group, in the lanes of the slot only.
void emit_isolated_queries(const AttentionTile& tile);

/// group_sums[group] = the sums of the weights of its heads, in the first BLEN lanes of their
/// slots: products with a tile of ones, slot by slot. Rows of a block beyond the groups are
/// nobody's.
class WeightSums {
 public:
  /// Those of the groups from `first` on, BLEN at most, from slot `slot` on.
  WeightSums(const AttentionTile& tile, std::uint64_t first, std::uint64_t slot);

  /// The sums of the next slot, the i-th since the last move_on().
  void sweep(std::uint64_t i, const Rider& rider = {}) const;
  void move_on(std::uint64_t slots) const;

 private:
  const AttentionTile& tile_;
  Emitter& e_;
  HeldGp ones_;
  HeldGp sums_;
  HeldGp slot_;
  HeldGp span_;
};

/// group_scales = group_sums, each sum in all lanes of its slot.
void emit_spread_sums(const AttentionTile& tile);

/// The attention's rows times 1 / sum, which group_scales has by lanes, or the sums where those are
/// products.
void emit_scaled_groups(const AttentionTile& tile);

/// The weighted sums of V for the heads of a slot, BLEN columns at a time; see value_sums.cc.
class ValueColumns {
 public:
  /// For the groups from `first` on, BLEN at most.
  ValueColumns(const AttentionTile& tile, std::uint64_t first);

  /// Whether that takes fewer cycles than all columns head by head.
  static bool pay(const AttentionTile& tile);

  /// Column blocks of a slot.
  static std::uint64_t blocks(const AttentionTile& tile);

  /// The next columns of the slot, the i-th since the last move_on().
  void sweep(std::uint64_t i, const Rider& rider = {}) const;
  void move_on(std::uint64_t columns) const;
  void next_slot() const;

  /// All columns of the next slots.
  void sweep_slots(std::uint64_t slots) const;

 private:
  const AttentionTile& tile_;
  Emitter& e_;
  HeldGp out_;
  HeldGp scores_;  // of the slot
  HeldGp value_;
  HeldGp last_;
  HeldGp back_;  // from behind the last tile to the start of the next columns
};

}  // namespace plena
