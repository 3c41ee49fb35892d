// The entry for blocks of tokens: the order of a model's operators, as program.cc has it for one.

#include "plena/compiler/block_kernels.h"
#include "plena/compiler/layer_walk.h"
#include "plena/compiler/logit_pieces.h"

namespace plena {

namespace {

struct EmitBlockOperator {
  const BlockContext& context;
  const LayerKind& kind;

  void operator()(const NormOp& op) const { emit_block_norm(context, kind, op); }
  void operator()(const ProductOp& op) const { emit_block_product(context, kind, op); }
  void operator()(const HeadNormOp& op) const { emit_block_head_norm(context, kind, op); }
  void operator()(const RotateOp& op) const { emit_block_rotation(context, op); }
  void operator()(const AttentionOp& op) const { emit_block_attention(context, op); }
  void operator()(const FeedForwardOp& op) const { emit_block_feed_forward(context, kind, op); }
  void operator()(const SoftCapOp& op) const { emit_block_soft_cap(context, op); }
  void operator()(const ExpertsOp& op) const { emit_block_experts(context, kind, op); }
};

void emit_block_operators(const BlockContext& context, const LayerKind& kind) {
  emit_layer_vectors(context, loaded_vectors(context.tiled, context.tables, kind));
  for (std::size_t i = 0; i < kind.operators.size(); ++i) {
    if (comes_in_pieces(context, kind.operators[i])) {
      return emit_logit_pieces(context, kind, i, [&](const Operator& part) {
        std::visit(EmitBlockOperator{context, kind}, part);
      });
    }
    std::visit(EmitBlockOperator{context, kind}, kind.operators[i]);
  }
}

}  // namespace

BlockContext block_context(const KernelContext& one_token, const MemoryPlan& plan,
                           const BlockPlan& block) {
  return {{.emitter = one_token.emitter,
           .constants = one_token.constants,
           .settings = one_token.settings,
           .dialect = one_token.dialect,
           .tiled = one_token.tiled,
           .plan = plan,
           .tables = one_token.tables,
           .pipeline = one_token.pipeline,
           .weights = one_token.weights},
          block};
}

void emit_block_operator(const BlockContext& context, const LayerKind& kind, const Operator& op) {
  std::visit(EmitBlockOperator{context, kind}, op);
}

void emit_block(const KernelContext& one_token, const BlockPlan& block,
                const std::function<void()>& emit_ending) {
  MemoryPlan plan = one_token.plan;
  plan.activation = block.activation;  // of as many rows as a block has
  const BlockContext context = block_context(one_token, plan, block);
  const Graph& graph = *context.tiled.graph;
  emit_block_setup(context);
  emit_block_embedding(context);
  walk_layers(context, [&](const LayerKind& kind) {
    const RegionScope region(context.emitter, "layer");
    emit_layer_places(context, false);
    emit_block_operators(context, kind);
    advance_layer(context);
  });
  if (!block.all_logits) {
    emit_block_pick_token(context, graph.residual);
    return emit_ending();
  }
  const RegionScope region(context.emitter, "ending");
  emit_layer_places(context, true);
  emit_block_operators(context, graph.ending);
}

}  // namespace plena
