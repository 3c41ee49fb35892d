// Attention of one token over the cache, one tile of K lanes (and the heads that share it) at a
// time: scores of all positions so far, softmax head by head, and the weighted sum of V.
//
// Heads narrower than a row share rows: each query is isolated in a row of its own before the
// scores, and each output is cut to its own lanes after the sum. Only the tiles up to the position
// are walked; the last one is masked.

#include <string_view>

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

constexpr Fp kMax{1};
constexpr Fp kSum{2};

// One tile of K lanes, of one layer.
class AttentionTile {
 public:
  AttentionTile(const KernelContext& context, Gp keys, Gp queries)
      : context_(context),
        e_(context.emitter),
        layout_(context.tiling.heads),
        vlen_(context.settings.vlen),
        keys_(keys),
        queries_(queries) {}

  void emit() {
    if (shared_rows()) isolate_queries();
    compute_scores();
    mask_last_scores();
    if (values_stay()) load_values();
    weigh_values();
    if (shared_rows()) gather_outputs();
  }

 private:
  [[nodiscard]] bool shared_rows() const { return layout_.slots > 1; }
  [[nodiscard]] bool values_stay() const { return context_.plan.value_tiles.count != 0; }
  [[nodiscard]] std::uint64_t head_count() const { return layout_.heads_per_tile(); }
  [[nodiscard]] std::uint64_t score_stride() const { return head_count() * vlen_; }

  // Distance from a query row to the row of `attention` with the same place.
  [[nodiscard]] std::uint64_t to_attention() const {
    return context_.row(context_.plan.attention) - context_.row(context_.plan.qkv);
  }

