// Activations of feed-forward layers from exponential and reciprocal, all rows a stage at a time:
// the results of one instruction arrive while the next rows issue.

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <vector>

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

// ln(F(x) / F(-x)) / x in powers of x^2, F the normal distribution function: a least-squares fit
// that keeps x F(x) within 4e-6 everywhere. Positive for all x, so that it saturates beyond the
// fit.
constexpr std::array<float, 5> kErfLogit = {1.5956551535F, 0.07293985756F, -2.50949354558e-4F,
                                            -6.09350521493e-5F, 2.2253033436e-6F};

// x * sigmoid(f(x)) for the f that each kind stands for.
class ActivationStages {
 public:
  ActivationStages(const KernelContext& context, const ActivationShape& activation, bool gated,
                   const ActivationRows& rows)
      : context_(context),
        e_(context.emitter),
        activation_(activation),
        gated_(gated),
        rows_(rows),
        t_{context.row(context.plan.activation), context.settings.vlen},
        other_{context.row(context.plan.activation, rows.count), context.settings.vlen} {}

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
  // One instruction for all rows: a pointer each for the result and the operands that differ.
  void each(const RowSeries& to, const RowSeries& a, const RowSeries* b,
            const std::function<void(Gp to, Gp a, Gp b)>& instruction) const {
    std::deque<HeldGp> pointers;
    std::vector<RowSeries> series;
    const auto pointer = [&](const RowSeries& rows) {
      for (std::size_t i = 0; i < series.size(); ++i) {
        if (series[i].first == rows.first) return Gp(pointers[i]);
      }
      series.push_back(rows);
      pointers.emplace_back(e_, "rows");
      e_.set(pointers.back(), rows.first);
      return Gp(pointers.back());
    };
    const Gp to_row = pointer(to);
    const Gp a_row = pointer(a);
    const Gp b_row = b == nullptr ? kZeroGp : pointer(*b);
    Loop loop(e_, rows_.count, "rows");
    instruction(to_row, a_row, b_row);
    for (std::size_t i = 0; i < series.size(); ++i) {
      step(context_, pointers[i], series[i].stride, rows_.count);
    }
  }

  void multiply(const RowSeries& to, const RowSeries& a, const RowSeries& b) const {
    each(to, a, &b, [&](Gp t, Gp x, Gp y) { e_.emit(Op::V_MUL_VV, {t, x, y, kAllLanes}); });
  }
  void add(const RowSeries& to, const RowSeries& a, const RowSeries& b) const {
    each(to, a, &b, [&](Gp t, Gp x, Gp y) { e_.emit(Op::V_ADD_VV, {t, x, y, kAllLanes}); });
  }
  // to = a op constant
  void with(Op op, const RowSeries& to, const RowSeries& a, float constant,
            std::string_view what) const {
    HeldFp factor(e_, "constant");
    context_.constants.load(e_, factor, constant, what);
    each(to, a, nullptr, [&](Gp t, Gp x, Gp) { e_.emit(op, {t, x, factor, kAllLanes}); });
  }
  void scale(const RowSeries& to, const RowSeries& a, float factor, std::string_view what) const {
    with(Op::V_MUL_VF, to, a, factor, what);
  }
  // to = a - constant, or constant - a
  void subtract(const RowSeries& to, const RowSeries& a, float constant, bool reversed,
                std::string_view what) const {
    HeldFp subtrahend(e_, "constant");
    context_.constants.load(e_, subtrahend, constant, what);
    each(to, a, nullptr, [&](Gp t, Gp x, Gp) {
      e_.emit(Op::V_SUB_VF, {t, x, subtrahend, kAllLanes, reversed ? 1U : 0U});
    });
  }

  // t = 1 / (1 + exp(from))
  void sigmoid_of_negative(const RowSeries& from) const {
    each(t_, from, nullptr, [&](Gp t, Gp x, Gp) { e_.emit(Op::V_EXP_V, {t, x, kAllLanes}); });
    with(Op::V_ADD_VF, t_, t_, 1.0F, "1");
    each(t_, t_, nullptr, [&](Gp t, Gp x, Gp) { e_.emit(Op::V_RECI_V, {t, x, kAllLanes}); });
  }

  // to = gate [* up] * t
  void finish() const {
    if (gated_) multiply(rows_.gate, rows_.gate, rows_.up);
    multiply(rows_.to, rows_.gate, t_);
  }

  // With g = -gate and u = -up: gate * sigmoid(gate) * up = g * u / (1 + exp(g)).
  void silu() const {
    if (gated_) {
      sigmoid_of_negative(rows_.gate);
      return finish();
    }
    scale(t_, rows_.gate, -1.0F, "-1");
    sigmoid_of_negative(t_);
    finish();
  }

  // 0.5 (1 + tanh(y)) is sigmoid(2 y), y = sqrt(2 / pi) (x + 0.044715 x^3).
  void gelu_tanh() const {
    constexpr float kTwiceRoot = 1.5957691216057308F;  // 2 sqrt(2 / pi)
    constexpr float kCubic = 0.044715F;
    multiply(t_, rows_.gate, rows_.gate);
    scale(t_, t_, -kTwiceRoot * kCubic, "-2 sqrt(2 / pi) 0.044715");
    with(Op::V_ADD_VF, t_, t_, -kTwiceRoot, "-2 sqrt(2 / pi)");
    multiply(t_, t_, rows_.gate);
    sigmoid_of_negative(t_);
    finish();
  }

  // The normal distribution function is sigmoid(x p(x^2)); p is a polynomial fitted to its logit.
  void gelu_erf() const {
    e_.comment("gelu: the logit of the normal distribution function as a polynomial");
    multiply(other_, rows_.gate, rows_.gate);
    scale(t_, other_, -kErfLogit.back(), "leading coefficient");
    for (std::size_t i = kErfLogit.size() - 1; i-- > 0;) {
      with(Op::V_ADD_VF, t_, t_, -kErfLogit[i], "coefficient");
      multiply(t_, t_, i == 0 ? rows_.gate : other_);
    }
    sigmoid_of_negative(t_);
    finish();
  }

  void clamped_swiglu() const {
    clamp_above(rows_.gate, activation_.limit);
    clamp_above(rows_.up, activation_.limit);
    clamp_below(rows_.up, -activation_.limit);
    with(Op::V_ADD_VF, rows_.up, rows_.up, 1.0F, "up + 1");
    scale(t_, rows_.gate, -activation_.alpha, "-alpha");
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
  void clamp_above(const RowSeries& x, float limit) const {
    clamp(x, limit, steepness(), Op::V_MIN_VF);
  }
  void clamp_below(const RowSeries& x, float limit) const {
    clamp(x, limit, -steepness(), Op::V_MAX_VF);
  }

  void clamp(const RowSeries& x, float limit, float steep, Op instruction) const {
    if (context_.dialect.has(Extension::MinMax)) return with(instruction, x, x, limit, "limit");
    subtract(t_, x, limit, false, "limit");
    scale(t_, t_, steep, "steep");
    sigmoid_of_negative(t_);
    multiply(x, x, t_);
    subtract(other_, t_, 1.0F, true, "1 - step");
    scale(other_, other_, limit, "limit");
    add(x, x, other_);
  }

  const KernelContext& context_;
  Emitter& e_;
  const ActivationShape& activation_;
  bool gated_;
  const ActivationRows& rows_;
  RowSeries t_;
  RowSeries other_;
};

}  // namespace

void emit_activation(const KernelContext& context, const ActivationShape& activation, bool gated,
                     const ActivationRows& rows) {
  ActivationStages(context, activation, gated, rows).emit();
}

}  // namespace plena
