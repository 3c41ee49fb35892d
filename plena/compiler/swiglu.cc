// The gated half of the feed-forward layer, one hidden tile at a time.

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

constexpr Fp kOne{1};

// With g = -gate and u = -up: gate * sigmoid(gate) * up = g * u / (1 + exp(g)).
void emit_gating(const KernelContext& context, Gp hidden) {
  Emitter& e = context.emitter;
  HeldGp g(e, "gate");
  HeldGp u(e, "up");
  HeldGp sigmoid(e, "sigmoid");
  e.set(g, context.row(context.plan.gate), "-gate");
  e.set(u, context.row(context.plan.gate, 1), "-up");
  e.set(sigmoid, context.row(context.plan.scratch), "sigmoid(gate)");
  e.emit(Op::V_EXP_V, {sigmoid, g, kAllLanes});
  e.emit(Op::V_ADD_VF, {sigmoid, sigmoid, kOne, kAllLanes});
  e.emit(Op::V_RECI_V, {sigmoid, sigmoid, kAllLanes});
  e.emit(Op::V_MUL_VV, {g, g, u, kAllLanes});
  e.emit(Op::V_MUL_VV, {hidden, g, sigmoid, kAllLanes});
}

}  // namespace

void emit_swiglu(const KernelContext& context) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "swiglu");
  const std::uint64_t tiles = context.tiling.hidden_tiles;
  HeldGp hidden(e, "hidden");
  e.set(hidden, context.row(context.plan.hidden), "hidden");
  e.emit(Op::S_LD_FP, {kOne, kZeroGp, context.plan.one.first}, "1");
  Loop loop(e, tiles, "hidden tiles");
  emit_product(context, context.plan.normed, context.tiling.dim_tiles, context.plan.gate, 2);
  emit_gating(context, hidden);
  step(context, hidden, context.settings.vlen, tiles);
}

}  // namespace plena
