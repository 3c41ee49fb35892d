// Attention of each token over the cache, one tile of K lanes (and the heads that share it) at a
// time: scores of all positions in sight, softmax head by head, and the weighted sum of V.
//
// Heads narrower than a row share rows: each query is isolated in a row of its own before the
// scores, and each output is cut to its own lanes after the sum. Only the tiles in sight are
// walked; the last one is masked, and with a window the first one too. Where the K and V tiles of
// the whole context fit Matrix SRAM they are loaded once for all tokens of the block.

#include <algorithm>
#include <deque>
#include <functional>
#include <string_view>

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

// What the tokens of a block share of one tile of K lanes: its regions of the cache.
class CacheTiles {
 public:
  CacheTiles(const KernelContext& context, const AttentionOp& op)
      : context_(context),
        e_(context.emitter),
        op_(op),
        layout_(context.tiled.heads),
        tile_elements_(context.tiled.tile_elements()) {}

  [[nodiscard]] bool resident() const { return context_.plan.key_tiles.count != 0; }

  /// From a row of a head to the next one's tile of the same positions, in Matrix SRAM.
  [[nodiscard]] std::uint64_t resident_stride() const {
    return context_.tiled.context_tiles * tile_elements_;
  }

  /// K and V of all positions in sight of the block.
  void load() const {
    const RegionScope region(e_, "load_cache");
    for (std::uint32_t row = 0; row < layout_.span; ++row) {
      load_region(row, context_.tile(context_.plan.key_tiles) + row * resident_stride());
    }
    for (std::uint32_t row = 0; row < layout_.span; ++row) {
      load_region(layout_.key_rows() + row,
                  context_.tile(context_.plan.value_tiles) + row * resident_stride());
    }
  }

  /// from … end: offsets of the tiles in sight of a token in a region that starts at `base`.
  void set_walk(Gp from, Gp end, std::uint64_t base, Gp first_token, Gp last_token) const {
    e_.set(from, base, "tiles of positions");
    load_kept(context_, end, context_.plan.cache_end, "end of the tiles in sight", last_token);
    e_.emit(Op::S_ADD_INT, {end, end, from});
    if (op_.window == 0) return;
    HeldGp first(e_, "first tile");
    load_kept(context_, first, context_.plan.windows.at(op_.window).first_tile,
              "first tile in sight", first_token);
    e_.emit(Op::S_ADD_INT, {from, from, first});
  }

  /// The same in region `index` of the cache in HBM.
  void set_region_walk(Gp from, Gp end, std::uint64_t index, Gp first_token, Gp last_token) const {
    set_walk(from, end, index * context_.plan.cache_stride, first_token, last_token);
    HeldGp keys(e_, "regions of the tile");
    load_kept(context_, keys, context_.plan.keys_at, "regions of this tile");
    e_.emit(Op::S_ADD_INT, {from, from, keys});
    e_.emit(Op::S_ADD_INT, {end, end, keys});
  }

 private:
  // Tiles keep their places: the tile of position p is p / MLEN behind the first.
  void load_region(std::uint64_t index, std::uint64_t to) const {
    HeldGp from(e_, "tile of the cache");
    HeldGp end(e_, "end");
    HeldGp tile(e_, "tile");
    {
      HeldGp last(e_, "last token");
      e_.set(last, context_.tokens - 1, "last token");
      set_region_walk(from, end, index, kZeroGp, last);
    }
    e_.set(tile, to, "tiles of positions");
    if (op_.window != 0) {
      HeldGp first(e_, "first tile");
      load_kept(context_, first, context_.plan.windows.at(op_.window).first_tile,
                "first tile in sight");
      e_.emit(Op::S_ADD_INT, {tile, tile, first});
    }
    WalkLoop tiles(e_, from, end, "tiles of positions");
    e_.emit(Op::H_PREFETCH_M, {tile, from, kCacheBase, kContiguous, kKeyValue});
    e_.advance(tile, tile_elements_);
    e_.advance(from, tile_elements_);
  }

  const KernelContext& context_;
  Emitter& e_;
  const AttentionOp& op_;
  const HeadLayout& layout_;
  std::uint64_t tile_elements_;
};

