// Attention of one token over the cache, one tile of K lanes (and the heads that share it) at a
// time: scores of all positions in sight, softmax head by head, and the weighted sum of V.
//
// Heads narrower than a row share rows: each query is isolated in a row of its own before the
// scores, and each output is cut to its own lanes after the sum. Only the tiles in sight are
// walked; the last one is masked, and with a window the first one too.

#include <string_view>

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

// One tile of K lanes, of one layer.
class AttentionTile {
 public:
  AttentionTile(const KernelContext& context, const AttentionOp& op, Gp keys, Gp queries)
      : context_(context),
        e_(context.emitter),
        op_(op),
        layout_(context.tiled.heads),
        vlen_(context.settings.vlen),
        keys_(keys),
        queries_(queries) {}

  void emit() const {
    if (shared_rows()) isolate_queries();
    compute_scores();
    if (op_.score_cap != 0) cap_scores();
    mask_scores();
    weigh_positions();
    for (std::uint32_t row = 0; row < layout_.span; ++row) {
      if (values_stay()) load_values(row);
      sum_up_values(row);
    }
    scale_outputs();
    if (shared_rows()) gather_outputs();
  }

 private:
  [[nodiscard]] bool shared_rows() const { return layout_.slots > 1; }
  [[nodiscard]] bool values_stay() const { return context_.plan.value_tiles.count != 0; }
  [[nodiscard]] std::uint64_t head_count() const { return layout_.heads_per_tile(); }
  [[nodiscard]] std::uint64_t score_stride() const { return head_count() * vlen_; }
  [[nodiscard]] std::uint64_t tile_elements() const { return context_.tiled.tile_elements(); }
  [[nodiscard]] std::uint64_t region(std::uint64_t index) const {
    return index * context_.plan.cache_stride;
  }
  [[nodiscard]] const WindowPlaces& window() const { return context_.plan.windows.at(op_.window); }

  // Distance from a query row to the row of the output with the same place; it may be negative.
  [[nodiscard]] std::uint64_t to_output() const {
    return (context_.row(op_.to) - context_.row(op_.qkv)) & UINT32_MAX;
  }

  // Row of the first head: a query before, an output after the sum over V.
  void set_query_rows(Gp head) const {
    if (shared_rows()) return e_.set(head, context_.row(context_.plan.heads), "queries");
    e_.copy(head, queries_, "queries");
  }
  void set_output_rows(Gp head, std::uint32_t row) const {
    if (shared_rows()) return e_.set(head, context_.row(context_.plan.heads), "outputs");
    e_.offset(head, queries_, (to_output() + row * vlen_) & UINT32_MAX, "outputs");
  }

  // heads[slot][group] = query row of the group, in the lanes of the slot only.
  void isolate_queries() const {
    e_.comment("each head's query alone in a row");
    HeldGp head(e_, "head");
    HeldGp query(e_, "query");
    HeldGp selector(e_, "selector");
    e_.set(head, context_.row(context_.plan.heads), "queries head by head");
    e_.set(selector, context_.row(context_.plan.selectors, 1), "slot selectors");
    if (layout_.groups == 1) e_.copy(query, queries_, "query row");
    Loop slots(e_, layout_.slots, "slots");
    if (layout_.groups > 1) e_.copy(query, queries_, "query rows");
    {
      Loop groups(e_, layout_.groups, "groups");
      e_.emit(Op::V_MUL_VV, {head, query, selector, kAllLanes});
      e_.advance(head, vlen_);
      step(context_, query, vlen_, layout_.groups);
    }
    e_.advance(selector, vlen_);
  }

  // Elements of region `index` of this tile from the first to behind the last position in sight.
  void set_walk(Gp from, Gp end, std::uint64_t index) const {
    load_kept(context_, end, context_.plan.cache_end, "end of the tiles in sight");
    e_.offset(from, keys_, region(index), "region of this tile");
    e_.emit(Op::S_ADD_INT, {end, end, from});
    if (op_.window == 0) return;
    HeldGp first(e_, "first tile");
    load_kept(context_, first, window().first_tile, "first tile in sight");
    e_.emit(Op::S_ADD_INT, {from, from, first});
  }

