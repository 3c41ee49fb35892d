// Rows that come from HBM for a block of tokens, and those that go there: masks, rows of positions,
// embeddings, keys and values.

#include <algorithm>

#include "plena/compiler/block_kernels.h"

namespace plena {

namespace {

void load_tile(const BlockContext& context, const Block& to, std::string_view what) {
  Emitter& e = context.emitter;
  HeldGp tile(e, "tile");
  e.set(tile, context.tile(to));
  e.emit(Op::H_PREFETCH_M, {tile, context.weights, kWeightsBase, kContiguous, kWeights}, what);
  e.advance(context.weights, context.tiled.tile_elements());
}

// The first tiles of the weight stream.
void load_constant_tiles(const BlockContext& context) {
  if (context.tiled.rotates()) {
    load_tile(context, context.plan.rotation, "RoPE permutation, for all layers");
  }
  load_tile(context, context.block.ones, "ones");
  load_tile(context, context.block.spread, "first lanes to slots");
}

// One row of the constants' mask for each token, the next one's a lane further: `to` on, from
// element `from` on.
void load_mask_rows(const BlockContext& context, Gp from, std::uint64_t to) {
  Emitter& e = context.emitter;
  HeldGp row(e, "mask of the token");
  HeldGp lane(e, "1");
  e.set(row, to, "masks");
  e.set(lane, 1);
  Loop tokens(e, context.block.tokens, "tokens");
  e.emit(Op::H_PREFETCH_V, {row, from, kConstantsBase, kContiguous, kActivation});
  e.advance(row, context.settings.vlen);
  e.emit(Op::S_SUB_INT, {from, from, lane});
}

// A row of the triangle for each token, from the first one's lane on.
void load_causal_masks(const BlockContext& context) {
  Emitter& e = context.emitter;
  const std::uint64_t mlen = context.tiled.mlen;
  HeldGp from(e, "element of the triangle");
  HeldGp row(e, "masks");
  load_kept(context, from, context.plan.last_lane, "lane of the first token");
  e.set(row, mlen);
  e.emit(Op::S_MUL_INT, {from, from, row});
  e.advance(from, constant_rows(context.tiled).triangle * mlen, "its row of the triangle");
  e.set(row, context.rows(context.block.mask), "masks");
  load_rows(context, from, kConstantsBase, row, context.block.tokens);
}

// The same mask for every token: what is behind the last one.
void load_common_mask(const BlockContext& context, Gp from) {
  Emitter& e = context.emitter;
  HeldGp first(e, "mask");
  HeldGp row(e, "mask of the token");
  e.set(first, context.rows(context.block.mask), "mask");
  e.emit(Op::H_PREFETCH_V, {first, from, kConstantsBase, kContiguous, kActivation});
  e.offset(row, first, context.settings.vlen);
  Loop tokens(e, context.block.tokens - 1, "other tokens");
  e.emit(Op::V_ADD_VF, {row, first, kZeroFp, kAllLanes});
  e.advance(row, context.settings.vlen);
}

// A window of the mask hides every lane above `lane` where it starts MLEN - 1 - lane behind the
// mask's start, and every lane below where it starts 3 MLEN - lane behind it.
void load_block_masks(const BlockContext& context) {
  Emitter& e = context.emitter;
  const std::uint64_t mlen = context.tiled.mlen;
  const std::uint64_t start = constant_rows(context.tiled).mask * mlen;
  HeldGp from(e, "element of the mask");
  HeldGp lane(e, "lane");
  e.set(from, start + mlen - 1);
  {
    HeldGp row(e, "first lane");
    e.set(row, context.row(context.block.first_lane), "first lane");
    e.emit(Op::H_PREFETCH_V, {row, from, kConstantsBase, kContiguous, kActivation});
  }
  if (context.tiled.causal()) {
    load_causal_masks(context);
  } else {
    load_kept(context, lane, context.plan.last_lane, context.plan.last_lane.name);
    e.emit(Op::S_SUB_INT, {from, from, lane});
    load_common_mask(context, from);
  }
  for (const auto& [width, places] : context.block.windows) {
    for (const std::uint64_t tile : {0U, 1U}) {
      e.set(from, start + (3 + tile) * mlen);
      load_kept(context, lane, places.edge_lane, places.edge_lane.name);
      e.emit(Op::S_SUB_INT, {from, from, lane});
      load_mask_rows(context, from, context.rows(places.masks, tile));
    }
  }
}

// Each token's rows and, behind them, their other terms, which are added to them.
void load_block_positions(const BlockContext& context) {
  const TableShape& table = context.tables.positions;
  if (table.rows == 0) return;
  Emitter& e = context.emitter;
  const std::uint64_t vlen = context.settings.vlen;
  {
    HeldGp from(e, "element of the position table");
    HeldGp to(e, "rows of positions");
    load_kept(context, from, context.plan.position_entry, "rows of the first position");
    e.set(to, context.row(context.block.position_rows), "rows of positions");
    load_rows(context, from, kPositionsBase, to, table.stored_rows() * context.block.tokens);
  }
  // One term of all tokens after the other: a sum is not waited for.
  for (std::uint32_t i = 1; i < table.terms; ++i) {
    HeldGp sum(e, "sum");
    HeldGp term(e, "term");
    e.set(sum, context.row(context.block.position_rows), "rows of positions");
    e.set(term, context.row(context.block.position_rows, i * table.rows), "their next terms");
    const std::uint64_t copies = abreast(table.rows, std::min<std::uint64_t>(table.rows, 4));
    Loop tokens(e, context.block.tokens, "tokens");
    {
      Loop rows(e, table.rows / copies, "rows");
      for (std::uint64_t row = 0; row < copies; ++row) {
        e.emit(Op::V_ADD_VV, {sum, sum, term, kAllLanes});
        e.advance(sum, vlen);
        e.advance(term, vlen);
      }
    }
    e.advance(sum, (table.stored_rows() - table.rows) * vlen);
    e.advance(term, (table.stored_rows() - table.rows) * vlen);
  }
}

// The first rows of the embedding, which lie as a block's rows do.
void load_rows_in_order(const BlockContext& context) {
  Emitter& e = context.emitter;
  const Graph& graph = *context.tiled.graph;
  const std::uint64_t tiles = context.tiled.dim_tiles;
  HeldGp tile(e, "element of the tile's rows");
  HeldGp to(e, "rows of the tile");
  e.set(tile, 0, "first row of the tile");
  e.set(to, context.rows(graph.residual), "rows of the tile");
  Loop loop(e, tiles, "tiles");
  {
    HeldGp from(e, "element");
    HeldGp row(e, "row");
    e.copy(from, tile);
    e.copy(row, to);
    load_rows(context, from, kEmbeddingBase, row, context.block.tokens);
  }
  step(context, tile, std::uint64_t{graph.vocab} * context.tiled.mlen, tiles);
  step(context, to, context.tile_rows(), tiles);
}

// Row `token * width` of the embedding for every token, in rows that no other transfer writes: one
// that does would wait for it.
void stage_embeddings(const BlockContext& context) {
  Emitter& e = context.emitter;
  const std::uint64_t tiles = context.tiled.dim_tiles;
  HeldGp index(e, "token");
  HeldGp to(e, "embedding of the token");
  HeldGp width(e, "elements of an embedding");
  e.set(index, 0, "first token");
  e.set(to, context.row(context.block.staged), "embeddings");
  e.set(width, tiles * context.tiled.mlen);
  Loop tokens(e, context.block.tokens, "tokens");
  HeldGp from(e, "element of the embedding");
  HeldGp row(e, "row");
  load_kept(context, from, context.plan.token, "token", index);
  e.emit(Op::S_MUL_INT, {from, from, width});
  e.copy(row, to);
  load_rows(context, from, kEmbeddingBase, row, tiles);
  e.advance(to, context.block.staged_rows * context.settings.vlen);
  e.advance(index, 1);
}

// Tile by tile to the residual stream, with the position's embedding where it is learned.
void write_residual(const BlockContext& context) {
  Emitter& e = context.emitter;
  const Graph& graph = *context.tiled.graph;
  const std::uint64_t vlen = context.settings.vlen;
  const std::uint64_t tiles = context.tiled.dim_tiles;
  const std::uint64_t angles = 2 * graph.rotary.size() * context.tiled.heads.span;
  HeldGp x(e, "residual");
  HeldGp first(e, "tile of the first embedding");
  HeldGp first_learned(e, "tile of the first position's");
  e.set(x, context.rows(graph.residual), "residual");
  e.set(first, context.row(context.block.staged), "embeddings");
  e.set(first_learned, context.row(context.block.position_rows, angles), "learned embeddings");
  Loop loop(e, tiles, "tiles");
  {
    HeldGp from(e, "embedding of the token");
    HeldGp learned(e, "embedding of the position");
    e.copy(from, first);
    e.copy(learned, first_learned);
    const std::uint64_t copies = abreast(context.block.tokens, kRowsAbreast);
    Loop tokens(e, context.block.tokens / copies, "tokens");
    for (std::uint64_t i = 0; i < copies; ++i) {
      if (graph.positions) {
        e.emit(Op::V_ADD_VV, {x, from, learned, kAllLanes});
        e.advance(learned, context.tables.positions.stored_rows() * vlen);
      } else {
        e.emit(Op::V_ADD_VF, {x, from, kZeroFp, kAllLanes});
      }
      e.advance(x, vlen);
      e.advance(from, context.block.staged_rows * vlen);
    }
  }
  e.advance(first, vlen);
  e.advance(first_learned, vlen);
}

}  // namespace

void emit_block_setup(const BlockContext& context) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "setup");
  emit_shared_setup(context);
  if (context.tiled.attends()) {
    load_constant_tiles(context);
    load_block_masks(context);
  } else {
    e.advance(context.weights, context.tiled.constant_tiles() * context.tiled.tile_elements(),
              "behind what attention needs");
  }
  load_block_positions(context);
}