// One token, one tile of K lanes.
class AttentionTile {
 public:
  AttentionTile(const KernelContext& context, const AttentionOp& op, const CacheTiles& cache,
                Gp token)
      : context_(context),
        e_(context.emitter),
        op_(op),
        cache_(cache),
        layout_(context.tiled.heads),
        vlen_(context.settings.vlen),
        token_(token) {}

  void emit() const {
    if (shared_rows()) isolate_queries();
    compute_scores();
    if (op_.score_cap != 0) cap_scores();
    mask_scores();
    weigh_positions();
    for (std::uint32_t row = 0; row < layout_.span; ++row) sum_up_values(row);
    scale_outputs();
    if (shared_rows()) gather_outputs();
  }

 private:
  [[nodiscard]] bool shared_rows() const { return layout_.slots > 1; }
  [[nodiscard]] std::uint64_t head_count() const { return layout_.heads_per_tile(); }
  [[nodiscard]] std::uint64_t score_stride() const { return head_count() * vlen_; }
  [[nodiscard]] std::uint64_t tile_elements() const { return context_.tiled.tile_elements(); }
  [[nodiscard]] const WindowPlaces& window() const { return context_.plan.windows.at(op_.window); }

  // The token's rows of a value that belong to this tile.
  void set_rows(Gp to, ValueId value, std::uint32_t row, std::string_view what) const {
    set_indexed(context_, to, context_.row(value, row), context_.token_stride(value), token_, what);
    if (layout_.tiles == 1) return;
    HeldGp offset(e_, "rows of this tile");
    load_kept(context_, offset, context_.plan.queries_at, "rows of this tile");
    e_.emit(Op::S_ADD_INT, {to, to, offset});
  }

  // Row of the first head: a query before, an output after the sum over V.
  void set_query_rows(Gp head) const {
    if (shared_rows()) return e_.set(head, context_.row(context_.plan.heads), "queries");
    set_rows(head, op_.qkv, 0, "queries");
  }
  void set_output_rows(Gp head, std::uint32_t row) const {
    if (shared_rows()) return e_.set(head, context_.row(context_.plan.heads), "outputs");
    set_rows(head, op_.to, row, "outputs");
  }

  // heads[slot][group] = query row of the group, in the lanes of the slot only.
  void isolate_queries() const {
    e_.comment("each head's query alone in a row");
    HeldGp head(e_, "head");
    HeldGp query(e_, "query");
    HeldGp selector(e_, "selector");
    e_.set(head, context_.row(context_.plan.heads), "queries head by head");
    e_.set(selector, context_.row(context_.plan.selectors, 1), "slot selectors");
    if (layout_.groups == 1) set_rows(query, op_.qkv, 0, "query row");
    Loop slots(e_, layout_.slots, "slots");
    if (layout_.groups > 1) set_rows(query, op_.qkv, 0, "query rows");
    {
      Loop groups(e_, layout_.groups, "groups");
      e_.emit(Op::V_MUL_VV, {head, query, selector, kAllLanes});
      e_.advance(head, vlen_);
      step(context_, query, vlen_, layout_.groups);
    }
    e_.advance(selector, vlen_);
  }

