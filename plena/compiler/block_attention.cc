// Attention of a block of tokens over the cache, one tile of K lanes at a time. The scores of all
// tiles of positions in sight come first, then the softmax of all their rows with a running maximum
// over the tiles; the sums of weights are products with a tile of ones. Last come the weighted sums
// of V, tile by tile. K and V stream through Matrix SRAM, so that a context of any length does.
//
// Where the scores of all tiles do not fit Vector SRAM, they come tile by tile
// (running_block_attention.cc).
//
// Tiles behind the block and before its windows are not visited; the last one gets the causal mask,
// and the two that windows may begin in theirs.

#include "plena/compiler/block_attention.h"

namespace plena {

namespace {

// A loop over the tiles of positions in sight. What it needs stays in INT_MEM while the body runs.
class TileWalk {
 public:
  explicit TileWalk(const BlockContext& context)
      : context_(context),
        loop_(context.emitter, kAtLeastTwo, context.block.walk_left.first, "tiles of positions") {}
  TileWalk(const TileWalk&) = delete;
  TileWalk& operator=(const TileWalk&) = delete;
  // The loop takes up as its count the way that is left, 0 behind the last tile.
  ~TileWalk() {
    Emitter& e = context_.emitter;
    HeldGp at(e, "tile of positions");
    HeldGp left(e, "left to walk");
    load_kept(context_, at, context_.block.walk_at, "tile of positions");
    load_kept(context_, left, context_.block.walk_end, "end of the tiles in sight");
    e.emit(Op::S_SUB_INT, {left, left, at}, "left to walk: 0 ends the loop");
    keep(context_, left, context_.block.walk_left);
  }

