// Scores of one tile of K lanes: each head's query with the keys of all positions in sight, those
// out of sight hidden.

#include <algorithm>

#include "plena/compiler/attention_sweeps.h"
#include "plena/compiler/score_maxima.h"

namespace plena {

namespace {

// A query's row into the rows of its slot's heads, all groups of it.
void isolate_groups(const AttentionTile& tile, Gp head, Gp query, Gp selector) {
  const KernelContext& context = tile.context;
  Emitter& e = context.emitter;
  const std::uint64_t groups = tile.layout().groups;
  unroll(e, groups, kMostCopies, "groups", [&](std::uint64_t copies, bool) {
    for (std::uint64_t i = 0; i < copies; ++i) {
      e.emit(Op::V_MUL_VV, {head, query, selector, kAllLanes});
      e.advance(head, tile.vlen());
      step(context, query, tile.vlen(), groups);
    }
  });
}

class Scores {
 public:
  Scores(const AttentionTile& tile, const ScoreMaxima* maxima)
      : tile_(tile),
        maxima_(maxima),
        context_(tile.context),
        e_(tile.context.emitter),
        layout_(tile.layout()) {}

  void emit() const {
    if (tile_.shared_rows()) emit_isolated_queries(tile_);
    HeldGp score(e_, "scores");
    compute(score);
    if (tile_.op.score_cap != 0) cap();
    hide(score);
  }

 private:
  // Leaves in `score` how far the scores of the newest tile are behind the first.
  void compute(Gp score) const {
    e_.comment("scores of every tile of positions in sight");
    const CacheTiles& cache = tile_.cache;
    {
      HeldGp key(e_, "K tile");
      HeldGp last(e_, "newest K tile");
      std::optional<HeldGp> seen;
      e_.set(score, context_.row(context_.plan.scores), "scores");
      if (maxima_ != nullptr) {
        maxima_->start();
        seen.emplace(e_, "scores of the tile before");
        e_.set(*seen, context_.row(context_.plan.no_scores), "as if of a tile before");
      }
      if (cache.resident()) {
        cache.set_key_sweep(key, last);
      } else {
        cache.set_region_sweep(key, last, 0);
      }
      SweepLoop tiles(e_, key, last, "tiles of positions");
      if (cache.resident()) {
        multiply(key, score, cache.resident_stride(), seen);
      } else {
        HeldGp staged(e_, "tile");
        stage(key, staged);
        multiply(staged, score, tile_.tile_elements(), seen);
      }
      e_.advance(key, tile_.tile_elements());
    }
    HeldGp first(e_, "first scores");
    e_.set(first, context_.row(context_.plan.scores) + tile_.score_stride());
    e_.emit(Op::S_SUB_INT, {score, score, first}, "scores before the newest tile's");
    keep(context_, score, context_.plan.last_scores);
  }

  // The tiles of all rows of a head at the same positions.
  void stage(Gp key, Gp to) const {
    e_.set(to, context_.tile(context_.plan.cache_stage), "tiles in use");
    {
      Loop rows(e_, layout_.span, "rows of a head");
      e_.emit(Op::H_PREFETCH_M, {to, key, kCacheBase, kContiguous, kKeyValue});
      step(context_, to, tile_.tile_elements(), layout_.span);
      step(context_, key, context_.plan.cache_stride, layout_.span);
    }
    if (layout_.span == 1) return;
    e_.retreat(key, layout_.span * context_.plan.cache_stride);
    e_.set(to, context_.tile(context_.plan.cache_stage), "tiles in use");
  }

  // Scores of all heads with one tile of positions, whose rows of a head are `stride` apart. Those
  // of the tile before, which have arrived since, raise the maxima.
  void multiply(Gp key, Gp score, std::uint64_t stride, const std::optional<HeldGp>& seen) const {
    HeldGp query(e_, "query");
    if (tile_.shared_rows()) {
      e_.set(query, context_.row(context_.plan.heads), "queries");
    } else {
      tile_.set_rows(query, tile_.op.qkv, 0, "queries");
    }
    HeldGp other(e_, "scores of heads without a register");
    if (seen) e_.offset(other, *seen, maxima_->held() * tile_.vlen());
    unroll(e_, tile_.head_count(), kMostCopies, "heads", [&](std::uint64_t copies, bool) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        multiply_head(query, key, stride);
        if (seen) {
          maxima_->raise_in_turn(i, *seen, other);
          e_.advance(*seen, tile_.vlen());
        }
        e_.emit(Op::M_MV_WO, {score, i * tile_.vlen()});
      }
      e_.advance(score, copies * tile_.vlen());
    });
    if (seen) maxima_->end_turns();
  }

