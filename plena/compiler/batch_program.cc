// The entry that decodes a token of each of several sequences. Norms, products and feed-forward
// layers take all of them at once, as a block; what knows positions (the embedding, rotations, the
// cache) takes one after the other, as decoding does, in its rows.

#include "plena/compiler/block_kernels.h"
#include "plena/compiler/layer_walk.h"
#include "plena/compiler/logit_pieces.h"

namespace plena {

namespace {

bool knows_positions(const Operator& op) {
  return std::holds_alternative<HeadNormOp>(op) || std::holds_alternative<RotateOp>(op) ||
         std::holds_alternative<AttentionOp>(op);
}

class BatchProgram {
 public:
  BatchProgram(const KernelContext& one_token, const BlockContext& context, const BatchPlan& batch)
      : one_(one_token), context_(context), e_(one_token.emitter), batch_(batch) {}

  void emit() const {
    emit_setup_of_all();
    each_sequence("embedding", false, [&] {
      emit_embedding(one_);
      emit_arrived_rows(one_);
      move_rows(one_.tiled.graph->residual, false);
    });
    walk_layers(context_, [&](const LayerKind& kind) {
      const RegionScope region(e_, "layer");
      emit_layer_places(context_, false);
      if (one_.plan.cache.windowed()) start_with_first_sequence();
      emit_operators(kind);
      advance_layer(context_);
    });
    const RegionScope region(e_, "ending");
    emit_layer_places(context_, true);
    emit_operators(one_.tiled.graph->ending);
  }

 private:
  // The cache of the layer is that of the sequence that other entries go on with.
  void start_with_first_sequence() const {
    HeldGp cache(e_, "cache");
    HeldGp sequence(e_, "positions of the sequence");
    load_kept(one_, cache, one_.plan.cache_at, "cache of the layer");
    load_kept(one_, sequence, one_.plan.sequence_at, "positions of the sequence");
    e_.emit(Op::S_SUB_INT, {cache, cache, sequence});
    keep(one_, cache, one_.plan.cache_at);
  }

  void emit_setup_of_all() const {
    const RegionScope region(e_, "setup");
    emit_shared_setup(one_);
    keep(one_, kZeroGp, one_.plan.cache_at);
    emit_constant_tiles(one_);
    emit_no_scores(one_);
  }

  // Runs of operators that know positions for one sequence after the other.
  void emit_operators(const LayerKind& kind) const {
    emit_layer_vectors(context_, loaded_vectors(one_.tiled, one_.tables, kind));
    const std::vector<Operator>& operators = kind.operators;
    for (auto op = operators.begin(); op != operators.end();) {
      if (comes_in_pieces(context_, *op)) {
        const auto at = static_cast<std::size_t>(op - operators.begin());
        return emit_logit_pieces(context_, kind, at, [&](const Operator& part) {
          emit_block_operator(context_, kind, part);
        });
      }
      const auto end = std::find_if_not(op, operators.end(), knows_positions);
      if (op == end) {
        emit_block_operator(context_, kind, *op++);
        continue;
      }
      each_sequence("sequences", true, [&] { emit_positioned(kind, {op, end}); });
      finish_sinks({op, end});
      op = end;
    }
  }

  // The last of the operators is attention, which the others lead up to.
  void emit_positioned(const LayerKind& kind, std::span<const Operator> operators) const {
    const auto* attention = std::get_if<AttentionOp>(&operators.back());
    if (attention == nullptr) return e_.refuse("heads that no attention reads");
    emit_position_terms(one_);
    move_rows(attention->qkv, true);
    for (const Operator& op : operators) {
      if (const auto* norm = std::get_if<HeadNormOp>(&op)) emit_head_norm(one_, kind, *norm);
      if (const auto* turn = std::get_if<RotateOp>(&op)) emit_rotation(one_, *turn);
    }
    emit_early_cache_load(one_, *attention);
    emit_attention(one_, *attention);
    if (attention->sinks) move_kept(one_.plan.sinks_at, sinks_of_layer(), true);
    move_rows(attention->to, false);
  }

