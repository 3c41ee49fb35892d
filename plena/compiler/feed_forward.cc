// The first half of a feed-forward layer: gate and up of all hidden tiles as one product, then the
// activation.

#include "plena/compiler/kernels.h"

namespace plena {

void emit_feed_forward(const KernelContext& context, const FeedForwardOp& op,
                       const TiledFeedForward& tiled) {
  const RegionScope region(context.emitter, "feed_forward");
  const std::uint64_t tiles = context.tiled.rows(op.to);
  const std::uint64_t vlen = context.settings.vlen;
  const std::uint64_t halves = op.gated ? 2 : 1;
  emit_tiled_product(context,
                     {.stream = tiled.stream,
                      .inputs = context.row(tiled.norm ? tiled.norm->from : op.from),
                      .outputs = context.row(context.plan.gate),
                      .input_tiles = context.tiled.rows(op.from),
                      .output_tiles = halves * tiles,
                      .kinds = halves,
                      .scale = tiled.norm ? std::optional(tiled.norm->scale) : std::nullopt,
                      .bias = tiled.bias});
  emit_activation(context, op.activation, op.gated,
                  {.count = tiles,
                   .gate = {context.row(context.plan.gate), halves * vlen},
                   .up = {context.row(context.plan.gate, 1), halves * vlen},
                   .to = {context.row(op.to), vlen}});
}

void emit_feed_forward(const KernelContext& context, const LayerKind& kind, const FeedForwardOp& op,
                       const std::optional<LateNorm>& norm) {
  TiledFeedForward tiled{.stream = context.weights, .norm = norm, .bias = {}};
  if (op.bias) {
    tiled.bias = context.row(context.plan.vectors, context.tiled.first_row(kind.vectors, *op.bias));
  }
  emit_feed_forward(context, op, tiled);
}

}  // namespace plena
