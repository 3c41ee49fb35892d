// Keys and values of this position to the cache in HBM.

#include "plena/compiler/kernels.h"

namespace plena {

void emit_cache_append(const KernelContext& context, ValueId qkv) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "cache_append");
  const std::uint64_t amount = context.settings.hbm_v_writeback_amount;
  const std::uint64_t stores = (context.tiled.cache_regions() + amount - 1) / amount;
  HeldGp row(e, "k, v");
  HeldGp to(e, "element of the cache");
  {
    HeldGp layer(e, "cache of the layer");
    load_kept(context, to, context.plan.cache_row, "position * MLEN");
    load_kept(context, layer, context.plan.cache_at, "cache of this layer");
    e.emit(Op::S_ADD_INT, {to, to, layer});
  }
  e.set(row, context.row(qkv, context.tiled.heads.query_rows()), "k, v");
  Loop loop(e, stores, "stores");
  // Rows behind v go to the next layer's regions, which that layer overwrites before it reads
  // them; behind the last layer the plan leaves room.
  e.emit(Op::H_STORE_V, {row, to, kCacheBase, kStrided, kKeyValue}, "row i to region i");
  step(context, row, amount * context.settings.vlen, stores);
  step(context, to, amount * context.plan.cache_stride, stores);
}

}  // namespace plena
