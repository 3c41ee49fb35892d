// Attention of heads that share rows, as a pipeline over slots: the array makes the scores of one
// slot while the vector unit works on the two before it.
//
// Every stage is a sweep over the tiles of positions in sight, as many turns for each, so that one
// loop serves for a product and for what rides along. The maximum of a slot counts the tiles before
// the newest in a sweep, and the newest one's scores, once they are masked, behind it.

#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include "plena/compiler/attention_sweeps.h"

namespace plena {

namespace {

constexpr std::uint64_t kMostGroups = 3;  // two slots' maxima in f1 … f7
constexpr std::uint64_t kMostSlots = 16;  // copies of the sweep

class OverlappedSlots {
 public:
  explicit OverlappedSlots(const AttentionTile& tile)
      : tile_(tile),
        context_(tile.context),
        e_(tile.context.emitter),
        groups_(tile.layout().groups),
        slots_(tile.layout().slots) {
    for (auto& of_slot : maxima_) {
      for (std::uint64_t g = 0; g < groups_; ++g) of_slot.emplace_back(e_, "maximum");
    }
  }

  void emit() const {
    emit_isolated_queries(tile_);
    e_.comment("scores of every tile of positions in sight, slot by slot");
    for (std::uint64_t slot = 0; slot < slots_; ++slot) {
      score(slot);
      if (slot > 0) count_newest(slot - 1);
    }
    load_behind_next(context_);
    finish();
    emit_scaled_groups(tile_);
  }

 private:
  // ---- what rides along

  // Raises the maxima of a slot by the scores of each tile of positions but the newest: in the
  // first turn the lowest scores are in its place.
  class Maxima {
   public:
    Maxima(const OverlappedSlots& all, std::uint64_t slot)
        : all_(all),
          maxima_(all.maxima_of(slot)),
          seen_(all.tile_, all.context_.plan.no_scores.first + slot * all.groups_, all.groups_,
                "scores of the tile before") {}
    void turn() const {
      for (std::size_t g = 0; g < seen_.size(); ++g) {
        all_.e_.emit(Op::V_RED_MAX, {maxima_[g], seen_[g], kAllLanes});
      }
      seen_.next_tile();
    }

   private:
    const OverlappedSlots& all_;
    const std::deque<HeldFp>& maxima_;
    ScoreRows seen_;
  };

  // exp(score - maximum) of a slot.
  class Weights {
   public:
    Weights(const OverlappedSlots& all, std::uint64_t slot)
        : all_(all),
          maxima_(all.maxima_of(slot)),
          rows_(all.tile_, all.context_.plan.scores.first + slot * all.groups_, all.groups_,
                "scores of the head") {}
    void turn() const {
      Emitter& e = all_.e_;
      for (std::size_t g = 0; g < rows_.size(); ++g) {
        e.emit(Op::V_SUB_VF, {rows_[g], rows_[g], maxima_[g], kAllLanes, 0});
      }
      for (std::size_t g = 0; g < rows_.size(); ++g) {
        e.emit(Op::V_EXP_V, {rows_[g], rows_[g], kAllLanes});
      }
      rows_.next_tile();
    }

   private:
    const OverlappedSlots& all_;
    const std::deque<HeldFp>& maxima_;
    ScoreRows rows_;
  };

  [[nodiscard]] const std::deque<HeldFp>& maxima_of(std::uint64_t slot) const {
    return maxima_[slot % maxima_.size()];
  }

  void start_maxima(std::uint64_t slot) const {
    for (const HeldFp& maximum : maxima_of(slot)) {
      context_.constants.load(e_, maximum, context_.plan.lowest_score, "lowest");
    }
  }

  // ---- scores

  void score(std::uint64_t slot) const {
    const CacheTiles& cache = tile_.cache;
    if (slot > 0) start_maxima(slot - 1);
    HeldGp key(e_, "K tile");
    HeldGp last(e_, "newest K tile");
    HeldGp score(e_, "scores");
    std::deque<HeldGp> queries;
    std::optional<Maxima> maxima;
    std::optional<Weights> weights;
    std::optional<NextLayerTiles> ahead;
    cache.set_resident_sweep(key, last, cache.key_tiles());
    e_.set(score, context_.row(context_.plan.scores), "scores");
    for (std::uint64_t g = 0; g < groups_; ++g) {
      queries.emplace_back(e_, "query");
      e_.set(queries.back(), context_.row(context_.plan.heads, slot * groups_ + g), "query");
    }
    if (slot >= 1) maxima.emplace(*this, slot - 1);
    if (slot >= 2) weights.emplace(*this, slot - 2);
    if (cache.loads_ahead() && slot == 0) ahead.emplace(cache, NextLayerTiles::Which::Keys);
    if (cache.loads_ahead() && slot == 1) ahead.emplace(cache, NextLayerTiles::Which::Values);
    {
      SweepLoop tiles(e_, key, last, "tiles of positions");
      for (std::uint64_t g = 0; g < groups_; ++g) {
        e_.emit(Op::M_TMV, {queries[g], key});
        e_.emit(Op::M_MV_WO, {score, (slot * groups_ + g) * tile_.vlen()});
      }
      if (maxima) maxima->turn();
      if (weights) weights->turn();
      if (ahead) ahead->load_one();
      e_.advance(key, tile_.tile_elements());
      e_.advance(score, tile_.score_stride());
    }
    if (slot == 0) keep_place_of_newest(score);
  }

