// RMSNorm: one sum of squares, one reciprocal root, one scaling. LayerNorm is the same thing here:
// whatever writes to the residual stream writes vectors without a mean (model_graph.cc).

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

class NormRows {
 public:
  NormRows(const KernelContext& context, const LayerKind& kind, const NormOp& op)
      : context_(context),
        e_(context.emitter),
        kind_(kind),
        op_(op),
        tiles_(context.tiled.rows(op.from)),
        vlen_(context.settings.vlen) {}

  void emit() const {
    HeldGp x(e_, "input");
    HeldGp y(e_, "output");
    e_.set(x, context_.row(op_.from), "input");
    e_.set(y, context_.row(op_.to), "output");
    HeldFp scale(e_, "scale");
    sum_up_squares(x, scale);
    e_.emit(Op::S_SQRT_FP, {scale, scale});
    e_.emit(Op::S_RECI_FP, {scale, scale});
    write(x, y, scale);
  }

 private:
  // Squares go to rows of scratch in turn, so that one need not wait for the sum of another.
  void sum_up_squares(Gp x, Fp sum) const {
    context_.constants.load(e_, sum, op_.epsilon, "width * epsilon");
    const std::uint64_t most = context_.plan.scratch.count;
    std::optional<HeldGp> walk;
    if (tiles_ > 1) {
      walk.emplace(e_, "row");
      e_.copy(*walk, x);
    }
    const Gp row = walk ? Gp(*walk) : x;
    unroll(e_, tiles_, most, "tiles", [&](std::uint64_t copies, bool) {
      HeldGp square(e_, "square");
      for (std::uint64_t i = 0; i < copies; ++i) {
        e_.set(square, context_.row(context_.plan.scratch, i), "scratch");
        e_.emit(Op::V_MUL_VV, {square, row, row, kAllLanes});
        e_.emit(Op::V_RED_SUM, {sum, square});
        step(context_, row, vlen_, tiles_);
      }
    });
  }

  // y = x * scale [* gain], added to what is there or not; moves both on.
  void write(Gp x, Gp y, Fp scale) const {
    HeldGp scratch(e_, "scaled");
    std::optional<HeldGp> gain;
    if (op_.gain) {
      gain.emplace(e_, "gain");
      e_.set(
          *gain,
          context_.row(context_.plan.vectors, context_.tiled.first_row(kind_.vectors, *op_.gain)),
          "gain");
    }
    if (op_.add) e_.set(scratch, context_.row(context_.plan.scratch), "scratch");
    const Gp scaled = op_.add ? Gp(scratch) : y;
    unroll(e_, tiles_, kMostCopies, "tiles", [&](std::uint64_t copies, bool) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        e_.emit(Op::V_MUL_VF, {scaled, x, scale, kAllLanes});
        if (gain) e_.emit(Op::V_MUL_VV, {scaled, scaled, *gain, kAllLanes});
        if (op_.add) e_.emit(Op::V_ADD_VV, {y, y, scratch, kAllLanes});
        step(context_, x, vlen_, tiles_);
        step(context_, y, vlen_, tiles_);
        if (gain) step(context_, *gain, vlen_, tiles_);
      }
    });
  }

  const KernelContext& context_;
  Emitter& e_;
  const LayerKind& kind_;
  const NormOp& op_;
  std::uint64_t tiles_;
  std::uint64_t vlen_;
};

}  // namespace

void emit_norm(const KernelContext& context, const LayerKind& kind, const NormOp& op) {
  const RegionScope region(context.emitter, "rmsnorm");
  NormRows(context, kind, op).emit();
}

}  // namespace plena
