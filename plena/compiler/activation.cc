// Activations of feed-forward layers from exponential and reciprocal, a few rows side by side: the
// results of one instruction arrive while the other rows issue.

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

// ln(F(x) / F(-x)) / x in powers of x^2, F the normal distribution function: a least-squares fit
// that keeps x F(x) within 4e-6 everywhere. Positive for all x, so that it saturates beyond the
// fit.
constexpr std::array<float, 5> kErfLogit = {1.5956551535F, 0.07293985756F, -2.50949354558e-4F,
                                            -6.09350521493e-5F, 2.2253033436e-6F};

// The same series of several rows side by side, a pointer each.
class RowPointers {
 public:
  RowPointers(Emitter& e, const RowSeries& series, std::uint64_t rows, std::string_view what)
      : e_(e), stride_(series.stride) {
    for (std::uint64_t i = 0; i < rows; ++i) {
      pointers_.emplace_back(e, what);
      e.set(pointers_.back(), series.first + i * series.stride, what);
    }
  }
  Gp operator[](std::uint64_t row) const { return pointers_[row]; }
  void advance(std::uint64_t rows) const {
    for (const HeldGp& pointer : pointers_) e_.advance(pointer, rows * stride_);
  }

 private:
  Emitter& e_;
  std::uint64_t stride_;
  std::deque<HeldGp> pointers_;
};

// x * sigmoid(f(x)) for the f that each kind stands for. The result's rows hold what passes between
// the stages.
class ActivationStages {
 public:
  ActivationStages(const KernelContext& context, const ActivationShape& activation, bool gated,
                   const ActivationRows& rows)
      : context_(context),
        e_(context.emitter),
        activation_(activation),
        gated_(gated),
        count_(rows.count),
        at_once_(rows_at_once(rows.count)),
        gate_(e_, rows.gate, at_once_, "gate"),
        up_(e_, rows.up, gated ? at_once_ : 0, "up"),
        t_(e_, rows.to, at_once_, "activation"),
        other_(e_, {context.row(context.plan.activation), context.settings.vlen},
               needs_other() ? at_once_ : 0, "another stage") {}

  void emit() {
    unroll(e_, count_, at_once_, "rows side by side", [&](std::uint64_t copies, bool more) {
      rows_ = copies;
      emit_rows();
      if (!more) return;
      for (const RowPointers* series : {&gate_, &up_, &t_, &other_}) series->advance(copies);
    });
  }

 private:
  // As many as there are registers for, one of which counts a loop over them.
  [[nodiscard]] std::uint64_t rows_at_once(std::uint64_t rows) const {
    const std::uint64_t wanted = gated_ ? 3 : 4;
    const std::uint64_t series = 2U + (gated_ ? 1U : 0U) + (needs_other() ? 1U : 0U);
    return std::max<std::uint64_t>(1, std::min({rows, wanted, (e_.free_gps() - 1) / series}));
  }

  [[nodiscard]] bool needs_other() const {
    return needs_another_stage(activation_, context_.dialect);
  }

