// Rotary embedding of neighbouring lanes: x cos + P x sin, where P swaps the lanes of a pair and
// negates the first: one product with a tile of 0 and ±1.

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

constexpr std::uint64_t kScaledAngles = 2;  // row of scratch

// rotated[row] = P x for the query and key rows, one product behind the other.
void emit_products(const KernelContext& context, const RotateOp& op, std::uint64_t rows) {
  Emitter& e = context.emitter;
  const std::uint64_t vlen = context.settings.vlen;
  HeldGp x(e, "q, k");
  HeldGp tile(e, "permutation");
  HeldGp swapped(e, "P x");
  e.set(x, context.row(op.qkv), "q, k");
  e.set(tile, context.tile(context.plan.rotation), "P");
  e.set(swapped, context.row(context.plan.rotated), "P x");
  unroll(e, rows, kMostCopies, "query and key rows", [&](std::uint64_t copies, bool more) {
    for (std::uint64_t i = 0; i < copies; ++i) {
      e.emit(Op::M_MV, {x, tile});
      e.emit(Op::M_MV_WO, {swapped, i * vlen});
      e.advance(x, vlen);
    }
    if (more) e.advance(swapped, copies * vlen);
  });
}

// Cosines and sines, a row of each, times the factor of a late norm, in the last rows of scratch:
// the norm itself takes the first ones. Values have no turn that could take it.
void emit_late_norm(const KernelContext& context, const RotateOp& op, Fp scale) {
  Emitter& e = context.emitter;
  const HeadLayout& heads = context.tiled.heads;
  HeldGp to(e, "scaled cosines, sines");
  HeldGp from(e, "cosines, sines");
  for (std::uint64_t i = 0; i < 2; ++i) {
    e.set(to, context.row(context.plan.scratch, kScaledAngles + i), "scaled");
    e.set(from, context.row(context.plan.position_rows, 2 * op.table + i), "cosines, sines");
    e.emit(Op::V_MUL_VF, {to, from, scale, kAllLanes});
  }
  e.set(to, context.row(op.qkv, heads.query_rows() + heads.key_rows()), "v");
  unroll(e, heads.key_rows(), kMostCopies, "value rows", [&](std::uint64_t copies, bool) {
    for (std::uint64_t i = 0; i < copies; ++i) {
      e.emit(Op::V_MUL_VF, {to, to, scale, kAllLanes});
      step(context, to, context.settings.vlen, heads.key_rows());
    }
  });
}

// x = x cos + rotated sin.
void emit_turns(const KernelContext& context, const RotateOp& op, std::uint64_t rows, bool scaled) {
  Emitter& e = context.emitter;
  const HeadLayout& heads = context.tiled.heads;
  const std::uint64_t vlen = context.settings.vlen;
  const std::uint64_t first = 2 * op.table * heads.span;
  HeldGp swapped(e, "P x");
  e.set(swapped, context.row(context.plan.rotated), "P x");
  HeldGp x(e, "q, k");
  HeldGp cosines(e, "cosines");
  HeldGp sines(e, "sines");
  const auto set_angles = [&] {
    e.set(cosines,
          scaled ? context.row(context.plan.scratch, kScaledAngles)
                 : context.row(context.plan.position_rows, first),
          "cosines");
    e.offset(sines, cosines, heads.span * vlen, "sines");
  };
  e.set(x, context.row(op.qkv), "q, k");
  if (heads.span == 1) set_angles();
  const auto turn_row = [&] {
    e.emit(Op::V_MUL_VV, {x, x, cosines, kAllLanes});
    e.emit(Op::V_MUL_VV, {swapped, swapped, sines, kAllLanes});
    e.emit(Op::V_ADD_VV, {x, x, swapped, kAllLanes});
    e.advance(x, vlen);
    e.advance(swapped, vlen);
  };
  if (heads.span == 1) {
    unroll(e, rows, kMostCopies, "query and key rows", [&](std::uint64_t copies, bool) {
      for (std::uint64_t i = 0; i < copies; ++i) turn_row();
    });
    return;
  }
  Loop over_heads(e, rows / heads.span, "query and key heads");
  set_angles();
  Loop over_rows(e, heads.span, "rows of a head");
  turn_row();
  e.advance(cosines, vlen);
  e.advance(sines, vlen);
}

}  // namespace

void emit_rotation(const KernelContext& context, const RotateOp& op,
                   const std::optional<LateNorm>& norm) {
  const RegionScope region(context.emitter, "rope");
  const HeadLayout& heads = context.tiled.heads;
  const std::uint64_t rows = std::uint64_t{heads.query_rows()} + heads.key_rows();
  emit_products(context, op, rows);
  if (norm) emit_late_norm(context, op, norm->scale);
  emit_turns(context, op, rows, norm.has_value());
}

}  // namespace plena
