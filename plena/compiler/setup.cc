// What a token needs once: base addresses, constant rows, and the rows that follow from the
// position.

#include <algorithm>

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

void set_base(const KernelContext& context, AddressRegister base, const HbmTensor& tensor,
              std::string_view what) {
  if (tensor.elements == 0) return;
  Emitter& e = context.emitter;
  HeldGp low(e, "low word");
  e.set(low, tensor.base & UINT32_MAX);
  const std::uint64_t high_word = tensor.base >> 32;
  if (high_word == 0) return e.emit(Op::C_SET_ADDR_REG, {base, kZeroGp, low}, what);
  HeldGp high(e, "high word");
  e.set(high, high_word);
  e.emit(Op::C_SET_ADDR_REG, {base, high, low}, what);
}

void set_hbm_registers(const KernelContext& context) {
  Emitter& e = context.emitter;
  set_base(context, kWeightsBase, context.plan.weights.windows.front(), "weights");
  set_base(context, kCacheBase, context.plan.cache.windows.front(), "KV cache");
  set_base(context, kEmbeddingBase, context.plan.embedding, "embedding");
  set_base(context, kPositionsBase, context.plan.position_table, "rows of positions");
  set_base(context, kConstantsBase, context.plan.constants, "constants");
  set_base(context, kVectorsBase, context.plan.vector_table, "biases and gains");
  set_base(context, kExpertVectorsBase, context.plan.expert_table, "biases of experts");
  HeldGp value(e, "register value");
  e.set(value, context.plan.scale_offset);
  e.emit(Op::C_SET_SCALE_REG, {value}, "all scales lie this far behind their elements");
  e.set(value, context.plan.cache_stride);
  e.emit(Op::C_SET_STRIDE_REG, {value}, "from one K or V tile region to the next");
}

void start_layers(const KernelContext& context) {
  const MemoryPlan& plan = context.plan;
  if (plan.layer_places.count != 0) {
    HeldGp entry(context.emitter, "window of the layer");
    context.emitter.set(entry, plan.layer_places.first, "windows of the first layer");
    keep(context, entry, plan.layer_place_at);
  }
  if (plan.sequence_at.count != 0) {
    HeldGp cache(context.emitter, "cache");
    load_kept(context, cache, plan.sequence_at, "positions of the sequence");
    keep(context, cache, plan.cache_at);
  } else {
    keep(context, kZeroGp, plan.cache_at);
  }
  if (context.tables.vectors.rows != 0) keep(context, kZeroGp, plan.vectors_at);
  if (plan.expert_vectors.count != 0) keep(context, kZeroGp, plan.expert_vectors_at);
  if (plan.sinks.count == 0) return;
  HeldGp sinks(context.emitter, "sinks");
  context.emitter.set(sinks, plan.sinks.first, "sinks of the first layer");
  keep(context, sinks, plan.sinks_at);
}

void load_constants(const KernelContext& context, std::uint64_t first, const Block& to,
                    std::uint64_t rows) {
  Emitter& e = context.emitter;
  HeldGp from(e, "element of the constants");
  HeldGp row(e, to.name);
  e.set(from, first * context.tiled.mlen);
  e.set(row, context.row(to), to.name);
  load_rows(context, from, kConstantsBase, row, rows);
}

void load_constant_rows(const KernelContext& context) {
  const ConstantRows rows = constant_rows(context.tiled);
  load_constants(context, 0, context.plan.selectors, rows.router_padding);
  if (rows.router_rows == 0) return;
  load_constants(context, rows.router_padding, context.plan.router_padding, rows.router_rows);
}

// The window of the constants' mask that starts `lane` before element `start`.
void load_mask(const KernelContext& context, std::uint64_t start, const Block& lanes,
               const Block& masks) {
  Emitter& e = context.emitter;
  HeldGp from(e, "element of the mask");
  HeldGp t(e, "lane, mask");
  e.set(from, start);
  load_kept(context, t, lanes, lanes.name);
  e.emit(Op::S_SUB_INT, {from, from, t});
  e.set(t, context.row(masks), masks.name);
  load_rows(context, from, kConstantsBase, t, 1);
}

