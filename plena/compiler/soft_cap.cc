// cap * tanh(x / cap), from the exponential where the format is wide enough for it to cancel:
// tanh(y) = 1 - 2 / (1 + exp(2 y)); else as a quotient of polynomials.

#include <array>

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

// Below this a small tanh would drown in the rounding of 1 + exp.
constexpr int kWideMantissa = 16;

// The Padé approximant [7/6] of tanh(y / 2) / (y / 2) in powers of y^2; within 0.3 % for |y| < 16.
constexpr std::array<float, 4> kNumerator = {1.0F, 0.0320513F, 1.748252e-4F, 1.156251e-7F};
constexpr std::array<float, 4> kDenominator = {1.0F, 0.1153846F, 1.456876e-3F, 3.237503e-6F};

// to = c0 + c1 square + ...
void emit_polynomial(const KernelContext& context, Gp to, Gp square,
                     const std::array<float, 4>& coefficients) {
  Emitter& e = context.emitter;
  HeldFp c(e, "coefficient");
  context.constants.load(e, c, coefficients.back(), "leading coefficient");
  e.emit(Op::V_MUL_VF, {to, square, c, kAllLanes});
  for (std::size_t i = coefficients.size() - 1; i-- > 0;) {
    context.constants.load(e, c, coefficients[i], "coefficient");
    e.emit(Op::V_ADD_VF, {to, to, c, kAllLanes});
    if (i != 0) e.emit(Op::V_MUL_VV, {to, to, square, kAllLanes});
  }
}

void emit_rational_tanh(const KernelContext& context, Gp to, Gp from, float cap) {
  Emitter& e = context.emitter;
  HeldGp square(e, "square");
  HeldGp quotient(e, "quotient");
  HeldFp half_cap(e, "cap / 2");
  e.set(square, context.row(context.plan.scratch), "scratch");
  e.set(quotient, context.row(context.plan.scratch, 1), "scratch");
  context.constants.load(e, half_cap, cap / 2, "cap / 2");
  e.emit(Op::V_MUL_VV, {square, from, from, kAllLanes});
  emit_polynomial(context, quotient, square, kDenominator);
  e.emit(Op::V_RECI_V, {quotient, quotient, kAllLanes});
  e.emit(Op::V_MUL_VV, {quotient, quotient, from, kAllLanes});
  emit_polynomial(context, to, square, kNumerator);
  e.emit(Op::V_MUL_VV, {to, to, quotient, kAllLanes});
  e.emit(Op::V_MUL_VF, {to, to, half_cap, kAllLanes});
}

void emit_exponential_tanh(const KernelContext& context, Gp to, Gp from, float cap) {
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

}  // namespace

void emit_scaled_tanh(const KernelContext& context, Gp to, Gp from, float cap) {
  if (context.settings.vector_sram_type.element.mantissa < kWideMantissa) {
    return emit_rational_tanh(context, to, from, cap);
  }
  emit_exponential_tanh(context, to, from, cap);
}

void emit_soft_cap(const KernelContext& context, const SoftCapOp& op) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "soft_cap");
  const std::uint64_t rows = rows_at_once(context.tiled, context.tables, op.value);
  HeldGp x(e, "row");
  e.set(x, context.row(op.value), "rows to cap");
  Loop loop(e, rows, "rows");
  emit_scaled_tanh(context, x, x, op.cap);
  step(context, x, context.settings.vlen, rows);
}

}  // namespace plena