  // scores[tile][head] = K tile times query; score_span = how far they go.
  void compute_scores() const {
    e_.comment("scores of every tile of positions in sight");
    HeldGp score(e_, "scores");
    {
      HeldGp key(e_, "K tile");
      HeldGp end(e_, "end of K");
      HeldGp tile(e_, "tile");
      set_walk(key, end, 0);
      e_.set(score, context_.row(context_.plan.scores), "scores");
      e_.set(tile, context_.tile(context_.plan.stage), "tiles in use");
      WalkLoop tiles(e_, key, end, "tiles of positions");
      stage_keys(key, tile);
      HeldGp query(e_, "query");
      set_query_rows(query);
      {
        Loop heads(e_, head_count(), "heads");
        multiply_keys(query, tile);
        e_.emit(Op::M_MV_WO, {score, 0});
        e_.advance(score, vlen_);
      }
      e_.advance(key, tile_elements());
    }
    HeldGp first(e_, "first scores");
    e_.set(first, context_.row(context_.plan.scores));
    e_.emit(Op::S_SUB_INT, {score, score, first}, "span of the scores");
    keep(context_, score, context_.plan.score_span);
  }

  // The tiles of all rows of a head at the same positions.
  void stage_keys(Gp key, Gp tile) const {
    {
      Loop rows(e_, layout_.span, "rows of a head");
      e_.emit(Op::H_PREFETCH_M, {tile, key, kCacheBase, kContiguous, kKeyValue});
      step(context_, tile, tile_elements(), layout_.span);
      step(context_, key, context_.plan.cache_stride, layout_.span);
    }
    if (layout_.span == 1) return;
    e_.retreat(key, region(layout_.span));
    e_.set(tile, context_.tile(context_.plan.stage), "tiles in use");
  }

  void multiply_keys(Gp query, Gp tile) const {
    {
      Loop rows(e_, layout_.span, "rows of a head");
      e_.emit(Op::M_TMV, {query, tile});
      step(context_, query, vlen_, head_count() * layout_.span);
      step(context_, tile, tile_elements(), layout_.span);
    }
    if (layout_.span > 1) e_.set(tile, context_.tile(context_.plan.stage), "tiles in use");
  }

  void cap_scores() const {
    e_.comment("soft cap");
    HeldGp score(e_, "scores");
    HeldGp end(e_, "end of the scores");
    e_.set(score, context_.row(context_.plan.scores), "scores");
    load_kept(context_, end, context_.plan.score_span, "span of the scores");
    e_.emit(Op::S_ADD_INT, {end, end, score});
    WalkLoop rows(e_, score, end, "rows of scores");
    emit_scaled_tanh(context_, score, score, op_.score_cap);
    e_.advance(score, vlen_);
  }

  // Positions out of sight get a score so low that their weight is exactly 0.
  void mask_scores() const {
    e_.comment("hide the positions to come");
    HeldGp score(e_, "scores");
    {
      HeldGp t(e_, "distance");
      load_kept(context_, score, context_.plan.score_span, "span of the scores");
      e_.offset(score, score, context_.row(context_.plan.scores), "end of the scores");
      e_.set(t, score_stride());
      e_.emit(Op::S_SUB_INT, {score, score, t}, "scores of the last tile");
    }
    add_mask(score, context_.plan.mask);
    if (op_.window == 0) return;
    e_.comment("hide the positions before the window");
    e_.set(score, context_.row(context_.plan.scores), "scores of the first tile");
    add_mask(score, window().mask);
  }

  void add_mask(Gp score, const Block& block) const {
    HeldGp mask(e_, "mask");
    e_.set(mask, context_.row(block), block.name);
    Loop heads(e_, head_count(), "heads");
    e_.emit(Op::V_ADD_VV, {score, score, mask, kAllLanes});
    step(context_, score, vlen_, head_count());
  }

