// Mixture of experts: V_TOPK picks experts by the router's logits, then each runs as a feed-forward
// layer whose weights the stream reads from where that expert's lie. Only their weights move.

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

class Experts {
 public:
  Experts(const KernelContext& context, const LayerKind& kind, const ExpertsOp& op)
      : context_(context), e_(context.emitter), kind_(kind), op_(op) {}

  void emit() const {
    route();
    weigh();
    if (!op_.add) clear();
    run_chosen();
    e_.advance(context_.weights, op_.experts * expert_elements(), "behind the experts");
  }

 private:
  [[nodiscard]] std::uint64_t expert_elements() const {
    return context_.tiled.expert_tiles(op_) * context_.tiled.tile_elements();
  }
  [[nodiscard]] bool biased() const { return !kind_.expert_vectors.empty(); }

  // Lanes that are no expert must not win.
  void route() const {
    const RegionScope region(e_, "route");
    const std::uint64_t rows = constant_rows(context_.tiled).router_rows;
    HeldGp logits(e_, "router logits");
    HeldGp padding(e_, "lanes without experts");
    e_.set(logits, context_.row(op_.logits), "router logits");
    e_.set(padding, context_.row(context_.plan.router_padding), "lanes without experts");
    {
      Loop loop(e_, rows, "rows");
      e_.emit(Op::V_ADD_VV, {logits, logits, padding, kAllLanes});
      step(context_, logits, context_.settings.vlen, rows);
      step(context_, padding, context_.settings.vlen, rows);
    }
    if (rows > 1) e_.set(logits, context_.row(op_.logits), "router logits");
    choose(logits);
  }

  // Ids to INT_MEM, softmax over V_TOPK's picks to FP_MEM: by the machine, or by the host while the
  // program stands at a breakpoint.
  void choose(Gp logits) const {
    if (!context_.dialect.has(Extension::Moe)) {
      return e_.emit(Op::C_BREAK, {}, "the host picks the experts");
    }
    HeldGp ids(e_, "ids");
    HeldGp weights(e_, "weights");
    e_.set(ids, context_.plan.experts.first, "ids of the experts");
    e_.set(weights, context_.plan.expert_weights.first, "their weights");
    e_.emit(Op::V_TOPK, {weights, logits, ids, context_.tiled.router.policy});
  }

  void load_weight(Fp to, std::uint64_t index) const {
    e_.emit(Op::S_LD_FP, {to, kZeroGp, context_.plan.expert_weights.first + index});
  }

  // Weights of the chosen ones: they are softmax over all picks, and shall be over the chosen ones
  // or, where the model does not renormalise, over all experts.
  void weigh() const {
    HeldFp scale(e_, "1 / sum");
    if (op_.renormalise) {
      if (op_.chosen == context_.tiled.router.picks) return;
      HeldFp weight(e_, "weight");
      e_.comment("softmax over the chosen experts");
      load_weight(scale, 0);
      for (std::uint32_t i = 1; i < op_.chosen; ++i) {
        load_weight(weight, i);
        e_.emit(Op::S_ADD_FP, {scale, scale, weight});
      }
    } else {
      e_.comment("softmax over all experts: exp of the rest relative to the best, summed up");
      sum_up_all(scale);
    }
    e_.emit(Op::S_RECI_FP, {scale, scale});
    HeldFp weight(e_, "weight");
    for (std::uint32_t i = 0; i < op_.chosen; ++i) {
      load_weight(weight, i);
      e_.emit(Op::S_MUL_FP, {weight, weight, scale});
      e_.emit(Op::S_ST_FP, {weight, kZeroGp, context_.plan.expert_weights.first + i});
    }
  }

  // With w0 = 1 / S the best one's weight among the picks: p_i = w_i S / S_all = w_i / (w0 S_all).
  void sum_up_all(Fp scale) const {
    const std::uint64_t rows = constant_rows(context_.tiled).router_rows;
    HeldFp most(e_, "largest logit");
    HeldGp logits(e_, "router logits");
    HeldGp t(e_, "scratch");
    e_.set(t, context_.row(context_.plan.scratch), "scratch");
    e_.set(logits, context_.row(op_.logits), "router logits");
    context_.constants.load(e_, most, context_.plan.lowest_score, "lowest");
    for (std::uint64_t row = 0; row < rows; ++row) {
      e_.emit(Op::V_RED_MAX, {most, logits, kAllLanes});
      if (row + 1 < rows) e_.advance(logits, context_.settings.vlen);
    }
    e_.emit(Op::S_ADD_FP, {scale, kZeroFp, kZeroFp});
    e_.set(logits, context_.row(op_.logits), "router logits");
    for (std::uint64_t row = 0; row < rows; ++row) {
      e_.emit(Op::V_SUB_VF, {t, logits, most, kAllLanes, 0});
      e_.emit(Op::V_EXP_V, {t, t, kAllLanes});
      e_.emit(Op::V_RED_SUM, {scale, t});
      if (row + 1 < rows) e_.advance(logits, context_.settings.vlen);
    }
    HeldFp best(e_, "weight of the best");
    load_weight(best, 0);
    e_.emit(Op::S_MUL_FP, {scale, scale, best});
  }

