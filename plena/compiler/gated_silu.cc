#include "plena/compiler/gated_silu.h"

#include <utility>

namespace plena {

GatedSilu::GatedSilu(const BlockContext& context, const Block& gate, Gp up)
    : context_(context),
      e_(context.emitter),
      gate_(context, context.settings.blen, "gate"),
      factor_(context, context.settings.blen, "1 / (1 + exp)"),
      up_(e_, "up of the token before"),
      one_(e_, "1") {
  const std::uint64_t tokens = rows() * context.settings.vlen;
  {
    HeldGp at(e_, "gate");
    load_kept(context, at, gate, "gate");
    e_.retreat(at, tokens, "gate of the tokens before");
    gate_.set(at);
  }
  e_.copy(up_, up);
  e_.retreat(up_, tokens, "up of the tokens before");
  factor_.set(context.row(context.block.scratch));
  context.constants.load(e_, one_, 1.0F, "1");
  plan_steps();
}

// Beside each product there is time for two instructions or so. What a step reads is made two
// products before it, three where that is a write-out.
void GatedSilu::plan_steps() {
  constexpr std::size_t kWriteOut = 3;
  constexpr std::size_t kVector = 2;
  const std::uint64_t vlen = context_.settings.vlen;
  std::vector<std::vector<std::function<void()>>> beside;
  const auto place = [&](std::size_t product, std::function<void()> instruction) {
    if (beside.size() <= product) beside.resize(product + 1);
    beside[product].push_back(std::move(instruction));
  };
  for (std::uint64_t i = 0; i < rows(); ++i) {
    std::size_t at = kWriteOut + i;
    place(at, [this, i] { e_.emit(Op::V_MUL_VV, {gate_[i], gate_[i], up_, kAllLanes}); });
    place(at, [this, vlen] { e_.advance(up_, vlen); });
    place(at + 1, [this, i, vlen] { e_.advance(gate_[i], rows() * vlen); });
    place(at += kVector, [this, i] { e_.emit(Op::V_EXP_V, {factor_[i], gate_[i], kAllLanes}); });
    place(at += kVector,
          [this, i] { e_.emit(Op::V_ADD_VF, {factor_[i], factor_[i], one_, kAllLanes}); });
    place(at += kVector, [this, i] { e_.emit(Op::V_RECI_V, {factor_[i], factor_[i], kAllLanes}); });
    place(at + kVector,
          [this, i] { e_.emit(Op::V_MUL_VV, {gate_[i], gate_[i], factor_[i], kAllLanes}); });
  }
  for (auto& instructions : beside) {
    steps_.emplace_back([instructions = std::move(instructions)] {
      for (const auto& emit : instructions) emit();
    });
  }
}

void GatedSilu::finish(const BlockContext& context, std::uint64_t gate, std::uint64_t up) {
  Emitter& e = context.emitter;
  HeldGp g(e, "gate");
  HeldGp u(e, "up");
  e.set(g, gate, "gate of the last tokens");
  e.set(u, up, "up of the last tokens");
  for (std::uint64_t i = 0; i < context.settings.blen; ++i) {
    e.emit(Op::V_MUL_VV, {g, g, u, kAllLanes});
    e.advance(g, context.settings.vlen);
    e.advance(u, context.settings.vlen);
  }
}

}  // namespace plena