  // Per head: scores become exp(score - maximum), and 1 / sum of them goes to FP_MEM.
  void weigh_positions() const {
    e_.comment("softmax; 1 / sum is left for the outputs");
    HeldGp head_scores(e_, "scores of the head");
    HeldGp scale(e_, "entry of 1 / sum");
    std::optional<HeldGp> sink;
    e_.set(head_scores, context_.row(context_.plan.scores), "scores of the head");
    e_.set(scale, context_.plan.head_scales.first, "entries of 1 / sum");
    if (op_.sinks) {
      sink.emplace(e_, "sink");
      load_kept(context_, *sink, context_.plan.sinks_at, "sinks of this tile's heads");
    }
    {
      Loop heads(e_, head_count(), "heads");
      weigh_head(head_scores, scale, sink);
      e_.advance(head_scores, vlen_);
      e_.advance(scale, 1);
      if (sink) e_.advance(*sink, 1);
    }
    if (sink) keep(context_, *sink, context_.plan.sinks_at);
  }

  void weigh_head(Gp head_scores, Gp scale, const std::optional<HeldGp>& sink) const {
    HeldGp end(e_, "end of the scores");
    HeldGp score(e_, "scores");
    HeldFp most(e_, "maximum");
    HeldFp sum(e_, "sum");
    load_kept(context_, end, context_.plan.score_span, "span of the scores");
    e_.emit(Op::S_ADD_INT, {end, end, head_scores});
    if (sink) {
      e_.emit(Op::S_LD_FP, {most, *sink, 0}, "sink");
      e_.emit(Op::S_ADD_FP, {sum, most, kZeroFp});
    } else {
      context_.constants.load(e_, most, context_.plan.lowest_score, "lowest");
      e_.emit(Op::S_ADD_FP, {sum, kZeroFp, kZeroFp}, "sum = 0");
    }
    e_.copy(score, head_scores);
    {
      WalkLoop tiles(e_, score, end, "tiles of positions");
      e_.emit(Op::V_RED_MAX, {most, score, kAllLanes});
      e_.advance(score, score_stride());
    }
    if (sink) {
      e_.emit(Op::S_SUB_FP, {sum, sum, most});
      e_.emit(Op::S_EXP_FP, {sum, sum}, "weight of the sink");
    }
    e_.copy(score, head_scores);
    {
      WalkLoop tiles(e_, score, end, "tiles of positions");
      e_.emit(Op::V_SUB_VF, {score, score, most, kAllLanes, 0});
      e_.emit(Op::V_EXP_V, {score, score, kAllLanes});
      e_.emit(Op::V_RED_SUM, {sum, score});
      e_.advance(score, score_stride());
    }
    e_.emit(Op::S_RECI_FP, {sum, sum});
    e_.emit(Op::S_ST_FP, {sum, scale, 0});
  }

  void load_values(std::uint32_t row) const {
    e_.comment("V stays in Matrix SRAM for all heads");
    HeldGp value(e_, "V tile");
    HeldGp end(e_, "end of V");
    HeldGp tile(e_, "tile");
    set_walk(value, end, layout_.key_rows() + row);
    e_.set(tile, context_.tile(context_.plan.value_tiles), "V tiles");
    WalkLoop tiles(e_, value, end, "tiles of positions");
    e_.emit(Op::H_PREFETCH_M, {tile, value, kCacheBase, kContiguous, kKeyValue});
    e_.advance(tile, tile_elements());
    e_.advance(value, tile_elements());
  }

  // Per head: the products with V added up in the array.
  void sum_up_values(std::uint32_t row) const {
    e_.comment("weighted sums of V");
    HeldGp head_scores(e_, "scores of the head");
    HeldGp output(e_, "output");
    e_.set(head_scores, context_.row(context_.plan.scores), "scores of the head");
    set_output_rows(output, row);
    Loop heads(e_, head_count(), "heads");
    walk_values(head_scores, row);
    e_.emit(Op::M_MV_WO, {output, 0});
    step(context_, head_scores, vlen_, head_count());
    step(context_, output, layout_.span * vlen_, head_count());
  }

