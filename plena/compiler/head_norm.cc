// RMSNorm of each head's query or key by itself. Heads that share a row are taken out of it one
// after the other.

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

class HeadNorm {
 public:
  HeadNorm(const KernelContext& context, const LayerKind& kind, const HeadNormOp& op)
      : context_(context),
        e_(context.emitter),
        op_(op),
        layout_(context.tiled.heads),
        vlen_(context.settings.vlen),
        gain_(context.row(context.plan.vectors, context.tiled.first_row(kind.vectors, op.gain))) {}

  void emit() const {
    const bool queries = op_.part == HeadPart::Queries;
    const std::uint64_t rows = queries ? layout_.query_rows() : layout_.key_rows();
    HeldGp x(e_, "head");
    e_.set(x, context_.row(op_.qkv, queries ? 0 : layout_.query_rows()),
           queries ? "queries" : "keys");
    Loop loop(e_, rows / layout_.span, "rows");
    if (layout_.slots > 1) {
      norm_slots(x);
    } else {
      norm_rows(x);
    }
  }

 private:
  void start_sum(Fp scale) const {
    context_.constants.load(e_, scale, op_.epsilon, "width * epsilon");
  }

  void finish_sum(Fp scale) const {
    e_.emit(Op::S_SQRT_FP, {scale, scale});
    e_.emit(Op::S_RECI_FP, {scale, scale});
  }

  // One head in `span` rows of its own; moves on behind them.
  void norm_rows(Gp x) const {
    HeldFp scale(e_, "scale");
    HeldGp row(e_, "row");
    start_sum(scale);
    {
      HeldGp square(e_, "square");
      e_.set(square, context_.row(context_.plan.scratch), "scratch");
      e_.copy(row, x);
      Loop loop(e_, layout_.span, "rows of the head");
      e_.emit(Op::V_MUL_VV, {square, row, row, kAllLanes});
      e_.emit(Op::V_RED_SUM, {scale, square});
      step(context_, row, vlen_, layout_.span);
    }
    finish_sum(scale);
    HeldGp gain(e_, "gain");
    e_.set(gain, gain_, "gain");
    Loop loop(e_, layout_.span, "rows of the head");
    e_.emit(Op::V_MUL_VF, {x, x, scale, kAllLanes});
    e_.emit(Op::V_MUL_VV, {x, x, gain, kAllLanes});
    e_.advance(x, vlen_);
    step(context_, gain, vlen_, layout_.span);
  }

  // The heads of one row; moves on behind it.
  void norm_slots(Gp x) const {
    HeldFp scale(e_, "scale");
    HeldGp selector(e_, "selector");
    HeldGp head(e_, "head alone");
    HeldGp square(e_, "square");
    HeldGp sum(e_, "normed heads");
    e_.set(selector, context_.row(context_.plan.selectors), "zeros, slot selectors");
    e_.set(head, context_.row(context_.plan.scratch), "head alone");
    e_.set(square, context_.row(context_.plan.scratch, 1), "square");
    e_.set(sum, context_.row(context_.plan.scratch, 2), "normed heads");
    e_.emit(Op::V_ADD_VF, {sum, selector, kZeroFp, kAllLanes}, "zeros");
    {
      Loop slots(e_, layout_.slots, "slots");
      e_.advance(selector, vlen_);
      e_.emit(Op::V_MUL_VV, {head, x, selector, kAllLanes});
      e_.emit(Op::V_MUL_VV, {square, head, head, kAllLanes});
      start_sum(scale);
      e_.emit(Op::V_RED_SUM, {scale, square});
      finish_sum(scale);
      e_.emit(Op::V_MUL_VF, {head, head, scale, kAllLanes});
      e_.emit(Op::V_ADD_VV, {sum, sum, head, kAllLanes});
    }
    e_.set(selector, gain_, "gain");
    e_.emit(Op::V_MUL_VV, {x, sum, selector, kAllLanes});
    e_.advance(x, vlen_);
  }

  const KernelContext& context_;
  Emitter& e_;
  const HeadNormOp& op_;
  const HeadLayout& layout_;
  std::uint64_t vlen_;
  std::uint64_t gain_;  // address of its first row
};

}  // namespace

void emit_head_norm(const KernelContext& context, const LayerKind& kind, const HeadNormOp& op) {
  const RegionScope region(context.emitter, "head_norm");
  HeadNorm(context, kind, op).emit();
}

}  // namespace plena
