// The parts of attention over a block of tokens, for one tile of K lanes and the heads that share
// it. Scores lie tile of positions by tile of positions, behind a row set for sinks:
// [sinks, tiles in sight][heads][tokens].
#pragma once

#include <cstdint>
#include <functional>

#include "plena/compiler/block_kernels.h"

namespace plena {

/// scores = K q of all tiles in sight, masked; sinks before them. Leaves in INT_MEM where they end.
void emit_block_scores(const BlockContext& context, const AttentionOp& op);

/// exp(score - maximum of its row over all tiles), in place.
void emit_block_softmax(const BlockContext& context, const AttentionOp& op);

/// outputs = weights V / sum of weights.
void emit_block_values(const BlockContext& context, const AttentionOp& op);

/// All three for contexts whose scores do not fit (BlockPlan::tile_by_tile): the scores of one tile
/// of positions at a time, in the rows of the first; once for the running maxima, and once more for
/// the weights and running sums, so that the results are the same bits.
void emit_running_block_attention(const BlockContext& context, const AttentionOp& op);

/// What comes before any tile: queries head by head, and sinks in their rows.
void start_tile_scores(const BlockContext& context, const AttentionOp& op);
/// The scores of the tile that score_at points to, not masked.
void emit_tile_scores(const BlockContext& context, const AttentionOp& op, Gp tile);

/// Sinks, whose rows hold their weights, and the place of the tiles' weights.
void start_tile_values(const BlockContext& context, const AttentionOp& op);
/// outputs, sums of weights += those of one tile of V.
void emit_tile_values(const BlockContext& context, const AttentionOp& op, Gp tile);
/// outputs /= sums of weights.
void finish_tile_values(const BlockContext& context, const AttentionOp& op);

/// Runs `body(tile)` for the `span` tiles of each tile of positions in sight, from region `region`
/// of the cache on; the next ones are fetched meanwhile.
void walk_cache(const BlockContext& context, const AttentionOp& op, std::uint64_t region,
                const std::function<void(Gp tile)>& body);

/// Within a body: fetches the V tiles of the positions of its K tiles to `to`; moves `to` on.
void fetch_values(const BlockContext& context, Gp to);

/// Elements from the scores of one tile of positions to those of the next one.
inline std::uint64_t score_stride(const BlockContext& context) {
  return context.block.score_rows * context.settings.vlen;
}
/// Address of the scores of the first tile in sight.
inline std::uint64_t first_scores(const BlockContext& context) {
  return context.row(context.block.scores) + score_stride(context);
}

/// Moves on what is kept in INT_MEM of where things start.
inline void advance_kept(const BlockContext& context, const Block& place, std::uint64_t amount) {
  HeldGp at(context.emitter, place.name);
  load_kept(context, at, place, place.name);
  context.emitter.advance(at, amount);
  keep(context, at, place);
}

}  // namespace plena
