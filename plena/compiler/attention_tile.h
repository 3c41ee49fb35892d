// Inside attention: one tile of K lanes with the heads that share it, and the stages
// that work on it, one file each. Not for other kernels; they use kernels.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "plena/compiler/cache_tiles.h"
#include "plena/compiler/kernels.h"

namespace plena {

struct AttentionTile {
  const KernelContext& context;
  const AttentionOp& op;
  const CacheTiles& cache;

  [[nodiscard]] const HeadLayout& layout() const { return context.tiled.heads; }
  [[nodiscard]] std::uint64_t vlen() const { return context.settings.vlen; }
  [[nodiscard]] std::uint64_t tile_elements() const { return context.tiled.tile_elements(); }
  [[nodiscard]] const WindowPlaces& window() const { return context.plan.windows.at(op.window); }

  [[nodiscard]] std::uint64_t head_count() const { return layout().heads_per_tile(); }
  /// Heads share rows of Q, K and V.
  [[nodiscard]] bool shared_rows() const { return layout().slots > 1; }
  /// Elements from a head's scores with one tile of positions to those with the next.
  [[nodiscard]] std::uint64_t score_stride() const { return head_count() * vlen(); }

  /// Sums of weights come from emit_denominators(): where that takes fewer cycles than a V_RED_SUM
  /// a row of scores, and there is room for the tiles it needs.
  [[nodiscard]] bool sums_are_products() const;

  /// The row of a value that belongs to this tile, `row` behind the first.
  void set_rows(Gp to, ValueId value, std::uint32_t row, std::string_view what) const;
};

class ScoreMaxima;

/// Whether emit_overlapped_slots() can stand for all that follows: heads share rows, K and V are in
/// Matrix SRAM as a whole, and all scores count as they come.
bool slots_overlap(const AttentionTile& tile);

/// The attention's rows of this tile, slot by slot: while the array makes the scores of one, those
/// of the slot before find their maximum and those of the slot before that become weights.
void emit_overlapped_slots(const AttentionTile& tile);

/// All of it tile by tile of positions, with a running maximum and sum
/// (MemoryPlan::running_softmax).
void emit_running_attention(const AttentionTile& tile);

/// scores[tile][head] = q k of the positions in sight, masked; last_scores = how far those of the
/// newest tile are behind the first. `maxima`, where there are any, are found on the way.
void emit_scores(const AttentionTile& tile, const ScoreMaxima* maxima);

/// scores = exp(score - maximum) of all heads at once.
void emit_exponentials(const AttentionTile& tile, const ScoreMaxima& maxima);

/// The same a few heads at a time, where it is still to do, and their sums, unless they are
/// products. 1 / sum goes to FP_MEM where heads have rows of their own, else into the lanes of the
/// head's slot, in the row of its group.
void emit_softmax(const AttentionTile& tile, bool exponentiated);

/// The sums of weights into the lanes of the head's slot, in the row of its group.
void emit_denominators(const AttentionTile& tile);

/// The attention's rows of this tile from weights and V.
void emit_value_sums(const AttentionTile& tile);

}  // namespace plena
