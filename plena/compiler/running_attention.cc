// Attention tile by tile of positions, for contexts whose scores do not fit Vector SRAM: the
// softmax keeps a running maximum and sum of each head. What a tile raises the maximum by, sums and
// outputs so far are corrected by: exp(maximum before - maximum), 0 for the first tile.
//
// The lowest score stands for nothing yet (it is finite, so that no NaN comes of a difference):
// what a tile out of sight added before any other is multiplied by 0 with the first one in sight.

#include <deque>

#include "plena/compiler/attention_sweeps.h"

namespace plena {

namespace {

constexpr std::uint64_t kHeadsAbreast = 2;

class RunningAttention {
 public:
  explicit RunningAttention(const AttentionTile& tile)
      : tile_(tile),
        context_(tile.context),
        plan_(tile.context.plan),
        e_(tile.context.emitter),
        layout_(tile.layout()),
        heads_(tile.head_count()) {}

  void emit() const {
    if (tile_.shared_rows()) emit_isolated_queries(tile_);
    start();
    e_.comment("every tile of positions in sight");
    {
      HeldGp key(e_, "K tile");
      HeldGp last(e_, "newest K tile");
      HeldGp staged(e_, "tile in use");
      std::optional<HeldGp> first;
      tile_.cache.set_region_sweep(key, last, 0);
      e_.set(staged, context_.tile(plan_.cache_stage), "tile in use");
      if (tile_.op.window != 0) {
        first.emplace(e_, "first K tile");
        e_.copy(*first, key);
      }
      SweepLoop tiles(e_, key, last, "tiles of positions");
      load(key, 0, staged);
      multiply_keys(staged);
      if (tile_.op.score_cap != 0) cap();
      load(key, layout_.key_rows() * plan_.cache_stride, staged);
      hide(key, last, plan_.mask);
      if (first) hide(*first, key, tile_.window().mask);
      weigh();
      multiply_values(staged);
      e_.advance(key, tile_.tile_elements());
    }
    if (tile_.shared_rows()) {
      gather();
    } else {
      scale();
    }
  }

 private:
  [[nodiscard]] std::uint64_t vlen() const { return tile_.vlen(); }

  // First row of the outputs so far.
  void set_outputs(Gp to) const {
    if (tile_.shared_rows()) return e_.set(to, context_.row(plan_.outputs), "outputs");
    tile_.set_rows(to, tile_.op.to, 0, "outputs");
  }

  // No position yet, or the sink as if it were one.
  void start() const {
    e_.comment("running maxima, sums, outputs");
    HeldFp maximum(e_, "maximum");
    HeldFp sum(e_, "sum");
    context_.constants.load(e_, maximum, plan_.lowest_score, "lowest");
    e_.emit(Op::S_ADD_FP, {sum, kZeroFp, kZeroFp}, "sum = 0");
    HeldGp head(e_, "head");
    std::optional<HeldGp> sink;
    if (tile_.op.sinks) {
      context_.constants.load(e_, sum, 1.0F, "weight of the sink");
      sink.emplace(e_, "sink");
      load_kept(context_, *sink, plan_.sinks_at, "sinks of this tile's heads");
    }
    e_.set(head, 0, "head");
    unroll(e_, heads_, kMostCopies, "heads", [&](std::uint64_t copies, bool more) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        if (sink) e_.emit(Op::S_LD_FP, {maximum, *sink, i}, "sink");
        e_.emit(Op::S_ST_FP, {maximum, head, plan_.score_maxima.first + i});
        e_.emit(Op::S_ST_FP, {sum, head, plan_.head_scales.first + i});
      }
      if (!more) return;
      e_.advance(head, copies);
      if (sink) e_.advance(*sink, copies);
    });
    clear_outputs();
  }

