// What a token needs once: base addresses, constant rows, and the rows that follow from the
// position.

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

void set_base(const KernelContext& context, AddressRegister base, const HbmTensor& tensor,
              std::string_view what) {
  Emitter& e = context.emitter;
  HeldGp low(e, "low word");
  e.set(low, tensor.base & UINT32_MAX);
  const std::uint64_t high_word = tensor.base >> 32;
  if (high_word == 0) return e.emit(Op::C_SET_ADDR_REG, {base, kZeroGp, low}, what);
  HeldGp high(e, "high word");
  e.set(high, high_word);
  e.emit(Op::C_SET_ADDR_REG, {base, high, low}, what);
}

// Loads `rows` rows from element `from` on, as many H_PREFETCH_V as it takes.
void load_rows(const KernelContext& context, Gp from, AddressRegister base, const Block& to,
               std::uint64_t rows) {
  Emitter& e = context.emitter;
  const std::uint64_t amount = context.settings.hbm_v_prefetch_amount;
  const std::uint64_t transfers = (rows + amount - 1) / amount;
  HeldGp row(e, to.name);
  e.set(row, context.row(to), to.name);
  Loop loop(e, transfers, "transfers");
  e.emit(Op::H_PREFETCH_V, {row, from, base, kContiguous, kActivation});
  step(context, row, amount * context.settings.vlen, transfers);
  step(context, from, amount * context.settings.vlen, transfers);
}

void set_hbm_registers(const KernelContext& context) {
  Emitter& e = context.emitter;
  set_base(context, kWeightsBase, context.plan.weights, "weights");
  set_base(context, kCacheBase, context.plan.cache, "KV cache");
  set_base(context, kEmbeddingBase, context.plan.embedding, "embedding");
  set_base(context, kRopeBase, context.plan.rope, "cosines and sines");
  set_base(context, kConstantsBase, context.plan.constants, "constants");
  HeldGp value(e, "register value");
  e.set(value, context.plan.scale_offset);
  e.emit(Op::C_SET_SCALE_REG, {value}, "all scales lie this far behind their elements");
  e.set(value, context.plan.cache_stride);
  e.emit(Op::C_SET_STRIDE_REG, {value}, "from one K or V tile region to the next");
}

void load_selectors(const KernelContext& context) {
  if (context.tiling.heads.slots == 1) return;
  Emitter& e = context.emitter;
  HeldGp from(e, "element of the constants");
  e.set(from, 0);
  load_rows(context, from, kConstantsBase, context.plan.selectors, selector_rows(context.tiling));
}

// The mask in HBM is MLEN zeros, then MLEN times the masking value: a window of MLEN that starts
// MLEN - 1 - lane behind its start masks every lane above `lane`.
void load_mask(const KernelContext& context) {
  Emitter& e = context.emitter;
  const std::uint64_t mlen = context.tiling.mlen;
  HeldGp from(e, "element of the mask");
  HeldGp lane(e, "lane of the position");
  e.set(from, selector_rows(context.tiling) * mlen + mlen - 1);
  e.emit(Op::S_LD_INT, {lane, kZeroGp, context.plan.last_lane.first}, "position % MLEN");
  e.emit(Op::S_SUB_INT, {from, from, lane});
  load_rows(context, from, kConstantsBase, context.plan.mask, 1);
}

void add_up_terms(const KernelContext& context, std::uint64_t first_row, std::string_view what) {
  if (context.rope_terms == 1) return;
  Emitter& e = context.emitter;
  HeldGp sum(e, "sum");
  HeldGp term(e, "term");
  e.set(sum, context.row(context.plan.rope_rows, first_row), what);
  e.offset(term, sum, context.settings.vlen);
  Loop loop(e, context.rope_terms - 1, "terms");
  e.emit(Op::V_ADD_VV, {sum, sum, term, kAllLanes});
  step(context, term, context.settings.vlen, context.rope_terms - 1);
}

void load_rope_rows(const KernelContext& context) {
  Emitter& e = context.emitter;
  {
    HeldGp from(e, "element of the rope table");
    e.emit(Op::S_LD_INT, {from, kZeroGp, context.plan.rope_row.first}, "rows of this position");
    load_rows(context, from, kRopeBase, context.plan.rope_rows, 2 * context.rope_terms);
  }
  add_up_terms(context, 0, "cosines = sum of their terms");
  add_up_terms(context, context.rope_terms, "sines = sum of their terms");
}

void load_rotation_tile(const KernelContext& context) {
  Emitter& e = context.emitter;
  HeldGp tile(e, "tile");
  e.set(tile, context.tile(context.plan.rotation));
  e.emit(Op::H_PREFETCH_M, {tile, context.weights, kWeightsBase, kContiguous, kWeights},
         "RoPE permutation, for all layers");
  e.advance(context.weights, context.tiling.tile_elements());
}

}  // namespace

void emit_setup(const KernelContext& context) {
  const RegionScope region(context.emitter, "setup");
  set_hbm_registers(context);
  load_selectors(context);
  load_mask(context);
  load_rope_rows(context);
  load_rotation_tile(context);
}

void emit_embedding(const KernelContext& context) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "embedding");
  const std::uint64_t width = std::uint64_t{context.tiling.dim_tiles} * context.tiling.mlen;
  HeldGp from(e, "element of the embedding");
  {
    HeldGp row_width(e, "row width");
    e.emit(Op::S_LD_INT, {from, kZeroGp, context.plan.token.first}, "token");
    e.set(row_width, width);
    e.emit(Op::S_MUL_INT, {from, from, row_width});
  }
  load_rows(context, from, kEmbeddingBase, context.plan.residual, context.tiling.dim_tiles);
}

}  // namespace plena