  void clear() const {
    const std::uint64_t rows = context_.tiled.rows(op_.to);
    HeldGp to(e_, "sum");
    HeldGp zeros(e_, "zeros");
    e_.set(to, context_.row(op_.to), "sum of the experts");
    e_.set(zeros, context_.row(context_.plan.selectors), "zeros");
    Loop loop(e_, rows, "rows");
    e_.emit(Op::V_ADD_VF, {to, zeros, kZeroFp, kAllLanes});
    step(context_, to, context_.settings.vlen, rows);
  }

  void run_chosen() const {
    HeldGp index(e_, "chosen expert");
    e_.set(index, 0, "first of the chosen");
    Loop loop(e_, op_.chosen, "chosen experts");
    {
      HeldGp stream(e_, "weights of the expert");
      set_stream(stream, index);
      if (biased()) load_biases(index);
      TiledFeedForward up{.stream = stream};
      if (op_.up.bias) up.bias = bias_row(*op_.up.bias);
      emit_feed_forward(context_, op_.up, up);
      const RegionScope region(e_, "expert_down");
      TiledProduct down{.stream = stream,
                        .inputs = context_.row(op_.down.from),
                        .outputs = context_.row(op_.down.to),
                        .input_tiles = context_.tiled.rows(op_.down.from),
                        .output_tiles = context_.tiled.rows(op_.down.to)};
      if (op_.down.bias) down.bias = bias_row(*op_.down.bias);
      emit_tiled_product(context_, down);
    }
    add_weighted(index);
    e_.advance(index, 1);
  }

  [[nodiscard]] std::uint64_t bias_row(VectorId id) const {
    return context_.row(context_.plan.expert_vectors,
                        context_.tiled.first_row(kind_.expert_vectors, id));
  }

  void set_stream(Gp stream, Gp index) const {
    HeldGp size(e_, "elements of an expert");
    e_.emit(Op::S_LD_INT, {stream, index, context_.plan.experts.first}, "expert");
    e_.set(size, expert_elements(), "elements of an expert");
    e_.emit(Op::S_MUL_INT, {stream, stream, size});
    e_.emit(Op::S_ADD_INT, {stream, stream, context_.weights});
  }

  void load_biases(Gp index) const {
    const TableShape& table = context_.tables.expert_vectors;
    HeldGp from(e_, "element of the biases");
    {
      HeldGp t(e_, "elements");
      e_.emit(Op::S_LD_INT, {from, index, context_.plan.experts.first}, "expert");
      e_.set(t, table.stored_rows() * context_.tiled.mlen, "elements of its biases");
      e_.emit(Op::S_MUL_INT, {from, from, t});
      load_kept(context_, t, context_.plan.expert_vectors_at, "biases of this layer's experts");
      e_.emit(Op::S_ADD_INT, {from, from, t});
    }
    HeldGp to(e_, "biases of the expert");
    e_.set(to, context_.row(context_.plan.expert_vectors), "biases of the expert");
    load_entry(context_, from, kExpertVectorsBase, to, table);
  }

  void add_weighted(Gp index) const {
    const std::uint64_t rows = context_.tiled.rows(op_.to);
    HeldFp weight(e_, "weight");
    HeldGp to(e_, "sum");
    HeldGp from(e_, "output of the expert");
    e_.emit(Op::S_LD_FP, {weight, index, context_.plan.expert_weights.first}, "weight");
    e_.set(to, context_.row(op_.to), "sum of the experts");
    e_.set(from, context_.row(op_.down.to), "output of the expert");
    Loop loop(e_, rows, "rows");
    e_.emit(Op::V_MUL_VF, {from, from, weight, kAllLanes});
    e_.emit(Op::V_ADD_VV, {to, to, from, kAllLanes});
    step(context_, to, context_.settings.vlen, rows);
    step(context_, from, context_.settings.vlen, rows);
  }

  const KernelContext& context_;
  Emitter& e_;
  const LayerKind& kind_;
  const ExpertsOp& op_;
};

}  // namespace

void emit_experts(const KernelContext& context, const LayerKind& kind, const ExpertsOp& op) {
  const RegionScope region(context.emitter, "experts");
  Experts(context, kind, op).emit();
}

}  // namespace plena
