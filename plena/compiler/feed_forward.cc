// The first half of a feed-forward layer, one hidden tile at a time: gate and up as one product of
// two output tiles, then the activation.

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

// hidden = activation(gate + bias) [* (up + bias)] of every token, for one tile of each.
void activate(const KernelContext& context, const FeedForwardOp& op, Gp hidden,
              const std::optional<HeldGp>& bias) {
  Emitter& e = context.emitter;
  const std::uint64_t vlen = context.settings.vlen;
  HeldGp gate(e, "gate");
  HeldGp up(e, "up");
  HeldGp to(e, "hidden of the token");
  e.set(gate, context.row(context.plan.gate), "gate");
  e.copy(to, hidden);
  Loop tokens(e, context.tokens, "tokens");
  e.offset(up, gate, vlen, "up");
  if (bias) {
    e.emit(Op::V_ADD_VV, {gate, gate, *bias, kAllLanes});
    if (op.gated) {
      HeldGp up_bias(e, "bias of up");
      e.offset(up_bias, *bias, vlen, "bias of up");
      e.emit(Op::V_ADD_VV, {up, up, up_bias, kAllLanes});
    }
  }
  emit_activation(context, op.activation, op.gated, {.gate = gate, .up = up, .to = to});
  step(context, gate, (op.gated ? 2 : 1) * vlen, context.tokens);
  step(context, to, context.token_stride(op.to), context.tokens);
}

}  // namespace

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
                               .output_tiles = halves,
                               .output_stride = halves * vlen});
  activate(context, op, hidden, bias);
  step(context, hidden, vlen, tiles);
  if (bias) step(context, *bias, halves * vlen, tiles);
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
