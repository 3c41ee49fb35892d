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
    find_scale(x, scale);
    write(x, y, scale);
  }

  void emit_scale(Fp scale) const {
    HeldGp x(e_, "input");
    e_.set(x, context_.row(op_.from), "input");
    find_scale(x, scale);
  }

 private:
  void find_scale(Gp x, Fp scale) const {
    sum_up_squares(x, scale);
    e_.emit(Op::S_SQRT_FP, {scale, scale});
    e_.emit(Op::S_RECI_FP, {scale, scale});
  }

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

constexpr std::uint64_t kAngleRows = 2;  // cosines and sines

// Whether an operator reads a value that a norm writes.
struct Reads {
  ValueId value;
  bool operator()(const NormOp& op) const { return op.from == value; }
  bool operator()(const ProductOp& op) const { return op.from == value; }
  bool operator()(const FeedForwardOp& op) const { return op.from == value; }
  bool operator()(const ExpertsOp& op) const { return op.up.from == value; }
  template <class Other>
  bool operator()(const Other&) const {
    return false;
  }
};

// Rows that take the factor of a norm behind the products over that value: those of a feed-forward
// layer, or the values, cosines and sines where q and k go through RoPE next; 0 for anything else.
// The turn rounds no more often than with a norm that comes first.
struct OutputsFrom {
  const KernelContext& context;
  ValueId value;
  const Operator* next;  // what follows the product
  std::uint64_t operator()(const FeedForwardOp& op) const {
    return op.from == value ? (op.gated ? 2U : 1U) * context.tiled.rows(op.to) : 0;
  }
  std::uint64_t operator()(const ProductOp& op) const {
    const auto* turn = next != nullptr ? std::get_if<RotateOp>(next) : nullptr;
    const HeadLayout& heads = context.tiled.heads;
    if (op.from != value || op.bias || op.add) return 0;
    if (turn == nullptr || turn->qkv != op.to || heads.span > 1) return 0;
    return kAngleRows + heads.key_rows();
  }
  template <class Other>
  std::uint64_t operator()(const Other&) const {
    return 0;
  }
};

}  // namespace

void emit_norm(const KernelContext& context, const LayerKind& kind, const NormOp& op) {
  const RegionScope region(context.emitter, "rmsnorm");
  NormRows(context, kind, op).emit();
}

void emit_norm_scale(const KernelContext& context, const LayerKind& kind, const NormOp& op,
                     Fp scale) {
  const RegionScope region(context.emitter, "rmsnorm");
  NormRows(context, kind, op).emit_scale(scale);
}

bool may_be_late(const KernelContext& context, const LayerKind& kind, std::size_t at) {
  constexpr std::uint64_t kMostInputs = 2;   // tiles; of more the factors are fewer before
  constexpr std::uint64_t kMostOutputs = 8;  // the product
  constexpr unsigned kWideExponent = 8;      // bits, as of bf16
  const std::vector<Operator>& operators = kind.operators;
  const auto* norm = std::get_if<NormOp>(&operators[at]);
  if (norm == nullptr || norm->add || norm->gain || at + 1 == operators.size()) return false;
  if (context.tiled.rows(norm->from) > kMostInputs) return false;
  if (context.settings.vector_sram_type.element.exponent < kWideExponent) return false;
  std::uint64_t readers = 0;
  for (std::size_t i = at + 1; i < operators.size(); ++i) {
    if (std::visit(Reads{norm->to}, operators[i])) ++readers;
    const auto* again = std::get_if<NormOp>(&operators[i]);
    if (again != nullptr && again->to == norm->to && !again->add) break;
  }
  const Operator* const next = at + 2 < operators.size() ? &operators[at + 2] : nullptr;
  const std::uint64_t tiles = std::visit(OutputsFrom{context, norm->to, next}, operators[at + 1]);
  return readers == 1 && tiles != 0 && tiles <= kMostOutputs;
}

}  // namespace plena