  // scores[tile][head] = K tile times query; score_span = how far they go.
  void compute_scores() const {
    e_.comment("scores of every tile of positions in sight");
    HeldGp score(e_, "scores");
    {
      HeldGp key(e_, "K tile");
      HeldGp end(e_, "end of K");
      e_.set(score, context_.row(context_.plan.scores), "scores");
      if (cache_.resident()) {
        cache_.set_walk(key, end, context_.tile(context_.plan.key_tiles), token_, token_);
      } else {
        cache_.set_region_walk(key, end, 0, token_, token_);
      }
      WalkLoop tiles(e_, key, end, "tiles of positions");
      if (cache_.resident()) {
        multiply_keys(key, score, cache_.resident_stride());
      } else {
        HeldGp tile(e_, "tile");
        stage_keys(key, tile);
        multiply_keys(tile, score, tile_elements());
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
    e_.set(tile, context_.tile(context_.plan.cache_stage), "tiles in use");
    {
      Loop rows(e_, layout_.span, "rows of a head");
      e_.emit(Op::H_PREFETCH_M, {tile, key, kCacheBase, kContiguous, kKeyValue});
      step(context_, tile, tile_elements(), layout_.span);
      step(context_, key, context_.plan.cache_stride, layout_.span);
    }
    if (layout_.span == 1) return;
    e_.retreat(key, layout_.span * context_.plan.cache_stride);
    e_.set(tile, context_.tile(context_.plan.cache_stage), "tiles in use");
  }

  // Scores of all heads with one tile of positions, whose rows of a head are `stride` apart.
  void multiply_keys(Gp tile, Gp score, std::uint64_t stride) const {
    HeldGp query(e_, "query");
    set_query_rows(query);
    Loop heads(e_, head_count(), "heads");
    {
      Loop rows(e_, layout_.span, "rows of a head");
      e_.emit(Op::M_TMV, {query, tile});
      step(context_, query, vlen_, head_count() * layout_.span);
      step(context_, tile, stride, layout_.span);
    }
    if (layout_.span > 1) e_.retreat(tile, layout_.span * stride);
    e_.emit(Op::M_MV_WO, {score, 0});
    e_.advance(score, vlen_);
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
    set_indexed(context_, mask, context_.row(block), vlen_, token_, block.name);
    Loop heads(e_, head_count(), "heads");
    e_.emit(Op::V_ADD_VV, {score, score, mask, kAllLanes});
    step(context_, score, vlen_, head_count());
  }

  // Heads whose softmax runs side by side, so that one's results arrive while the others' issue.
  [[nodiscard]] std::uint64_t batch() const {
    constexpr std::uint64_t kMostSideBySide = 4;
    std::uint64_t heads = std::min(head_count(), kMostSideBySide);
    while (head_count() % heads != 0) --heads;
    return heads;
  }

  // Per head: scores become exp(score - maximum), and 1 / sum of them goes to FP_MEM.
  void weigh_positions() const {
    e_.comment("softmax; 1 / sum is left for the outputs");
    HeldGp head_scores(e_, "scores of the heads");
    HeldGp scale(e_, "entry of 1 / sum");
    std::optional<HeldGp> sink;
    e_.set(head_scores, context_.row(context_.plan.scores), "scores of the heads");
    e_.set(scale, context_.plan.head_scales.first, "entries of 1 / sum");
    if (op_.sinks) {
      sink.emplace(e_, "sink");
      load_kept(context_, *sink, context_.plan.sinks_at, "sinks of this tile's heads");
    }
    Loop batches(e_, head_count() / batch(), "heads side by side");
    {
      const Batch heads(e_, batch());
      find_maxima(head_scores, heads, sink);
      exponentiate(head_scores, heads);
      add_up(head_scores, heads, scale, sink);
    }
    e_.advance(head_scores, batch() * vlen_);
    e_.advance(scale, batch());
    if (sink) e_.advance(*sink, batch());
  }

  // A row pointer and a scalar for each head of a batch.
  struct Batch {
    Batch(Emitter& e, std::uint64_t heads) {
      for (std::uint64_t i = 0; i < heads; ++i) {
        rows.emplace_back(e, "scores");
        scalars.emplace_back(e, "maximum, sum");
      }
    }
    std::deque<HeldGp> rows;
    std::deque<HeldFp> scalars;
    [[nodiscard]] std::size_t size() const { return rows.size(); }
  };

  // Walks the rows of all heads of a batch through the tiles of positions.
  void walk(Gp head_scores, const Batch& heads, const std::function<void()>& body) const {
    HeldGp end(e_, "end of the scores");
    load_kept(context_, end, context_.plan.score_span, "span of the scores");
    e_.emit(Op::S_ADD_INT, {end, end, head_scores});
    for (std::size_t i = 0; i < heads.size(); ++i) {
      e_.offset(heads.rows[i], head_scores, i * vlen_);
    }
    WalkLoop tiles(e_, heads.rows[0], end, "tiles of positions");
    body();
    for (const HeldGp& row : heads.rows) e_.advance(row, score_stride());
  }

  void find_maxima(Gp head_scores, const Batch& heads, const std::optional<HeldGp>& sink) const {
    for (std::size_t i = 0; i < heads.size(); ++i) {
      if (sink) {
        e_.emit(Op::S_LD_FP, {heads.scalars[i], *sink, i}, "sink");
      } else {
        context_.constants.load(e_, heads.scalars[i], context_.plan.lowest_score, "lowest");
      }
    }
    walk(head_scores, heads, [&] {
      for (std::size_t i = 0; i < heads.size(); ++i) {
        e_.emit(Op::V_RED_MAX, {heads.scalars[i], heads.rows[i], kAllLanes});
      }
    });
  }

  void exponentiate(Gp head_scores, const Batch& heads) const {
    walk(head_scores, heads, [&] {
      for (std::size_t i = 0; i < heads.size(); ++i) {
        const HeldGp& row = heads.rows[i];
        e_.emit(Op::V_SUB_VF, {row, row, heads.scalars[i], kAllLanes, 0});
      }
      for (const HeldGp& row : heads.rows) e_.emit(Op::V_EXP_V, {row, row, kAllLanes});
    });
  }

  void add_up(Gp head_scores, const Batch& heads, Gp scale,
              const std::optional<HeldGp>& sink) const {
    {
      const HeldFp weight(e_, "sink");
      for (std::size_t i = 0; i < heads.size(); ++i) {
        const HeldFp& sum = heads.scalars[i];
        if (sink) {
          e_.emit(Op::S_LD_FP, {weight, *sink, i}, "sink");
          e_.emit(Op::S_SUB_FP, {sum, weight, sum});
          e_.emit(Op::S_EXP_FP, {sum, sum}, "weight of the sink");
        } else {
          e_.emit(Op::S_ADD_FP, {sum, kZeroFp, kZeroFp}, "sum = 0");
        }
      }
    }
    walk(head_scores, heads, [&] {
      for (std::size_t i = 0; i < heads.size(); ++i) {
        e_.emit(Op::V_RED_SUM, {heads.scalars[i], heads.rows[i]});
      }
    });
    for (const HeldFp& sum : heads.scalars) e_.emit(Op::S_RECI_FP, {sum, sum});
    for (std::size_t i = 0; i < heads.size(); ++i) {
      e_.emit(Op::S_ST_FP, {heads.scalars[i], scale, i});
    }
  }

  // Per head: the products with V added up in the array.
  void sum_up_values(std::uint32_t row) const {
    e_.comment("weighted sums of V");
    HeldGp head_scores(e_, "scores of the head");
    HeldGp output(e_, "output");
    e_.set(head_scores, context_.row(context_.plan.scores), "scores of the head");
    set_output_rows(output, row);
    Loop heads(e_, head_count(), "heads");
    if (cache_.resident()) {
      walk_resident_values(head_scores, row);
    } else {
      walk_staged_values(head_scores, row);
    }
    e_.emit(Op::M_MV_WO, {output, 0});
    step(context_, head_scores, vlen_, head_count());
    step(context_, output, layout_.span * vlen_, head_count());
  }

  void walk_resident_values(Gp head_scores, std::uint32_t row) const {
    HeldGp score(e_, "scores");
    HeldGp value(e_, "V tile");
    HeldGp end(e_, "end of V");
    cache_.set_walk(value, end,
                    context_.tile(context_.plan.value_tiles) + row * cache_.resident_stride(),
                    token_, token_);
    e_.copy(score, head_scores);
    WalkLoop tiles(e_, value, end, "tiles of positions");
    e_.emit(Op::M_MV, {score, value});
    e_.advance(score, score_stride());
    e_.advance(value, tile_elements());
  }

  void walk_staged_values(Gp head_scores, std::uint32_t row) const {
    HeldGp score(e_, "scores");
    HeldGp value(e_, "V tile");
    HeldGp end(e_, "end of V");
    cache_.set_region_walk(value, end, layout_.key_rows() + row, token_, token_);
    HeldGp tile(e_, "tile");
    e_.set(tile, context_.tile(context_.plan.cache_stage), "tile in use");
    e_.copy(score, head_scores);
    WalkLoop tiles(e_, value, end, "tiles of positions");
    e_.emit(Op::H_PREFETCH_M, {tile, value, kCacheBase, kContiguous, kKeyValue});
    e_.emit(Op::M_MV, {score, tile});
    e_.advance(score, score_stride());
    e_.advance(value, tile_elements());
  }

  void scale_outputs() const {
    HeldGp output(e_, "output");
    HeldGp scale(e_, "entry of 1 / sum");
    HeldFp factor(e_, "1 / sum");
    set_output_rows(output, 0);
    e_.set(scale, context_.plan.head_scales.first, "entries of 1 / sum");
    Loop heads(e_, head_count(), "heads");
    e_.emit(Op::S_LD_FP, {factor, scale, 0});
    e_.advance(scale, 1);
    Loop rows(e_, layout_.span, "rows of a head");
    e_.emit(Op::V_MUL_VF, {output, output, factor, kAllLanes});
    e_.advance(output, vlen_);
  }

  // Each head's output in its own lanes only.
  void cut_outputs() const {
    HeldGp head(e_, "output");
    HeldGp selector(e_, "selector");
    e_.set(selector, context_.row(context_.plan.selectors), "slot selectors");
    e_.set(head, context_.row(context_.plan.heads), "outputs head by head");
    Loop slots(e_, layout_.slots, "slots");
    e_.advance(selector, vlen_);
    Loop groups(e_, layout_.groups, "groups");
    e_.emit(Op::V_MUL_VV, {head, head, selector, kAllLanes});
    e_.advance(head, vlen_);
  }

  // to[group] = the outputs of its slots.
  void gather_outputs() const {
    e_.comment("outputs of the heads, each in its own lanes");
    cut_outputs();
    HeldGp out(e_, "attention");
    HeldGp head(e_, "output");
    HeldGp zeros(e_, "zeros");
    set_rows(out, op_.to, 0, "attention");
    e_.set(zeros, context_.row(context_.plan.selectors), "zeros");
    e_.set(head, context_.row(context_.plan.heads), "outputs head by head");
    Loop groups(e_, layout_.groups, "groups");
    e_.emit(Op::V_ADD_VF, {out, zeros, kZeroFp, kAllLanes}, "zeros");
    {
      HeldGp slot(e_, "output of the slot");
      e_.copy(slot, head);
      Loop slots(e_, layout_.slots, "slots");
      e_.emit(Op::V_ADD_VV, {out, out, slot, kAllLanes});
      e_.advance(slot, layout_.groups * vlen_);
    }
    step(context_, head, vlen_, layout_.groups);
    step(context_, out, vlen_, layout_.groups);
  }

  const KernelContext& context_;
  Emitter& e_;
  const AttentionOp& op_;
  const CacheTiles& cache_;
  const HeadLayout& layout_;
  std::uint64_t vlen_;
  Gp token_;  // index in the block
};

// Moves on what is kept in INT_MEM of where things start.
void advance_kept(const KernelContext& context, const Block& place, std::uint64_t amount) {
  HeldGp at(context.emitter, place.name);
  load_kept(context, at, place, place.name);
  context.emitter.advance(at, amount);
  keep(context, at, place);
}

}  // namespace

void emit_attention(const KernelContext& context, const AttentionOp& op) {
  emit_cache_append(context, op.qkv);
  Emitter& e = context.emitter;
  const RegionScope region(e, "attention");
  const HeadLayout& layout = context.tiled.heads;
  const MemoryPlan& plan = context.plan;
  {
    HeldGp keys(e, "K region");
    load_kept(context, keys, plan.cache_at, "cache of this layer");
    keep(context, keys, plan.keys_at);
    if (layout.tiles > 1) keep(context, kZeroGp, plan.queries_at);
  }
  Loop tiles(e, layout.tiles, "tiles of K lanes");
  const CacheTiles cache(context, op);
  if (cache.resident()) cache.load();
  {
    TokenLoop tokens(context);
    AttentionTile(context, op, cache, tokens.index()).emit();
  }
  if (op.sinks) advance_kept(context, plan.sinks_at, layout.heads_per_tile());
  if (layout.tiles == 1) return;
  advance_kept(context, plan.keys_at, layout.span * plan.cache_stride);
  advance_kept(context, plan.queries_at,
               std::uint64_t{layout.groups} * layout.span * context.settings.vlen);
}

}  // namespace plena