  void keep_place_of_newest(Gp score) const {
    HeldGp first(e_, "first scores");
    e_.set(first, context_.row(context_.plan.scores) + tile_.score_stride());
    e_.emit(Op::S_SUB_INT, {score, score, first}, "scores before the newest tile's");
    keep(context_, score, context_.plan.last_scores);
  }

  // Hides the positions to come, and raises the maxima by the others' scores.
  void count_newest(std::uint64_t slot) const {
    HeldGp score(e_, "scores of the newest tile");
    HeldGp mask(e_, "mask");
    e_.set(mask, context_.row(context_.plan.mask), "causal mask");
    load_kept(context_, score, context_.plan.last_scores, "scores before the newest tile's");
    e_.advance(score, context_.row(context_.plan.scores, slot * groups_), "scores of the slot");
    for (const HeldFp& maximum : maxima_of(slot)) {
      e_.emit(Op::V_ADD_VV, {score, score, mask, kAllLanes});
      e_.emit(Op::V_RED_MAX, {maximum, score, kAllLanes});
      e_.advance(score, tile_.vlen());
    }
  }

  // ---- what is left when the array has made all scores

  void finish() const {
    e_.comment("sums of the weights, while the last slots' come about");
    const std::uint64_t last = slots_ - 1;
    add_up_but_last();
    e_.comment("weighted sums of V");
    const ValueColumns columns(tile_, 0);
    {
      const Weights weights(*this, last);
      columns.sweep(0, [&] { weights.turn(); });
    }
    WeightSums(tile_, 0, last).sweep(0);
    emit_spread_sums(tile_);
    for (std::uint64_t i = 1; i < ValueColumns::blocks(tile_); ++i) columns.sweep(i);
    columns.move_on(ValueColumns::blocks(tile_));
    columns.next_slot();
    columns.sweep_slots(last);
  }

  // Along with the sums of the first slots come the weights of the last but one, and the maxima of
  // the last one.
  void add_up_but_last() const {
    const std::uint64_t last = slots_ - 1;
    if (last == 1) weigh_alone(0);
    start_maxima(last);
    const WeightSums sums(tile_, 0, 0);
    std::uint64_t slot = 0;
    if (last > 1) {
      const Weights weights(*this, last - 1);
      sums.sweep(slot++, [&] { weights.turn(); });
    }
    {
      const Maxima maxima(*this, last);
      sums.sweep(slot++, [&] { maxima.turn(); });
    }
    count_newest(last);
    for (; slot < last; ++slot) sums.sweep(slot);
  }

  void weigh_alone(std::uint64_t slot) const {
    HeldGp row(e_, "scores of the slot");
    HeldGp last(e_, "scores of the newest tile");
    const Weights weights(*this, slot);
    e_.set(row, context_.row(context_.plan.scores), "scores");
    load_kept(context_, last, context_.plan.last_scores, "scores before the newest tile's");
    e_.emit(Op::S_ADD_INT, {last, last, row});
    SweepLoop tiles(e_, row, last, "tiles of positions");
    weights.turn();
    e_.advance(row, tile_.score_stride());
  }

  const AttentionTile& tile_;
  const KernelContext& context_;
  Emitter& e_;
  std::uint64_t groups_;
  std::uint64_t slots_;
  std::array<std::deque<HeldFp>, 2> maxima_;  // of slots in turn
};

}  // namespace

bool slots_overlap(const AttentionTile& tile) {
  const HeadLayout& layout = tile.layout();
  const bool all_count = tile.op.window == 0 && tile.op.score_cap == 0 && !tile.op.sinks;
  const std::uint64_t most_groups =
      std::min<std::uint64_t>(kMostGroups, tile.context.settings.blen);
  return layout.tiles == 1 && layout.slots >= 2 && layout.slots <= kMostSlots &&
         layout.groups <= most_groups && all_count && ValueColumns::pay(tile) &&
         tile.sums_are_products();
}

void emit_overlapped_slots(const AttentionTile& tile) {
  OverlappedSlots(tile).emit();
}

}  // namespace plena
