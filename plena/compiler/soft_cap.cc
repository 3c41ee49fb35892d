// cap * tanh(x / cap), from the exponential: tanh(y) = 1 - 2 / (1 + exp(2 y)).

#include "plena/compiler/kernels.h"

namespace plena {

void emit_scaled_tanh(const KernelContext& context, Gp to, Gp from, float cap) {
  Emitter& e = context.emitter;
  HeldFp one(e, "1");
  HeldFp scale(e, "-2 cap");
  HeldFp limit(e, "cap");
  context.constants.load(e, one, 1.0F, "1");
  context.constants.load(e, scale, -2.0F * cap, "-2 cap");
  context.constants.load(e, limit, cap, "cap");
  e.emit(Op::V_EXP_V, {to, from, kAllLanes});
  e.emit(Op::V_ADD_VF, {to, to, one, kAllLanes});
  e.emit(Op::V_RECI_V, {to, to, kAllLanes});
  e.emit(Op::V_MUL_VF, {to, to, scale, kAllLanes});
  e.emit(Op::V_ADD_VF, {to, to, limit, kAllLanes});
}

void emit_soft_cap(const KernelContext& context, const SoftCapOp& op) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "soft_cap");
  const std::uint64_t rows = context.tiled.rows(op.value);
  HeldGp x(e, "row");
  e.set(x, context.row(op.value), "rows to cap");
  Loop loop(e, rows, "rows");
  emit_scaled_tanh(context, x, x, op.cap);
  step(context, x, context.settings.vlen, rows);
}

}  // namespace plena