  void multiply_head(Gp query, Gp key, std::uint64_t stride) const {
    {
      Loop rows(e_, layout_.span, "rows of a head");
      e_.emit(Op::M_TMV, {query, key});
      step(context_, query, tile_.vlen(), tile_.head_count() * layout_.span);
      step(context_, key, stride, layout_.span);
    }
    if (layout_.span > 1) e_.retreat(key, layout_.span * stride);
  }

  void cap() const {
    e_.comment("soft cap");
    HeldGp score(e_, "scores");
    HeldGp last(e_, "last scores");
    e_.set(score, context_.row(context_.plan.scores), "scores");
    load_kept(context_, last, context_.plan.last_scores, "scores before the newest tile's");
    e_.emit(Op::S_ADD_INT, {last, last, score});
    e_.advance(last, tile_.score_stride() - tile_.vlen(), "scores of the last head");
    SweepLoop rows(e_, score, last, "rows of scores");
    emit_scaled_tanh(context_, score, score, tile_.op.score_cap);
    e_.advance(score, tile_.vlen());
  }

  // Positions out of sight get a score so low that their weight is exactly 0.
  void hide(Gp score) const {
    e_.comment("hide the positions to come");
    e_.advance(score, context_.row(context_.plan.scores), "scores of the newest tile");
    add_mask(score, context_.plan.mask);
    if (maxima_ != nullptr) return raise_newest();
    if (tile_.op.window == 0) return;
    e_.comment("hide the positions before the window");
    e_.set(score, context_.row(context_.plan.scores), "scores of the first tile");
    add_mask(score, tile_.window().mask);
  }

  // The scores of the newest tile count once they are masked.
  void raise_newest() const {
    HeldGp score(e_, "scores");
    load_kept(context_, score, context_.plan.last_scores, "scores before the newest tile's");
    e_.advance(score, context_.row(context_.plan.scores), "scores of the newest tile");
    for (std::uint64_t head = 0; head < tile_.head_count(); ++head) {
      if (head != 0) e_.advance(score, tile_.vlen());
      maxima_->raise(head, score);
    }
  }

  void add_mask(Gp score, const Block& block) const {
    HeldGp mask(e_, "mask");
    e_.set(mask, context_.row(block), block.name);
    unroll(e_, tile_.head_count(), kMostCopies, "heads", [&](std::uint64_t copies, bool more) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        e_.emit(Op::V_ADD_VV, {score, score, mask, kAllLanes});
        if (more || i + 1 < copies) e_.advance(score, tile_.vlen());
      }
    });
  }

  const AttentionTile& tile_;
  const ScoreMaxima* maxima_;  // null: they are found later
  const KernelContext& context_;
  Emitter& e_;
  const HeadLayout& layout_;
};

}  // namespace

void emit_isolated_queries(const AttentionTile& tile) {
  const KernelContext& context = tile.context;
  Emitter& e = context.emitter;
  e.comment("each head's query alone in a row");
  HeldGp head(e, "head");
  HeldGp query(e, "query");
  HeldGp selector(e, "selector");
  const std::uint64_t groups = tile.layout().groups;
  e.set(head, context.row(context.plan.heads), "queries head by head");
  e.set(selector, context.row(context.plan.selectors, 1), "slot selectors");
  if (groups == 1) tile.set_rows(query, tile.op.qkv, 0, "query row");
  const std::uint64_t most = std::max<std::uint64_t>(1, kMostCopies / groups);
  unroll(e, tile.layout().slots, most, "slots", [&](std::uint64_t copies, bool) {
    for (std::uint64_t slot = 0; slot < copies; ++slot) {
      if (groups > 1) tile.set_rows(query, tile.op.qkv, 0, "query rows");
      isolate_groups(tile, head, query, selector);
      e.advance(selector, tile.vlen());
    }
  });
}

void emit_scores(const AttentionTile& tile, const ScoreMaxima* maxima) {
  Scores(tile, maxima).emit();
}

void emit_no_scores(const KernelContext& context) {
  if (context.plan.no_scores.count == 0) return;
  Emitter& e = context.emitter;
  HeldGp zeros(e, "zeros");
  HeldGp row(e, "lowest scores");
  HeldFp lowest(e, "lowest");
  context.constants.load(e, lowest, context.plan.lowest_score, "lowest");
  e.set(zeros, context.row(context.plan.selectors), "zeros");
  e.set(row, context.row(context.plan.no_scores), "lowest scores");
  unroll(e, context.plan.no_scores.count, kMostCopies, "heads", [&](std::uint64_t copies, bool) {
    for (std::uint64_t i = 0; i < copies; ++i) {
      e.emit(Op::V_ADD_VF, {row, zeros, lowest, kAllLanes});
      e.advance(row, context.settings.vlen);
    }
  });
}

}  // namespace plena