// The mask in HBM is MLEN zeros, 2 MLEN times the masking value, 2 MLEN zeros: a window of MLEN
// lanes that starts MLEN - 1 - lane behind its start masks every lane above `lane`; one that starts
// 3 MLEN - lane behind it every lane below.
void load_masks(const KernelContext& context) {
  const std::uint64_t mlen = context.tiled.mlen;
  const std::uint64_t start = constant_rows(context.tiled).mask * mlen;
  load_mask(context, start + mlen - 1, context.plan.last_lane, context.plan.mask);
  for (const auto& [width, places] : context.plan.windows) {
    load_mask(context, start + 3 * mlen, places.first_lane, places.mask);
  }
}

void load_position_rows(const KernelContext& context) {
  const TableShape& table = context.tables.positions;
  if (table.rows == 0) return;
  HeldGp from(context.emitter, "element of the position table");
  HeldGp to(context.emitter, "rows of the position");
  load_kept(context, from, context.plan.position_entry, "rows of this position");
  context.emitter.set(to, context.row(context.plan.position_rows), "rows of the position");
  load_rows(context, from, kPositionsBase, to, table.stored_rows());
}

// The weight stream starts with the tile of RoPE, where there is one, and the two for sums.
std::uint64_t rotation_tiles(const KernelContext& context) {
  return context.tiled.rotates() ? 1 : 0;
}

void load_constant_tile(const KernelContext& context, std::uint64_t index, const Block& to) {
  if (to.count == 0) return;
  Emitter& e = context.emitter;
  HeldGp tile(e, to.name);
  HeldGp from(e, "element of the weight stream");
  e.set(tile, context.tile(to));
  e.set(from, index * context.tiled.tile_elements());
  e.emit(Op::H_PREFETCH_M, {tile, from, kWeightsBase, kContiguous, kWeights}, to.name);
}

void skip_constant_tiles(const KernelContext& context) {
  context.emitter.advance(context.weights,
                          (rotation_tiles(context) + 2) * context.tiled.tile_elements());
}

}  // namespace

void emit_rotation_tile(const KernelContext& context) {
  if (context.tiled.rotates()) load_constant_tile(context, 0, context.plan.rotation);
}

void emit_sum_tiles(const KernelContext& context) {
  load_constant_tile(context, rotation_tiles(context), context.plan.ones);
  load_constant_tile(context, rotation_tiles(context) + 1, context.plan.spread);
}

void emit_constant_tiles(const KernelContext& context) {
  emit_rotation_tile(context);
  emit_sum_tiles(context);
  skip_constant_tiles(context);
}

void emit_layer_places(const KernelContext& context, bool ending) {
  const MemoryPlan& plan = context.plan;
  if (plan.layer_places.count == 0 || (ending && !plan.weights.windowed())) return;
  Emitter& e = context.emitter;
  const RegionScope region(e, "layer_windows");
  HeldGp entry(e, "windows of the layer");
  HeldGp low(e, "low word");
  HeldGp high(e, "high word");
  load_kept(context, entry, plan.layer_place_at, "windows of this layer");
  const auto set_window = [&](AddressRegister base, std::uint64_t at, std::string_view what) {
    e.emit(Op::S_LD_INT, {low, entry, at}, what);
    e.emit(Op::S_LD_INT, {high, entry, at + 1});
    e.emit(Op::C_SET_ADDR_REG, {base, high, low}, what);
  };
  std::uint64_t at = 0;
  if (plan.weights.windowed()) {
    set_window(kWeightsBase, at, "weights");
    e.emit(Op::S_LD_INT, {context.weights, entry, at + 2}, "first weights of the layer");
    at += 3;
  }
  if (plan.cache.windowed() && !ending) {
    set_window(kCacheBase, at, "KV cache");
    e.emit(Op::S_LD_INT, {low, entry, at + 2}, "cache of the layer");
    if (plan.sequence_at.count != 0) {
      load_kept(context, high, plan.sequence_at, "positions of the sequence");
      e.emit(Op::S_ADD_INT, {low, low, high});
    }
    keep(context, low, plan.cache_at);
    at += 3;
  }
  if (ending) return;
  e.advance(entry, at, "of the next layer");
  keep(context, entry, plan.layer_place_at);
}

void emit_shared_setup(const KernelContext& context) {
  set_hbm_registers(context);
  start_layers(context);
  if (context.plan.logits_so_far.count != 0) keep(context, kZeroGp, context.plan.logits_so_far);
  load_constant_rows(context);
}

void emit_setup(const KernelContext& context) {
  const RegionScope region(context.emitter, "setup");
  emit_shared_setup(context);
  skip_constant_tiles(context);
  emit_position(context);
}

void emit_position(const KernelContext& context) {
  load_masks(context);
  load_position_rows(context);
}

}  // namespace plena