  // Row of the first head: a query before, an output after the sum over V.
  void set_head_rows(Gp head, std::string_view what) const {
    if (shared_rows()) {
      e_.set(head, context_.row(context_.plan.heads), what);
    } else {
      e_.copy(head, queries_, what);
    }
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

  // scores[tile][head] = K tile times query; ends with the mask of the last tile still to come.
  void compute_scores() const {
    e_.comment("scores of every tile of positions up to this one");
    HeldGp key(e_, "K tile");
    HeldGp end(e_, "end of K");
    HeldGp score(e_, "scores");
    HeldGp tile(e_, "tile");
    e_.emit(Op::S_LD_INT, {end, kZeroGp, context_.plan.cache_span.first},
            "span of the tiles so far");
    e_.copy(key, keys_, "K of this layer");
    e_.emit(Op::S_ADD_INT, {end, end, key});
    e_.set(score, context_.row(context_.plan.scores), "scores");
    e_.set(tile, context_.tile(context_.plan.stage), "tile in use");
    WalkLoop tiles(e_, key, end, "tiles of positions");
    e_.emit(Op::H_PREFETCH_M, {tile, key, kCacheBase, kContiguous, kKeyValue});
    HeldGp query(e_, "query");
    set_head_rows(query, "query");
    {
      Loop heads(e_, head_count(), "heads");
      e_.emit(Op::M_TMV, {query, tile});
      e_.emit(Op::M_MV_WO, {score, 0});
      step(context_, query, vlen_, head_count());
      e_.advance(score, vlen_);
    }
    e_.advance(key, context_.tiling.tile_elements());
  }

  // Positions that are not there yet get a score so low that their weight is exactly 0.
  void mask_last_scores() const {
    e_.comment("hide the positions to come");
    HeldGp score(e_, "scores");
    HeldGp mask(e_, "mask");
    e_.emit(Op::S_LD_INT, {score, kZeroGp, context_.plan.score_span.first},
            "span of the scores so far");
    e_.offset(score, score, context_.row(context_.plan.scores), "end of the scores");
    e_.set(mask, score_stride());
    e_.emit(Op::S_SUB_INT, {score, score, mask}, "scores of the last tile");
    e_.set(mask, context_.row(context_.plan.mask), "causal mask");
    Loop heads(e_, head_count(), "heads");
    e_.emit(Op::V_ADD_VV, {score, score, mask, kAllLanes});
    step(context_, score, vlen_, head_count());
  }

  // Element of V where the walk over a layer's value tiles starts, and where it ends.
  void set_values(Gp value, Gp end) const {
    e_.emit(Op::S_LD_INT, {end, kZeroGp, context_.plan.cache_span.first},
            "span of the tiles so far");
    e_.offset(value, keys_, layout_.tiles * context_.plan.cache_stride, "V of this layer");
    e_.emit(Op::S_ADD_INT, {end, end, value});
  }

  void load_values() const {
    e_.comment("V stays in Matrix SRAM for all heads");
    HeldGp value(e_, "V tile");
    HeldGp end(e_, "end of V");
    HeldGp tile(e_, "tile");
    set_values(value, end);
    e_.set(tile, context_.tile(context_.plan.value_tiles), "V tiles");
    WalkLoop tiles(e_, value, end, "tiles of positions");
    e_.emit(Op::H_PREFETCH_M, {tile, value, kCacheBase, kContiguous, kKeyValue});
    e_.advance(tile, context_.tiling.tile_elements());
    e_.advance(value, context_.tiling.tile_elements());
  }

  // Per head: maximum, exp, sum, and the products with V added up in the array.
  void weigh_values() const {
    e_.comment("softmax and the weighted sum of V");
    HeldGp head_scores(e_, "scores of the head");
    HeldGp output(e_, "output");
    e_.set(head_scores, context_.row(context_.plan.scores), "scores of the head");
    set_head_rows(output, "output of the head");
    if (!shared_rows()) e_.advance(output, to_attention());
    Loop heads(e_, head_count(), "heads");
    {
      HeldGp end(e_, "end of scores");
      e_.emit(Op::S_LD_INT, {end, kZeroGp, context_.plan.score_span.first},
              "span of the scores so far");
      e_.emit(Op::S_ADD_INT, {end, end, head_scores});
      find_maximum(head_scores, end);
      add_up_values(head_scores, end);
    }
    e_.emit(Op::M_MV_WO, {output, 0});
    e_.emit(Op::S_RECI_FP, {kSum, kSum});
    e_.emit(Op::V_MUL_VF, {output, output, kSum, kAllLanes});
    step(context_, head_scores, vlen_, head_count());
    step(context_, output, vlen_, head_count());
  }

  void find_maximum(Gp head_scores, Gp end) const {
    HeldGp score(e_, "scores");
    e_.emit(Op::S_LD_FP, {kMax, kZeroGp, context_.plan.lowest.first}, "lowest");
    e_.copy(score, head_scores);
    WalkLoop tiles(e_, score, end, "tiles of positions");
    e_.emit(Op::V_RED_MAX, {kMax, score, kAllLanes});
    e_.advance(score, score_stride());
  }

  void add_up_values(Gp head_scores, Gp end) const {
    HeldGp score(e_, "scores");
    HeldGp tile(e_, "V tile");
    std::optional<HeldGp> value;
    e_.emit(Op::S_ADD_FP, {kSum, kZeroFp, kZeroFp}, "sum = 0");
    e_.copy(score, head_scores);
    if (values_stay()) {
      e_.set(tile, context_.tile(context_.plan.value_tiles), "V tiles");
    } else {
      value.emplace(e_, "V");
      e_.offset(*value, keys_, layout_.tiles * context_.plan.cache_stride, "V of this layer");
      e_.set(tile, context_.tile(context_.plan.stage), "tile in use");
    }
    WalkLoop tiles(e_, score, end, "tiles of positions");
    if (value) {
      e_.emit(Op::H_PREFETCH_M, {tile, *value, kCacheBase, kContiguous, kKeyValue});
      e_.advance(*value, context_.tiling.tile_elements());
    }
    e_.emit(Op::V_SUB_VF, {score, score, kMax, kAllLanes, 0});
    e_.emit(Op::V_EXP_V, {score, score, kAllLanes});
    e_.emit(Op::V_RED_SUM, {kSum, score});
    e_.emit(Op::M_MV, {score, tile});
    e_.advance(score, score_stride());
    if (!value) e_.advance(tile, context_.tiling.tile_elements());
  }

  // attention[group] = the outputs of its slots, each in its own lanes.
  void gather_outputs() const {
    e_.comment("outputs of the heads, each in its own lanes");
    HeldGp out(e_, "attention");
    HeldGp head(e_, "output");
    HeldGp selector(e_, "selector");
    e_.offset(out, queries_, to_attention(), "attention");
    e_.set(selector, context_.row(context_.plan.selectors), "zeros, slot selectors");
    {
      Loop groups(e_, layout_.groups, "groups");
      e_.emit(Op::V_ADD_VF, {out, selector, kZeroFp, kAllLanes}, "zeros");
      step(context_, out, vlen_, layout_.groups);
    }
    e_.set(head, context_.row(context_.plan.heads), "outputs head by head");
    Loop slots(e_, layout_.slots, "slots");
    e_.advance(selector, vlen_);
    if (layout_.groups > 1) e_.offset(out, queries_, to_attention(), "attention");
    Loop groups(e_, layout_.groups, "groups");
    e_.emit(Op::V_MUL_VV, {head, head, selector, kAllLanes});
    e_.emit(Op::V_ADD_VV, {out, out, head, kAllLanes});
    e_.advance(head, vlen_);
    step(context_, out, vlen_, layout_.groups);
  }

  const KernelContext& context_;
  Emitter& e_;
  const HeadLayout& layout_;
  std::uint64_t vlen_;
  Gp keys_;     // element where the K tile's region starts
  Gp queries_;  // first of its query rows
};

}  // namespace

void emit_attention(const KernelContext& context) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "attention");
  const HeadLayout& layout = context.tiling.heads;
  HeldGp keys(e, "K region");
  HeldGp queries(e, "queries");
  e.copy(keys, context.cache, "K of this layer");
  e.set(queries, context.row(context.plan.qkv), "queries");
  Loop tiles(e, layout.tiles, "tiles of K lanes");
  AttentionTile(context, keys, queries).emit();
  step(context, keys, context.plan.cache_stride, layout.tiles);
  step(context, queries, layout.groups * context.settings.vlen, layout.tiles);
}

}  // namespace plena
