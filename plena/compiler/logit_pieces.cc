#include "plena/compiler/logit_pieces.h"

#include <algorithm>
#include <utility>

namespace plena {

namespace {

// Pieces know nothing of each other's tiles: each starts its stream at its own first one.
void start_alone(const KernelContext& context) {
  WeightPipeline& pipeline = context.pipeline;
  const std::uint64_t loaded = std::exchange(pipeline.loaded, 0);
  if (loaded != 0) {
    context.emitter.retreat(context.weights, loaded * context.tiled.tile_elements(),
                            "tiles that a piece loads itself");
  }
  pipeline.next_tiles = 0;
  pipeline.behind_next_tiles = 0;
  pipeline.third_tiles = 0;
}

class PieceEmission {
 public:
  PieceEmission(const KernelContext& context, const LayerKind& ending, std::size_t first,
                const std::function<void(const Operator&)>& emit)
      : context_(context),
        ending_(ending),
        first_(first),
        product_(std::get<ProductOp>(ending.operators[first])),
        emit_(emit) {}

  void emit() const {
    Emitter& e = context_.emitter;
    const std::uint64_t rows = context_.tiled.rows(product_.to);
    const std::uint64_t most = context_.plan.logit_rows;
    const std::uint64_t whole = (rows - 1) / most;
    start_alone(context_);
    {
      OuterLoop pieces(e, whole, context_.plan.logit_pieces.first, "pieces of the logits");
      emit_piece(most);
      count_logits(most);
      e.emit(Op::C_BREAK, {}, "the host reads the piece");
    }
    emit_piece(rows - whole * most);
  }

 private:
  void emit_piece(std::uint64_t rows) const {
    ProductOp part = product_;
    part.matrices[0].width = static_cast<std::uint32_t>(rows * context_.tiled.mlen);
    if (part.bias) emit_logit_bias(context_, ending_, *part.bias, rows);
    emit_(part);
    for (std::size_t i = first_ + 1; i < ending_.operators.size(); ++i) {
      emit_(ending_.operators[i]);
    }
  }

  void count_logits(std::uint64_t rows) const {
    Emitter& e = context_.emitter;
    HeldGp there(e, "logits so far");
    load_kept(context_, there, context_.plan.logits_so_far, "logits so far");
    e.advance(there, rows * context_.tiled.mlen);
    keep(context_, there, context_.plan.logits_so_far);
  }

  const KernelContext& context_;
  const LayerKind& ending_;
  std::size_t first_;
  const ProductOp& product_;
  const std::function<void(const Operator&)>& emit_;
};

}  // namespace

bool comes_in_pieces(const KernelContext& context, const Operator& op) {
  const auto* product = std::get_if<ProductOp>(&op);
  return product != nullptr && product->to == context.tiled.graph->logits &&
         context.plan.logit_rows < context.tiled.rows(product->to);
}

void emit_logit_pieces(const KernelContext& context, const LayerKind& ending, std::size_t first,
                       const std::function<void(const Operator&)>& emit) {
  const RegionScope region(context.emitter, "logit_pieces");
  PieceEmission(context, ending, first, emit).emit();
}

}  // namespace plena
