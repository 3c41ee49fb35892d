// Activations of feed-forward layers, a row at a time, from exponential and reciprocal.

#include <algorithm>
#include <array>
#include <cmath>

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

// ln(F(x) / F(-x)) / x in powers of x^2, F the normal distribution function: a least-squares fit
// that keeps x F(x) within 4e-6 everywhere. Positive for all x, so that it saturates beyond the
// fit.
constexpr std::array<float, 5> kErfLogit = {1.5956551535F, 0.07293985756F, -2.50949354558e-4F,
                                            -6.09350521493e-5F, 2.2253033436e-6F};

// x * sigmoid(f(x)) for the f that each kind stands for.
class ActivationRow {
 public:
  ActivationRow(const KernelContext& context, const ActivationShape& activation, bool gated,
                const ActivationRows& rows)
      : context_(context),
        e_(context.emitter),
        activation_(activation),
        gated_(gated),
        rows_(rows),
        one_(e_, "1"),
        factor_(e_, "factor"),
        t_(e_, "scratch") {
    e_.set(t_, context_.row(context_.plan.scratch, 1), "scratch");
    context_.constants.load(e_, one_, 1.0F, "1");
  }

  void emit() const {
    switch (activation_.kind) {
      case Activation::Silu:
        return silu();
      case Activation::TanhGelu:
        return gelu_tanh();
      case Activation::ErfGelu:
        return gelu_erf();
      case Activation::ClampedSwiglu:
        return clamped_swiglu();
    }
  }

 private:
  void load(float value, std::string_view what) const {
    context_.constants.load(e_, factor_, value, what);
  }
  void multiply(float value, std::string_view what) const {
    load(value, what);
    e_.emit(Op::V_MUL_VF, {t_, t_, factor_, kAllLanes});
  }
  void add(float value, std::string_view what) const {
    load(value, what);
    e_.emit(Op::V_ADD_VF, {t_, t_, factor_, kAllLanes});
  }

  // t = 1 / (1 + exp(from))
  void sigmoid_of_negative(Gp from) const {
    e_.emit(Op::V_EXP_V, {t_, from, kAllLanes});
    e_.emit(Op::V_ADD_VF, {t_, t_, one_, kAllLanes});
    e_.emit(Op::V_RECI_V, {t_, t_, kAllLanes});
  }

  // to = gate [* up] * t
  void finish() const {
    Gp product = rows_.gate;
    if (gated_) e_.emit(Op::V_MUL_VV, {product, product, rows_.up, kAllLanes});
    e_.emit(Op::V_MUL_VV, {rows_.to, product, t_, kAllLanes});
  }

  // With g = -gate and u = -up: gate * sigmoid(gate) * up = g * u / (1 + exp(g)).
  void silu() const {
    if (gated_) {
      sigmoid_of_negative(rows_.gate);
      return finish();
    }
    load(-1.0F, "-1");
    e_.emit(Op::V_MUL_VF, {t_, rows_.gate, factor_, kAllLanes});
    sigmoid_of_negative(t_);
    finish();
  }

  // 0.5 (1 + tanh(y)) is sigmoid(2 y), y = sqrt(2 / pi) (x + 0.044715 x^3).
  void gelu_tanh() const {
    constexpr float kTwiceRoot = 1.5957691216057308F;  // 2 sqrt(2 / pi)
    constexpr float kCubic = 0.044715F;
    e_.emit(Op::V_MUL_VV, {t_, rows_.gate, rows_.gate, kAllLanes});
    multiply(-kTwiceRoot * kCubic, "-2 sqrt(2 / pi) 0.044715");
    add(-kTwiceRoot, "-2 sqrt(2 / pi)");
    e_.emit(Op::V_MUL_VV, {t_, t_, rows_.gate, kAllLanes});
    sigmoid_of_negative(t_);
    finish();
  }

  // The normal distribution function is sigmoid(x p(x^2)); p is a polynomial fitted to its logit.
  void gelu_erf() const {
    e_.comment("gelu: the logit of the normal distribution function as a polynomial");
    HeldGp square(e_, "square");
    e_.set(square, context_.row(context_.plan.scratch, 2), "square");
    e_.emit(Op::V_MUL_VV, {square, rows_.gate, rows_.gate, kAllLanes});
    load(-kErfLogit.back(), "leading coefficient");
    e_.emit(Op::V_MUL_VF, {t_, square, factor_, kAllLanes});
    for (std::size_t i = kErfLogit.size() - 1; i-- > 0;) {
      add(-kErfLogit[i], "coefficient");
      e_.emit(Op::V_MUL_VV, {t_, t_, i == 0 ? rows_.gate : Gp(square), kAllLanes});
    }
    sigmoid_of_negative(t_);
    finish();
  }

  void clamped_swiglu() const {
    clamp_above(rows_.gate, activation_.limit);
    clamp_above(rows_.up, activation_.limit);
    clamp_below(rows_.up, -activation_.limit);
    e_.emit(Op::V_ADD_VF, {rows_.up, rows_.up, one_, kAllLanes}, "up + 1");
    load(-activation_.alpha, "-alpha");
    e_.emit(Op::V_MUL_VF, {t_, rows_.gate, factor_, kAllLanes});
    sigmoid_of_negative(t_);
    finish();
  }

  // A factor that drives whatever is not tiny out of the range of exp, on either side.
  [[nodiscard]] float steepness() const {
    const int bias = (1 << (context_.settings.vector_sram_type.element.exponent - 1)) - 1;
    const int scalar = (1 << (context_.settings.scalar_fp.element.exponent - 1)) - 1;
    return std::ldexp(1.0F, std::min({bias, scalar, 100}));
  }

  // x = x where it is below (above) the limit, else the limit: both times a step of 0 or 1.
  void clamp_above(Gp x, float limit) const { clamp(x, limit, steepness(), Op::V_MIN_VF); }
  void clamp_below(Gp x, float limit) const { clamp(x, limit, -steepness(), Op::V_MAX_VF); }

  void clamp(Gp x, float limit, float steep, Op instruction) const {
    load(limit, "limit");
    if (context_.dialect.has(Extension::MinMax)) {
      return e_.emit(instruction, {x, x, factor_, kAllLanes});
    }
    HeldFp slope(e_, "steep");
    HeldGp rest(e_, "limit where it holds");
    e_.set(rest, context_.row(context_.plan.scratch), "scratch");
    context_.constants.load(e_, slope, steep, "steep");
    e_.emit(Op::V_SUB_VF, {t_, x, factor_, kAllLanes, 0});
    e_.emit(Op::V_MUL_VF, {t_, t_, slope, kAllLanes});
    sigmoid_of_negative(t_);
    e_.emit(Op::V_MUL_VV, {x, x, t_, kAllLanes});
    e_.emit(Op::V_SUB_VF, {rest, t_, one_, kAllLanes, 1}, "1 - step");
    e_.emit(Op::V_MUL_VF, {rest, rest, factor_, kAllLanes});
    e_.emit(Op::V_ADD_VV, {x, x, rest, kAllLanes});
  }

  const KernelContext& context_;
  Emitter& e_;
  const ActivationShape& activation_;
  bool gated_;
  const ActivationRows& rows_;
  HeldFp one_;
  HeldFp factor_;
  HeldGp t_;
};

}  // namespace

void emit_activation(const KernelContext& context, const ActivationShape& activation, bool gated,
                     const ActivationRows& rows) {
  ActivationRow(context, activation, gated, rows).emit();
}

}  // namespace plena