  void walk_values(Gp head_scores, std::uint32_t row) const {
    HeldGp score(e_, "scores");
    HeldGp tile(e_, "V tile");
    std::optional<HeldGp> value;
    if (values_stay()) {
      e_.set(tile, context_.tile(context_.plan.value_tiles), "V tiles");
    } else {
      value.emplace(e_, "V");
      set_walk(*value, tile, layout_.key_rows() + row);
      e_.set(tile, context_.tile(context_.plan.stage), "tile in use");
    }
    e_.copy(score, head_scores);
    HeldGp end(e_, "end of the scores");
    load_kept(context_, end, context_.plan.score_span, "span of the scores");
    e_.emit(Op::S_ADD_INT, {end, end, score});
    WalkLoop tiles(e_, score, end, "tiles of positions");
    if (value) {
      e_.emit(Op::H_PREFETCH_M, {tile, *value, kCacheBase, kContiguous, kKeyValue});
      e_.advance(*value, tile_elements());
    }
    e_.emit(Op::M_MV, {score, tile});
    e_.advance(score, score_stride());
    if (!value) e_.advance(tile, tile_elements());
  }

  void scale_outputs() const {
    HeldGp output(e_, "output");
    HeldGp scale(e_, "entry of 1 / sum");
    HeldFp factor(e_, "1 / sum");
    set_output_rows(output, 0);
    e_.set(scale, context_.plan.head_scales.first, "entries of 1 / sum");
    Loop heads(e_, head_count(), "heads");
    e_.emit(Op::S_LD_FP, {factor, scale, 0});
    {
      Loop rows(e_, layout_.span, "rows of a head");
      e_.emit(Op::V_MUL_VF, {output, output, factor, kAllLanes});
      e_.advance(output, vlen_);
    }
    e_.advance(scale, 1);
  }

  // to[group] = the outputs of its slots, each in its own lanes.
  void gather_outputs() const {
    e_.comment("outputs of the heads, each in its own lanes");
    HeldGp out(e_, "attention");
    HeldGp head(e_, "output");
    HeldGp selector(e_, "selector");
    e_.offset(out, queries_, to_output(), "attention");
    e_.set(selector, context_.row(context_.plan.selectors), "zeros, slot selectors");
    {
      Loop groups(e_, layout_.groups, "groups");
      e_.emit(Op::V_ADD_VF, {out, selector, kZeroFp, kAllLanes}, "zeros");
      step(context_, out, vlen_, layout_.groups);
    }
    e_.set(head, context_.row(context_.plan.heads), "outputs head by head");
    Loop slots(e_, layout_.slots, "slots");
    e_.advance(selector, vlen_);
    if (layout_.groups > 1) e_.offset(out, queries_, to_output(), "attention");
    Loop groups(e_, layout_.groups, "groups");
    e_.emit(Op::V_MUL_VV, {head, head, selector, kAllLanes});
    e_.emit(Op::V_ADD_VV, {out, out, head, kAllLanes});
    e_.advance(head, vlen_);
    step(context_, out, vlen_, layout_.groups);
  }

  const KernelContext& context_;
  Emitter& e_;
  const AttentionOp& op_;
  const HeadLayout& layout_;
  std::uint64_t vlen_;
  Gp keys_;     // element where the K tile's region starts
  Gp queries_;  // first of its query rows
};

}  // namespace

void emit_attention(const KernelContext& context, const AttentionOp& op) {
  emit_cache_append(context, op.qkv);
  Emitter& e = context.emitter;
  const RegionScope region(e, "attention");
  const HeadLayout& layout = context.tiled.heads;
  HeldGp keys(e, "K region");
  HeldGp queries(e, "queries");
  load_kept(context, keys, context.plan.cache_at, "K of this layer");
  e.set(queries, context.row(op.qkv), "queries");
  Loop tiles(e, layout.tiles, "tiles of K lanes");
  AttentionTile(context, op, keys, queries).emit();
  step(context, keys, layout.span * context.plan.cache_stride, layout.tiles);
  step(context, queries, std::uint64_t{layout.groups} * layout.span * context.settings.vlen,
       layout.tiles);
}

}  // namespace plena
