// Rotary embedding of a block: x cos + P x sin as for one token, P x by M_MM, and each stage of the
// turn for a few rows at a time.

#include "plena/compiler/block_kernels.h"

namespace plena {

namespace {

constexpr std::uint64_t kTurnedAbreast = 8;

void emit_swaps(const BlockContext& context, const RotateOp& op, std::uint64_t rows) {
  Emitter& e = context.emitter;
  HeldGp x(e, "q, k");
  HeldGp tile(e, "permutation");
  HeldGp swapped(e, "P x");
  e.set(x, context.rows(op.qkv), "q, k");
  e.set(tile, context.tile(context.plan.rotation), "P");
  e.set(swapped, context.rows(context.block.rotated), "P x");
  Loop loop(e, rows, "query and key rows");
  emit_tile_product(context, {.x = x, .tile = tile, .y = swapped, .transposed = false});
}

// x = x cos + swapped sin for all tokens of a row; moves x and swapped on behind them.
void turn_row(const BlockContext& context, Gp x, Gp swapped, Gp angles) {
  Emitter& e = context.emitter;
  const std::uint64_t vlen = context.settings.vlen;
  const std::uint64_t stored = context.tables.positions.stored_rows() * vlen;
  const std::uint64_t copies = abreast(context.block.tokens, kTurnedAbreast);
  HeldGp cosines(e, "cosines");
  HeldGp sines(e, "sines");
  e.copy(cosines, angles);
  e.offset(sines, angles, context.tiled.heads.span * vlen, "sines");
  Loop tokens(e, context.block.tokens / copies, "tokens");
  const auto each = [&](Gp row, Gp factor, std::uint64_t stride, Op op) {
    HeldGp at(e, "row");
    e.copy(at, row);
    for (std::uint64_t i = 0; i < copies; ++i) {
      e.emit(op, {at, at, factor, kAllLanes});
      e.advance(at, vlen);
      e.advance(factor, stride);
    }
  };
  each(x, cosines, stored, Op::V_MUL_VV);
  each(swapped, sines, stored, Op::V_MUL_VV);
  for (std::uint64_t i = 0; i < copies; ++i) {
    e.emit(Op::V_ADD_VV, {x, x, swapped, kAllLanes});
    e.advance(x, vlen);
    e.advance(swapped, vlen);
  }
}

void emit_turns(const BlockContext& context, const RotateOp& op, std::uint64_t rows) {
  Emitter& e = context.emitter;
  const std::uint64_t vlen = context.settings.vlen;
  const std::uint64_t span = context.tiled.heads.span;
  HeldGp x(e, "q, k");
  HeldGp swapped(e, "P x");
  HeldGp angles(e, "cosines of the first token");
  e.set(x, context.rows(op.qkv), "q, k");
  e.set(swapped, context.rows(context.block.rotated), "P x");
  Loop heads(e, rows / span, "query and key rows");
  e.set(angles, context.row(context.block.position_rows, 2 * op.table * span), "cosines");
  Loop loop(e, span, "rows of a head");
  turn_row(context, x, swapped, angles);
  step(context, angles, vlen, span);
}

}  // namespace

void emit_block_rotation(const BlockContext& context, const RotateOp& op) {
  const RegionScope region(context.emitter, "rope");
  const std::uint64_t rows =
      std::uint64_t{context.block.query_rows} + context.tiled.heads.key_rows();
  emit_swaps(context, op, rows);
  emit_turns(context, op, rows);
}

void emit_block_soft_cap(const BlockContext& context, const SoftCapOp& op) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "soft_cap");
  HeldGp x(e, "row");
  e.set(x, context.rows(op.value), "rows to cap");
  Loop loop(e, context.tiled.rows(op.value) * std::uint64_t{context.block.tokens}, "rows");
  emit_scaled_tanh(context, x, x, op.cap);
  e.advance(x, context.settings.vlen);
}

}  // namespace plena
