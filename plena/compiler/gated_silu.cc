#include "plena/compiler/gated_silu.h"

namespace plena {

GatedSilu::GatedSilu(const BlockContext& context, const Block& gate)
    : context_(context),
      e_(context.emitter),
      gate_(context, context.settings.blen, "gate"),
      factor_(context, context.settings.blen, "1 / (1 + exp)"),
      one_(e_, "1") {
  gate_.load(context, gate);
  factor_.set(context.row(context.block.scratch));
  context.constants.load(e_, one_, 1.0F, "1");
  for (std::uint64_t i = 0; i < rows(); ++i) {
    steps_.emplace_back([this, i] { e_.emit(Op::V_EXP_V, {factor_[i], gate_[i], kAllLanes}); });
  }
  for (std::uint64_t i = 0; i < rows(); ++i) {
    steps_.emplace_back(
        [this, i] { e_.emit(Op::V_ADD_VF, {factor_[i], factor_[i], one_, kAllLanes}); });
  }
  for (std::uint64_t i = 0; i < rows(); ++i) {
    steps_.emplace_back([this, i] { e_.emit(Op::V_RECI_V, {factor_[i], factor_[i], kAllLanes}); });
  }
  for (std::uint64_t i = 0; i < rows(); ++i) {
    steps_.emplace_back(
        [this, i] { e_.emit(Op::V_MUL_VV, {gate_[i], gate_[i], factor_[i], kAllLanes}); });
  }
}

void GatedSilu::finish(Gp up) const {
  HeldGp row(e_, "up");
  e_.offset(row, up, context_.settings.vlen);
  for (std::uint64_t i = 0; i < rows(); ++i) {
    const Gp u = i == 0 ? up : Gp(row);
    e_.emit(Op::V_MUL_VV, {gate_[i], gate_[i], u, kAllLanes});
    if (i != 0) e_.advance(row, context_.settings.vlen);
  }
  gate_.advance();
}

}  // namespace plena
