// RMSNorm without its gain: one sum of squares, one reciprocal root, one scaling.

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

constexpr Fp kScale{1};

}  // namespace

void emit_rmsnorm(const KernelContext& context) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "rmsnorm");
  const std::uint64_t tiles = context.tiling.dim_tiles;
  const std::uint64_t vlen = context.settings.vlen;
  HeldGp x(e, "residual");
  HeldGp y(e, "normed");
  e.emit(Op::S_LD_FP, {kScale, kZeroGp, context.plan.norm_bias.first}, "dim * epsilon");
  e.set(x, context.row(context.plan.residual), "residual");
  e.set(y, context.row(context.plan.scratch), "scratch");
  {
    Loop loop(e, tiles, "residual tiles");
    e.emit(Op::V_MUL_VV, {y, x, x, kAllLanes});
    e.emit(Op::V_RED_SUM, {kScale, y});
    step(context, x, vlen, tiles);
  }
  e.emit(Op::S_SQRT_FP, {kScale, kScale});
  e.emit(Op::S_RECI_FP, {kScale, kScale});
  if (tiles > 1) e.set(x, context.row(context.plan.residual), "residual");
  e.set(y, context.row(context.plan.normed), "normed");
  Loop loop(e, tiles, "residual tiles");
  e.emit(Op::V_MUL_VF, {y, x, kScale, kAllLanes});
  step(context, x, vlen, tiles);
  step(context, y, vlen, tiles);
}

}  // namespace plena
