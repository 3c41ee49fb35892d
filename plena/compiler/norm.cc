// RMSNorm: one sum of squares, one reciprocal root, one scaling. LayerNorm is the same thing here:
// whatever writes to the residual stream writes vectors without a mean (model_graph.cc).

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

// to = from * scale [* gain], added to what is there or not.
class Scaling {
 public:
  Scaling(const KernelContext& context, const LayerKind& kind, const NormOp& op)
      : context_(context), kind_(kind), op_(op), tiles_(context.tiled.rows(op.from)) {}

  void emit(Fp scale) const {
    Emitter& e = context_.emitter;
    HeldGp x(e, "input");
    HeldGp y(e, "output");
    HeldGp target(e, "scaled");
    std::optional<HeldGp> gain;
    e.set(x, context_.row(op_.from), "input");
    e.set(y, context_.row(op_.to), "output");
    if (op_.gain) {
      gain.emplace(e, "gain");
      e.set(*gain, gain_address(), "gain");
    }
    if (op_.add) e.set(target, context_.row(context_.plan.scratch), "scratch");
    Loop loop(e, tiles_, "tiles");
    const Gp scaled = op_.add ? Gp(target) : Gp(y);
    e.emit(Op::V_MUL_VF, {scaled, x, scale, kAllLanes});
    if (gain) e.emit(Op::V_MUL_VV, {scaled, scaled, *gain, kAllLanes});
    if (op_.add) e.emit(Op::V_ADD_VV, {y, y, target, kAllLanes});
    const std::uint64_t vlen = context_.settings.vlen;
    step(context_, x, vlen, tiles_);
    step(context_, y, vlen, tiles_);
    if (gain) step(context_, *gain, vlen, tiles_);
  }

 private:
  [[nodiscard]] std::uint64_t gain_address() const {
    return context_.row(context_.plan.vectors, context_.tiled.first_row(kind_.vectors, *op_.gain));
  }

  const KernelContext& context_;
  const LayerKind& kind_;
  const NormOp& op_;
  std::uint64_t tiles_;
};

}  // namespace

void emit_norm(const KernelContext& context, const LayerKind& kind, const NormOp& op) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "rmsnorm");
  const std::uint64_t tiles = context.tiled.rows(op.from);
  HeldFp scale(e, "scale");
  context.constants.load(e, scale, op.epsilon, "width * epsilon");
  {
    HeldGp x(e, "input");
    HeldGp square(e, "square");
    e.set(x, context.row(op.from), "input");
    e.set(square, context.row(context.plan.scratch), "scratch");
    Loop loop(e, tiles, "tiles");
    e.emit(Op::V_MUL_VV, {square, x, x, kAllLanes});
    e.emit(Op::V_RED_SUM, {scale, square});
    step(context, x, context.settings.vlen, tiles);
  }
  e.emit(Op::S_SQRT_FP, {scale, scale});
  e.emit(Op::S_RECI_FP, {scale, scale});
  Scaling(context, kind, op).emit(scale);
}

}  // namespace plena
