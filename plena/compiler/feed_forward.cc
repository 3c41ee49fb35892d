// The first half of a feed-forward layer, one hidden tile at a time: gate and up as one product of
// two output tiles, then the activation.

#include "plena/compiler/kernels.h"

namespace plena {

void emit_feed_forward(const KernelContext& context, const FeedForwardOp& op,
                       const TiledFeedForward& tiled) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "feed_forward");
  const std::uint64_t tiles = context.tiled.rows(op.to);
  const std::uint64_t vlen = context.settings.vlen;
  const std::uint64_t halves = op.gated ? 2 : 1;
  HeldGp hidden(e, "hidden");
  e.set(hidden, context.row(op.to), "hidden");
  std::optional<HeldGp> bias;
  if (tiled.bias) {
    bias.emplace(e, "bias");
    e.set(*bias, *tiled.bias, "biases of the gate and up tiles");
  }
  Loop loop(e, tiles, "hidden tiles");
  emit_tiled_product(context, {.stream = tiled.stream,
                               .inputs = context.row(op.from),
                               .outputs = context.row(context.plan.gate),
                               .input_tiles = context.tiled.rows(op.from),
                               .output_tiles = halves});
  HeldGp gate(e, "gate");
  HeldGp up(e, "up");
  e.set(gate, context.row(context.plan.gate), "gate");
  e.set(up, context.row(context.plan.gate, 1), "up");
  if (bias) {
    for (const Gp row : {Gp(gate), Gp(up)}) {
      if (!op.gated && row.index == Gp(up).index) continue;
      e.emit(Op::V_ADD_VV, {row, row, *bias, kAllLanes});
      e.advance(*bias, vlen);
    }
  }
  emit_activation(context, op.activation, op.gated, {.gate = gate, .up = up, .to = hidden});
  step(context, hidden, vlen, tiles);
}

void emit_feed_forward(const KernelContext& context, const LayerKind& kind,
                       const FeedForwardOp& op) {
  TiledFeedForward tiled{.stream = context.weights};
  if (op.bias) {
    tiled.bias = context.row(context.plan.vectors, context.tiled.first_row(kind.vectors, *op.bias));
  }
  emit_feed_forward(context, op, tiled);
}

}  // namespace plena