  // All sequences of a layer have the same sinks.
  void finish_sinks(std::span<const Operator> operators) const {
    const auto* attention = std::get_if<AttentionOp>(&operators.back());
    if (attention != nullptr && attention->sinks) {
      move_kept(one_.plan.sinks_at, sinks_of_layer(), false);
    }
  }
  [[nodiscard]] std::uint64_t sinks_of_layer() const {
    return std::uint64_t{one_.tiled.heads.tiles} * one_.tiled.heads.heads_per_tile();
  }

  void move_kept(const Block& place, std::uint64_t amount, bool back) const {
    HeldGp at(e_, place.name);
    load_kept(one_, at, place, place.name);
    if (back) {
      e_.retreat(at, amount);
    } else {
      e_.advance(at, amount);
    }
    keep(one_, at, place);
  }

  // `body` for every sequence, with its inputs, masks and rows of tables where decoding has them
  // and, where it reads the cache, its part of that.
  template <class Body>
  void each_sequence(std::string_view name, bool cache, Body&& body) const {
    const RegionScope region(e_, name);
    {
      HeldGp inputs(e_, "inputs");
      e_.set(inputs, batch_.inputs.first, "inputs of the first sequence");
      keep(one_, inputs, batch_.input_at);
    }
    keep(one_, kZeroGp, batch_.row_at);
    {
      OuterLoop sequences(e_, batch_.sequences, batch_.counter.first, "sequences");
      take_inputs();
      emit_position(one_);
      body();
      move_kept(batch_.row_at, one_.settings.vlen, false);
      if (cache) move_kept(one_.plan.cache_at, sequence_elements(one_.tiled), false);
    }
    if (cache) {
      move_kept(one_.plan.cache_at, batch_.sequences * sequence_elements(one_.tiled), true);
    }
  }

  void take_inputs() const {
    HeldGp from(e_, "inputs of the sequence");
    HeldGp value(e_, "input");
    load_kept(one_, from, batch_.input_at, "inputs of the sequence");
    const Block& positions = one_.plan.position_inputs;
    e_.emit(Op::S_LD_INT, {value, from, std::uint64_t{0}}, "token");
    e_.emit(Op::S_ST_INT, {value, kZeroGp, one_.plan.token.first});
    for (std::uint64_t i = 0; i < positions.count; ++i) {
      e_.emit(Op::S_LD_INT, {value, from, i + 1});
      e_.emit(Op::S_ST_INT, {value, kZeroGp, positions.first + i});
    }
    e_.advance(from, 1 + positions.count);
    keep(one_, from, batch_.input_at);
  }

  // The sequence's rows of a value from the block to where decoding has them, or back.
  void move_rows(ValueId value, bool to_one) const {
    const std::uint64_t rows = one_.tiled.rows(value);
    HeldGp all(e_, "rows of all sequences");
    HeldGp own(e_, "rows of one");
    load_kept(one_, all, batch_.row_at, "rows of the sequence");
    e_.advance(all, context_.rows(value), "row of all sequences");
    e_.set(own, one_.row(value), "row of one");
    Loop loop(e_, rows, "rows");
    e_.emit(Op::V_ADD_VF, {to_one ? own : all, to_one ? all : own, kZeroFp, kAllLanes});
    step(one_, all, context_.tile_rows(), rows);
    step(one_, own, one_.settings.vlen, rows);
  }

  const KernelContext& one_;
  const BlockContext& context_;
  Emitter& e_;
  const BatchPlan& batch_;
};

}  // namespace

void emit_batch(const KernelContext& one_token, const BatchPlan& batch) {
  MemoryPlan plan = one_token.plan;
  plan.activation = batch.block.activation;  // of as many rows as a block has
  const BlockContext context = block_context(one_token, plan, batch.block);
  BatchProgram(one_token, context, batch).emit();
}

}  // namespace plena