  void clear_outputs() const {
    HeldGp row(e_, "output");
    HeldGp zeros(e_, "zeros");
    set_outputs(row);
    e_.set(zeros, context_.row(plan_.selectors), "zeros");
    unroll(e_, heads_ * layout_.span, kMostCopies, "outputs", [&](std::uint64_t copies, bool) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        e_.emit(Op::V_ADD_VF, {row, zeros, kZeroFp, kAllLanes});
        e_.advance(row, vlen());
      }
    });
  }

  void cap() const {
    HeldGp score(e_, "scores");
    e_.set(score, context_.row(plan_.scores), "scores");
    Loop heads(e_, heads_, "heads");
    emit_scaled_tanh(context_, score, score, tile_.op.score_cap);
    step(context_, score, vlen(), heads_);
  }

  // Adds a mask to the scores of all heads where `at` is `end`, zeros elsewhere.
  void hide(Gp at, Gp end, const Block& mask) const {
    HeldGp row(e_, "mask of the tile");
    emit_choice(e_, row, at, end, context_.row(mask), context_.row(plan_.selectors), "mask");
    HeldGp score(e_, "scores");
    e_.set(score, context_.row(plan_.scores), "scores");
    unroll(e_, heads_, kMostCopies, "heads", [&](std::uint64_t copies, bool) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        e_.emit(Op::V_ADD_VV, {score, score, row, kAllLanes});
        e_.advance(score, vlen());
      }
    });
  }

  // The tiles of all rows of a head at the same positions, `distance` behind those of K.
  void load(Gp key, std::uint64_t distance, Gp staged) const {
    HeldGp from(e_, "tile in the cache");
    HeldGp to(e_, "its place");
    e_.offset(from, key, distance, "tile in the cache");
    e_.copy(to, staged);
    Loop rows(e_, layout_.span, "rows of a head");
    e_.emit(Op::H_PREFETCH_M, {to, from, kCacheBase, kContiguous, kKeyValue});
    step(context_, to, tile_.tile_elements(), layout_.span);
    step(context_, from, plan_.cache_stride, layout_.span);
  }

  // scores[head] = q k.
  void multiply_keys(Gp staged) const {
    HeldGp query(e_, "query");
    HeldGp score(e_, "scores");
    if (tile_.shared_rows()) {
      e_.set(query, context_.row(plan_.heads), "queries");
    } else {
      tile_.set_rows(query, tile_.op.qkv, 0, "queries");
    }
    e_.set(score, context_.row(plan_.scores), "scores");
    const std::uint64_t most = std::max<std::uint64_t>(1, kMostCopies / layout_.span);
    unroll(e_, heads_, most, "heads", [&](std::uint64_t copies, bool) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        HeldGp key(e_, "K tile");
        e_.copy(key, staged);
        for (std::uint32_t row = 0; row < layout_.span; ++row) {
          e_.emit(Op::M_TMV, {query, key});
          e_.advance(query, vlen());
          if (row + 1 < layout_.span) e_.advance(key, tile_.tile_elements());
        }
        e_.emit(Op::M_MV_WO, {score, i * vlen()});
      }
      step(context_, score, copies * vlen(), heads_);
    });
  }

  // Scores become weights, maxima and sums those with this tile; corrections for the outputs.
  void weigh() const {
    HeldGp row(e_, "scores");
    HeldGp head(e_, "head");
    e_.set(row, context_.row(plan_.scores), "scores");
    e_.set(head, 0, "head");
    unroll(e_, heads_, kHeadsAbreast, "heads", [&](std::uint64_t copies, bool) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        weigh_head(row, head, i);
        e_.advance(row, vlen());
      }
      step(context_, head, copies, heads_);
    });
  }

  void weigh_head(Gp row, Gp head, std::uint64_t i) const {
    HeldFp maximum(e_, "maximum");
    HeldFp correction(e_, "correction");
    HeldFp sum(e_, "sum");
    e_.emit(Op::S_LD_FP, {correction, head, plan_.score_maxima.first + i}, "maximum before");
    e_.emit(Op::S_ADD_FP, {maximum, correction, kZeroFp});
    e_.emit(Op::V_RED_MAX, {maximum, row, kAllLanes});
    e_.emit(Op::S_ST_FP, {maximum, head, plan_.score_maxima.first + i});
    e_.emit(Op::V_SUB_VF, {row, row, maximum, kAllLanes, 0});
    e_.emit(Op::V_EXP_V, {row, row, kAllLanes});
    e_.emit(Op::S_SUB_FP, {correction, correction, maximum});
    e_.emit(Op::S_EXP_FP, {correction, correction}, "correction");
    e_.emit(Op::S_ST_FP, {correction, head, plan_.corrections.first + i});
    e_.emit(Op::S_LD_FP, {sum, head, plan_.head_scales.first + i}, "sum");
    e_.emit(Op::S_MUL_FP, {sum, sum, correction});
    e_.emit(Op::V_RED_SUM, {sum, row});
    e_.emit(Op::S_ST_FP, {sum, head, plan_.head_scales.first + i});
  }

  // outputs = outputs * correction + weights V.
  void multiply_values(Gp staged) const {
    HeldGp weights(e_, "weights");
    HeldGp head(e_, "head");
    HeldGp output(e_, "output");
    HeldGp addend(e_, "weighted V");
    e_.set(weights, context_.row(plan_.scores), "weights");
    e_.set(head, 0, "head");
    set_outputs(output);
    unroll(e_, heads_, std::max<std::uint64_t>(1, kHeadsAbreast / layout_.span), "heads",
           [&](std::uint64_t copies, bool) {
             for (std::uint64_t i = 0; i < copies; ++i) {
               HeldFp correction(e_, "correction");
               e_.emit(Op::S_LD_FP, {correction, head, plan_.corrections.first + i}, "correction");
               e_.set(addend, context_.row(plan_.scratch, i), "weighted V");
               correct_head(staged, weights, output, addend, correction);
               step(context_, weights, vlen(), heads_);
             }
             step(context_, head, copies, heads_);
           });
  }

  void correct_head(Gp staged, Gp weights, Gp output, Gp addend, Fp correction) const {
    HeldGp value(e_, "V tile");
    e_.copy(value, staged);
    unroll(e_, layout_.span, kHeadsAbreast, "rows of a head", [&](std::uint64_t copies, bool) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        e_.emit(Op::M_MV, {weights, value});
        e_.emit(Op::M_MV_WO, {addend, 0});
        e_.emit(Op::V_MUL_VF, {output, output, correction, kAllLanes});
        e_.emit(Op::V_ADD_VV, {output, output, addend, kAllLanes});
        e_.advance(output, vlen());
        step(context_, value, tile_.tile_elements(), layout_.span);
      }
    });
  }

  // Each head's outputs times 1 / sum.
  template <class Finish>
  void scale_heads(std::uint64_t heads, Gp head, Gp output, Finish&& finish) const {
    HeldFp factor(e_, "1 / sum");
    for (std::uint64_t i = 0; i < heads; ++i) {
      e_.emit(Op::S_LD_FP, {factor, head, plan_.head_scales.first + i}, "sum");
      e_.emit(Op::S_RECI_FP, {factor, factor}, "1 / sum");
      unroll(e_, layout_.span, kMostCopies, "rows of a head", [&](std::uint64_t copies, bool) {
        for (std::uint64_t row = 0; row < copies; ++row) {
          e_.emit(Op::V_MUL_VF, {output, output, factor, kAllLanes});
          finish();
          e_.advance(output, vlen());
        }
      });
    }
  }

  void scale() const {
    HeldGp head(e_, "head");
    HeldGp output(e_, "output");
    e_.set(head, 0, "head");
    set_outputs(output);
    unroll(e_, heads_, kHeadsAbreast, "heads", [&](std::uint64_t copies, bool) {
      scale_heads(copies, head, output, [] {});
      step(context_, head, copies, heads_);
    });
  }

  // attention[group] = the outputs of its heads, each in the lanes of its slot only.
  void gather() const {
    e_.comment("outputs in the lanes of their heads");
    HeldGp to(e_, "attention");
    HeldGp zeros(e_, "zeros");
    HeldGp selector(e_, "selector");
    HeldGp head(e_, "head");
    HeldGp output(e_, "output");
    tile_.set_rows(to, tile_.op.to, 0, "attention");
    e_.set(zeros, context_.row(plan_.selectors), "zeros");
    {
      Loop groups(e_, layout_.groups, "groups");
      e_.emit(Op::V_ADD_VF, {to, zeros, kZeroFp, kAllLanes});
      step(context_, to, vlen(), layout_.groups);
    }
    e_.set(selector, context_.row(plan_.selectors, 1), "slot selectors");
    e_.set(head, 0, "head");
    set_outputs(output);
    Loop slots(e_, layout_.slots, "slots");
    tile_.set_rows(to, tile_.op.to, 0, "attention");
    {
      Loop groups(e_, layout_.groups, "groups");
      scale_heads(1, head, output, [&] {
        e_.emit(Op::V_MUL_VV, {output, output, selector, kAllLanes});
        e_.emit(Op::V_ADD_VV, {to, to, output, kAllLanes});
      });
      step(context_, head, 1, heads_);
      step(context_, to, vlen(), layout_.groups);
    }
    e_.advance(selector, vlen());
  }

  const AttentionTile& tile_;
  const KernelContext& context_;
  const MemoryPlan& plan_;
  Emitter& e_;
  const HeadLayout& layout_;
  std::uint64_t heads_;
};

}  // namespace

void emit_running_attention(const AttentionTile& tile) {
  RunningAttention(tile).emit();
}

}  // namespace plena
