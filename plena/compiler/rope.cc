// Rotary embedding of neighbouring pairs: x cos + P x sin, where P swaps the elements of a pair
// and negates the first: one product with a tile of 0 and ±1.

#include "plena/compiler/kernels.h"

namespace plena {

void emit_rope(const KernelContext& context) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "rope");
  const HeadLayout& heads = context.tiling.heads;
  const std::uint64_t rows = std::uint64_t{heads.query_tiles()} + heads.tiles;
  HeldGp x(e, "q, k");
  HeldGp tile(e, "permutation");
  HeldGp swapped(e, "P x");
  HeldGp cosines(e, "cosines");
  HeldGp sines(e, "sines");
  e.set(x, context.row(context.plan.qkv), "q, k");
  e.set(tile, context.tile(context.plan.rotation), "P");
  e.set(swapped, context.row(context.plan.scratch), "P x");
  e.set(cosines, context.row(context.plan.rope_rows), "cosines");
  e.set(sines, context.row(context.plan.rope_rows, context.rope_terms), "sines");
  Loop loop(e, rows, "query and key rows");
  e.emit(Op::M_MV, {x, tile});
  e.emit(Op::M_MV_WO, {swapped, 0});
  e.emit(Op::V_MUL_VV, {swapped, swapped, sines, kAllLanes});
  e.emit(Op::V_MUL_VV, {x, x, cosines, kAllLanes});
  e.emit(Op::V_ADD_VV, {x, x, swapped, kAllLanes});
  step(context, x, context.settings.vlen, rows);
}

void emit_cache_append(const KernelContext& context) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "cache_append");
  const std::uint64_t amount = context.settings.hbm_v_writeback_amount;
  const std::uint64_t stores = (context.tiling.cache_tiles() + amount - 1) / amount;
  HeldGp row(e, "k, v");
  HeldGp to(e, "element of the cache");
  e.emit(Op::S_LD_INT, {to, kZeroGp, context.plan.cache_row.first}, "position * MLEN");
  e.emit(Op::S_ADD_INT, {to, to, context.cache});
  e.set(row, context.row(context.plan.qkv, context.tiling.heads.query_tiles()), "k, v");
  Loop loop(e, stores, "stores");
  // Rows behind v go to the next layer's regions, which that layer overwrites before it reads
  // them; behind the last layer the plan leaves room.
  e.emit(Op::H_STORE_V, {row, to, kCacheBase, kStrided, kKeyValue}, "row i to region i");
  step(context, row, amount * context.settings.vlen, stores);
  step(context, to, amount * context.plan.cache_stride, stores);
}

}  // namespace plena