  void emit_rows() const {
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

  void multiply(const RowPointers& to, const RowPointers& a, const RowPointers& b) const {
    for (std::uint64_t i = 0; i < rows_; ++i) {
      e_.emit(Op::V_MUL_VV, {to[i], a[i], b[i], kAllLanes});
    }
  }
  void add(const RowPointers& to, const RowPointers& a, const RowPointers& b) const {
    for (std::uint64_t i = 0; i < rows_; ++i) {
      e_.emit(Op::V_ADD_VV, {to[i], a[i], b[i], kAllLanes});
    }
  }
  // to = a op constant
  void with(Op op, const RowPointers& to, const RowPointers& a, float constant,
            std::string_view what) const {
    HeldFp factor(e_, "constant");
    context_.constants.load(e_, factor, constant, what);
    for (std::uint64_t i = 0; i < rows_; ++i) e_.emit(op, {to[i], a[i], factor, kAllLanes});
  }
  void scale(const RowPointers& to, const RowPointers& a, float factor,
             std::string_view what) const {
    with(Op::V_MUL_VF, to, a, factor, what);
  }
  // to = a - constant, or constant - a
  void subtract(const RowPointers& to, const RowPointers& a, float constant, bool reversed,
                std::string_view what) const {
    HeldFp subtrahend(e_, "constant");
    context_.constants.load(e_, subtrahend, constant, what);
    for (std::uint64_t i = 0; i < rows_; ++i) {
      e_.emit(Op::V_SUB_VF, {to[i], a[i], subtrahend, kAllLanes, reversed ? 1U : 0U});
    }
  }

  // t = 1 / (1 + exp(from))
  void sigmoid_of_negative(const RowPointers& from) const {
    for (std::uint64_t i = 0; i < rows_; ++i) e_.emit(Op::V_EXP_V, {t_[i], from[i], kAllLanes});
    with(Op::V_ADD_VF, t_, t_, 1.0F, "1");
    for (std::uint64_t i = 0; i < rows_; ++i) e_.emit(Op::V_RECI_V, {t_[i], t_[i], kAllLanes});
  }

  // t = gate * t [* up]: up, whose product is the later one, comes last.
  void finish() const {
    multiply(t_, gate_, t_);
    if (gated_) multiply(t_, t_, up_);
  }

  // With g = -gate and u = -up: gate * sigmoid(gate) * up = g * u / (1 + exp(g)).
  void silu() const {
    if (gated_) {
      sigmoid_of_negative(gate_);
      return finish();
    }
    scale(t_, gate_, -1.0F, "-1");
    sigmoid_of_negative(t_);
    finish();
  }

  // 0.5 (1 + tanh(y)) is sigmoid(2 y), y = sqrt(2 / pi) (x + 0.044715 x^3).
  void gelu_tanh() const {
    constexpr float kTwiceRoot = 1.5957691216057308F;  // 2 sqrt(2 / pi)
    constexpr float kCubic = 0.044715F;
    multiply(t_, gate_, gate_);
    scale(t_, t_, -kTwiceRoot * kCubic, "-2 sqrt(2 / pi) 0.044715");
    with(Op::V_ADD_VF, t_, t_, -kTwiceRoot, "-2 sqrt(2 / pi)");
    multiply(t_, t_, gate_);
    sigmoid_of_negative(t_);
    finish();
  }

  // The normal distribution function is sigmoid(x p(x^2)); p is a polynomial fitted to its logit.
  void gelu_erf() const {
    e_.comment("gelu: the logit of the normal distribution function as a polynomial");
    multiply(other_, gate_, gate_);
    scale(t_, other_, -kErfLogit.back(), "leading coefficient");
    for (std::size_t i = kErfLogit.size() - 1; i-- > 0;) {
      with(Op::V_ADD_VF, t_, t_, -kErfLogit[i], "coefficient");
      multiply(t_, t_, i == 0 ? gate_ : other_);
    }
    sigmoid_of_negative(t_);
    finish();
  }

  void clamped_swiglu() const {
    clamp_above(gate_, activation_.limit);
    clamp_above(up_, activation_.limit);
    clamp_below(up_, -activation_.limit);
    with(Op::V_ADD_VF, up_, up_, 1.0F, "up + 1");
    scale(t_, gate_, -activation_.alpha, "-alpha");
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
  void clamp_above(const RowPointers& x, float limit) const {
    clamp(x, limit, steepness(), Op::V_MIN_VF);
  }
  void clamp_below(const RowPointers& x, float limit) const {
    clamp(x, limit, -steepness(), Op::V_MAX_VF);
  }

  void clamp(const RowPointers& x, float limit, float steep, Op instruction) const {
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
  std::uint64_t count_;
  std::uint64_t at_once_;   // rows side by side
  std::uint64_t rows_ = 0;  // of the copies that are emitted now
  RowPointers gate_;
  RowPointers up_;
  RowPointers t_;  // of the result
  RowPointers other_;
};

}  // namespace

bool needs_another_stage(const ActivationShape& activation, const Dialect& dialect) {
  return activation.kind == Activation::ErfGelu ||
         (activation.kind == Activation::ClampedSwiglu && !dialect.has(Extension::MinMax));
}

void emit_activation(const KernelContext& context, const ActivationShape& activation, bool gated,
                     const ActivationRows& rows) {
  ActivationStages(context, activation, gated, rows).emit();
}

}  // namespace plena