 private:
  static constexpr std::uint64_t kAtLeastTwo = 2;  // so that there is a loop
  const BlockContext& context_;
  OuterLoop loop_;
};

// walk_at … walk_end: the tiles in sight, of a region of the cache.
void start_walk(const BlockContext& context, const AttentionOp& op, std::uint64_t region) {
  Emitter& e = context.emitter;
  HeldGp at(e, "tile of positions");
  HeldGp end(e, "end of the tiles in sight");
  HeldGp t(e, "regions, tiles");
  e.set(at, region * context.plan.cache_stride, "region");
  load_kept(context, t, context.plan.keys_at, "regions of this tile");
  e.emit(Op::S_ADD_INT, {at, at, t});
  load_kept(context, end, context.plan.cache_end, "end of the tiles in sight");
  e.emit(Op::S_ADD_INT, {end, end, at});
  keep(context, end, context.block.walk_end);
  if (op.window != 0) {
    e.set(end, context.tiled.tile_elements());
    load_kept(context, t, context.block.windows.at(op.window).first_tile, "first tile in sight");
    e.emit(Op::S_MUL_INT, {t, t, end});
    e.emit(Op::S_ADD_INT, {at, at, t});
  }
  keep(context, at, context.block.walk_at);
}

// The `span` tiles `distance` behind walk_at to `to`, which moves on.
void fetch(const BlockContext& context, Gp to, std::uint64_t distance = 0) {
  Emitter& e = context.emitter;
  const std::uint64_t tile_elements = context.tiled.tile_elements();
  const std::uint64_t span = context.tiled.heads.span;
  HeldGp from(e, "tile of positions");
  load_kept(context, from, context.block.walk_at, "tile of positions");
  if (distance != 0) e.advance(from, distance, "V of the tile before");
  for (std::uint64_t row = 0; row < span; ++row) {
    e.emit(Op::H_PREFETCH_M, {to, from, kCacheBase, kContiguous, kKeyValue});
    if (row + 1 == span) break;
    e.advance(to, tile_elements);
    e.advance(from, context.plan.cache_stride);
  }
}

void fill_rows(const BlockContext& context, std::uint64_t first, std::uint64_t rows, Fp value) {
  Emitter& e = context.emitter;
  const std::uint64_t copies = abreast(rows, kRowsAbreast);
  const RowsAbreast row(context, copies, "rows to clear");
  HeldGp zeros(e, "zeros");
  row.set(first);
  e.set(zeros, context.row(context.plan.selectors), "zeros");
  Loop loop(e, rows / copies, "rows");
  for (std::uint64_t i = 0; i < copies; ++i) {
    e.emit(Op::V_ADD_VF, {row[i], zeros, value, kAllLanes});
  }
  row.advance();
}

// What products add up to; and 1 in lanes that no head has, which are divided by. Those of the
// addends nobody ever writes: they are 0.
void clear_sums(const BlockContext& context, const AttentionOp& op) {
  const HeadLayout& heads = context.tiled.heads;
  const std::uint64_t tokens = context.block.tokens;
  const auto clear = [&](std::uint64_t first, std::uint64_t rows) {
    fill_rows(context, first, rows * tokens, kZeroFp);
  };
  clear(context.rows(op.to), heads.query_rows());
  clear(context.rows(context.block.denominators), std::uint64_t{heads.tiles} * heads.groups);
  HeldFp one(context.emitter, "1");
  context.constants.load(context.emitter, one, 1.0F, "1");
  fill_rows(context, context.rows(context.block.quotients), tokens, one);
}

void start_tiles(const BlockContext& context, const AttentionOp& op) {
  Emitter& e = context.emitter;
  HeldGp at(e, "address");
  load_kept(context, at, context.plan.cache_at, "cache of this layer");
  keep(context, at, context.plan.keys_at);
  e.set(at, context.rows(op.qkv), "queries");
  keep(context, at, context.plan.queries_at);
  e.set(at, context.rows(op.to), "outputs");
  keep(context, at, context.block.outputs_at);
  e.set(at, context.rows(context.block.denominators), "denominators");
  keep(context, at, context.block.sums_at);
}

void next_tile(const BlockContext& context, const AttentionOp& op) {
  const HeadLayout& heads = context.tiled.heads;
  if (op.sinks) advance_kept(context, context.plan.sinks_at, heads.heads_per_tile());
  if (heads.tiles == 1) return;
  const std::uint64_t rows = context.tile_rows();
  advance_kept(context, context.plan.keys_at, heads.span * context.plan.cache_stride);
  advance_kept(context, context.plan.queries_at, context.block.query_rows / heads.tiles * rows);
  advance_kept(context, context.block.outputs_at, heads.groups * heads.span * rows);
  advance_kept(context, context.block.sums_at, heads.groups * rows);
}

}  // namespace

void walk_cache(const BlockContext& context, const AttentionOp& op, std::uint64_t region,
                const std::function<void(Gp tile)>& body) {
  Emitter& e = context.emitter;
  const std::uint64_t tile_elements = context.tiled.tile_elements();
  const std::uint64_t first = context.tile(context.block.pool);
  const std::uint64_t second = first + context.block.slot_pitch * tile_elements;
  start_walk(context, op, region);
  HeldGp tile(e, "tile in use");
  const bool ahead = context.block.slots == 2;
  if (ahead) {
    e.set(tile, first, "slot to fill");
    fetch(context, tile);
  }
  e.set(tile, first, "slot in use");
  TileWalk walk(context);
  {
    HeldGp to(e, "slot to fill");
    if (ahead) {
      advance_kept(context, context.block.walk_at, tile_elements);
      e.set(to, first + second);
      e.emit(Op::S_SUB_INT, {to, to, tile}, "the other slot");
      fetch(context, to);
    } else {
      e.copy(to, tile);
      fetch(context, to);
      advance_kept(context, context.block.walk_at, tile_elements);
    }
  }
  body(tile);
  if (!ahead) return;
  HeldGp both(e, "both slots");
  e.set(both, first + second);
  e.emit(Op::S_SUB_INT, {tile, both, tile}, "the other slot");
}

// The walk is one tile ahead of its body.
void fetch_values(const BlockContext& context, Gp to) {
  const std::uint64_t values = context.tiled.heads.key_rows() * context.plan.cache_stride;
  fetch(context, to, values - context.tiled.tile_elements());
}

void emit_block_attention(const BlockContext& context, const AttentionOp& op) {
  emit_block_cache_append(context, op.qkv);
  const RegionScope region(context.emitter, "attention");
  clear_sums(context, op);
  start_tiles(context, op);
  OuterLoop tiles(context.emitter, context.tiled.heads.tiles, context.block.kv_tiles.first,
                  "tiles of K lanes");
  if (context.block.tile_by_tile) {
    emit_running_block_attention(context, op);
  } else {
    emit_block_scores(context, op);
    emit_block_softmax(context, op);
    emit_block_values(context, op);
  }
  next_tile(context, op);
}

}  // namespace plena
