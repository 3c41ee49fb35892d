// Experts of a block: each token has its own, so that they run token after token as in decoding, on
// rows copied there and back.

#include "plena/compiler/block_kernels.h"

namespace plena {

namespace {

class BlockExperts {
 public:
  BlockExperts(const BlockContext& context, const LayerKind& kind, const ExpertsOp& op)
      : context_(context), e_(context.emitter), kind_(kind), op_(op) {}

  void emit() const {
    const std::uint64_t stream =
        op_.experts * context_.tiled.expert_tiles(op_) * context_.tiled.tile_elements();
    keep(context_, kZeroGp, context_.block.expert_token);
    {
      OuterLoop tokens(e_, context_.block.tokens, context_.block.expert_tokens.first, "tokens");
      copy(op_.logits, Direction::ToDecoding);
      copy(op_.up.from, Direction::ToDecoding);
      if (op_.add) copy(op_.to, Direction::ToDecoding);
      emit_experts(context_, kind_, op_);
      copy(op_.to, Direction::ToBlock);
      e_.retreat(context_.weights, stream, "to this layer's experts again");
      next_token();
    }
    e_.advance(context_.weights, stream, "behind the experts");
  }

 private:
  enum class Direction : std::uint8_t { ToDecoding, ToBlock };

  void next_token() const {
    HeldGp token(e_, "rows of the token");
    load_kept(context_, token, context_.block.expert_token, "rows of the token");
    e_.advance(token, context_.settings.vlen);
    keep(context_, token, context_.block.expert_token);
  }

  // The token's rows of a value from those of the block to decoding's, or back.
  void copy(ValueId value, Direction direction) const {
    const std::uint64_t tiles = context_.tiled.rows(value);
    HeldGp of_block(e_, "row of the block");
    HeldGp row(e_, "row of one token");
    load_kept(context_, of_block, context_.block.expert_token, "rows of the token");
    e_.advance(of_block, context_.rows(value));
    e_.set(row, context_.row(context_.plan.values[value]));
    const bool back = direction == Direction::ToBlock;
    const Gp to = back ? of_block : row;
    const Gp from = back ? row : of_block;
    Loop loop(e_, tiles, "tiles");
    e_.emit(Op::V_ADD_VF, {to, from, kZeroFp, kAllLanes});
    step(context_, of_block, context_.tile_rows(), tiles);
    step(context_, row, context_.settings.vlen, tiles);
  }

  const BlockContext& context_;
  Emitter& e_;
  const LayerKind& kind_;
  const ExpertsOp& op_;
};

}  // namespace

void emit_block_experts(const BlockContext& context, const LayerKind& kind, const ExpertsOp& op) {
  BlockExperts(context, kind, op).emit();
}

}  // namespace plena