void emit_block_embedding(const BlockContext& context) {
  const RegionScope region(context.emitter, "embedding");
  if (context.tiled.graph->rows_in_order) return load_rows_in_order(context);
  stage_embeddings(context);
  write_residual(context);
}

void emit_block_cache_append(const BlockContext& context, ValueId qkv) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "cache_append");
  const std::uint64_t amount = context.settings.hbm_v_writeback_amount;
  HeldGp row(e, "k, v");
  HeldGp to(e, "element of the cache");
  {
    HeldGp layer(e, "cache of the layer");
    load_kept(context, to, context.plan.cache_row, "first position * MLEN");
    load_kept(context, layer, context.plan.cache_at, "cache of this layer");
    e.emit(Op::S_ADD_INT, {to, to, layer});
  }
  e.set(row, context.rows(qkv, context.block.query_rows), "k, v");
  Loop regions(e, context.tiled.cache_regions(), "rows of k and v");
  {
    HeldGp position(e, "element of the region");
    e.copy(position, to);
    Loop tokens(e, context.block.tokens / amount, "tokens, a transfer at a time");
    e.emit(Op::H_STORE_V, {row, position, kCacheBase, kContiguous, kKeyValue});
    e.advance(row, amount * context.settings.vlen);
    e.advance(position, amount * context.settings.vlen);
  }
  e.advance(to, context.plan.cache_stride);
}

void emit_block_pick_token(const BlockContext& context, ValueId value) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "pick_token");
  const std::uint64_t tiles = context.tiled.rows(value);
  HeldGp from(e, "row of the last token");
  HeldGp to(e, "row");
  load_kept(context, to, context.plan.last_token, "token whose logits are wanted");
  e.set(from, context.settings.vlen);
  e.emit(Op::S_MUL_INT, {from, from, to});
  e.advance(from, context.rows(value), "its rows");
  e.set(to, context.row(context.plan.values[value]), "rows of one token");
  Loop loop(e, tiles, "rows");
  e.emit(Op::V_ADD_VF, {to, from, kZeroFp, kAllLanes});
  step(context, to, context.settings.vlen, tiles);
  step(context, from, context.tile_rows(), tiles);
}

}  // namespace plena
