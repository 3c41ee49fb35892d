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

constexpr std::uint64_t kMostGroups = 3;   // two slots' maxima in f1 … f7
constexpr std::uint64_t kMostSlots = 16;   // copies of the sweep
constexpr std::uint64_t kWeightsSlot = 2;  // before whose scores weights are loaded

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
    {
      HeldGp first(e_, "first K tile");
      HeldGp newest(e_, "newest K tile");
      tile_.cache.set_key_sweep(first, newest);
      for (std::uint64_t slot = 0; slot < slots_; ++slot) {
        // Between V and the next layer's keys: the queue of transfers has room.
        if (slot == kWeightsSlot) load_behind_next(context_);
        score(slot, first, newest);
      }
    }
    if (slots_ <= kWeightsSlot) load_behind_next(context_);
    finish();
    emit_scaled_groups(tile_);
  }

 private:
  // ---- what rides along; `row` is a register, `before` points to the first head's scores with the
  // tile of positions before: in the first turn the lowest scores are there

  // Raises the maxima of a slot by its scores with the tile before.
  void raise_maxima(std::uint64_t slot, Gp before) const {
    HeldGp row(e_, "scores of the tile before");
    for (std::uint64_t g = 0; g < groups_; ++g) {
      e_.offset(row, before, head_offset(slot, g));
      e_.emit(Op::V_RED_MAX, {maxima_of(slot)[g], row, kAllLanes});
    }
  }

  // Behind the last turn `before` points to the newest tile's: positions to come are hidden, the
  // others count.
  void count_newest(std::uint64_t slot, Gp before) const {
    HeldGp mask(e_, "mask");
    HeldGp row(e_, "scores of the newest tile");
    e_.set(mask, context_.row(context_.plan.mask), "causal mask");
    for (std::uint64_t g = 0; g < groups_; ++g) {
      e_.offset(row, before, head_offset(slot, g));
      e_.emit(Op::V_ADD_VV, {row, row, mask, kAllLanes});
      e_.emit(Op::V_RED_MAX, {maxima_of(slot)[g], row, kAllLanes});
    }
  }

  // exp(score - maximum) of a slot; `scores` points to the first head's.
  void weigh(std::uint64_t slot, Gp before) const {
    std::deque<HeldGp> rows;
    for (std::uint64_t g = 0; g < groups_; ++g) {
      rows.emplace_back(e_, "scores of the head");
      e_.offset(rows.back(), before, tile_.score_stride() + head_offset(slot, g));
      e_.emit(Op::V_SUB_VF, {rows[g], rows[g], maxima_of(slot)[g], kAllLanes, 0});
    }
    for (const HeldGp& row : rows) e_.emit(Op::V_EXP_V, {row, row, kAllLanes});
  }

  // From the scores of the first head to those of another one with the same tile.
  [[nodiscard]] std::uint64_t head_offset(std::uint64_t slot, std::uint64_t group) const {
    return (slot * groups_ + group) * tile_.vlen();
  }

  [[nodiscard]] const std::deque<HeldFp>& maxima_of(std::uint64_t slot) const {
    return maxima_[slot % maxima_.size()];
  }

  void start_maxima(std::uint64_t slot) const {
    for (const HeldFp& maximum : maxima_of(slot)) {
      context_.constants.load(e_, maximum, context_.plan.lowest_score, "lowest");
    }
  }

  // ---- scores

  void score(std::uint64_t slot, Gp first, Gp newest) const {
    const CacheTiles& cache = tile_.cache;
    if (slot > 0) start_maxima(slot - 1);
    HeldGp key(e_, "K tile");
    HeldGp before(e_, "scores of the tile before");
    std::deque<HeldGp> queries;
    std::optional<TileLoads> loads;
    e_.copy(key, first);
    e_.set(before, context_.row(context_.plan.no_scores), "as if of a tile before");
    for (std::uint64_t g = 0; g < groups_; ++g) {
      queries.emplace_back(e_, "query");
      e_.set(queries.back(), context_.row(context_.plan.heads, slot * groups_ + g), "query");
    }
    // Not one behind the other: a transfer that the queue has no place for would hold up the array.
    const std::uint64_t keys_slot = slots_ - 1;
    if (cache.loads_ahead() && slot == 0) loads.emplace(cache, TileLoads::Which::Values);
    if (cache.loads_ahead() && slot == keys_slot) {
      loads.emplace(cache, TileLoads::Which::NextLayersKeys);
    }
    {
      SweepLoop tiles(e_, key, newest, "tiles of positions");
      for (std::uint64_t g = 0; g + 1 < groups_; ++g) {
        e_.emit(Op::M_TMV, {queries[g], key});
        e_.emit(Op::M_MV_WO, {before, tile_.score_stride() + head_offset(slot, g)});
      }
      e_.emit(Op::M_TMV, {queries.back(), key});
      if (slot >= 1) raise_maxima(slot - 1, before);
      if (slot >= 2) weigh(slot - 2, before);
      if (loads) loads->load_one();
      e_.advance(key, tile_.tile_elements());
      // Before the write-out, which waits for the array: nothing is left between it and the next
      // product.
      e_.advance(before, tile_.score_stride());
      e_.emit(Op::M_MV_WO, {before, head_offset(slot, groups_ - 1)});
    }
    if (slot == 0) keep_place_of_newest(before);
    if (slot >= 1) count_newest(slot - 1, before);
  }

  void keep_place_of_newest(Gp newest) const {
    HeldGp first(e_, "first scores");
    e_.set(first, context_.row(context_.plan.scores));
    e_.emit(Op::S_SUB_INT, {newest, newest, first}, "scores before the newest tile's");
    keep(context_, newest, context_.plan.last_scores);
  }

  // ---- what is left when the array has made all scores

  void finish() const {
    e_.comment("sums of the weights, while the last slots' come about");
    const std::uint64_t last = slots_ - 1;
    HeldGp before(e_, "scores of the tile before");
    e_.set(before, context_.row(context_.plan.no_scores), "as if of a tile before");
    add_up_but_last(before);
    e_.comment("weighted sums of V");
    const ValueColumns columns(tile_, 0);
    e_.set(before, context_.row(context_.plan.no_scores), "as if of a tile before");
    columns.sweep(0, [&] {
      weigh(last, before);
      e_.advance(before, tile_.score_stride());
    });
    WeightSums(tile_, 0, last).sweep(0);
    load_third(context_);
    emit_spread_sums(tile_);
    for (std::uint64_t i = 1; i < ValueColumns::blocks(tile_); ++i) columns.sweep(i);
    columns.move_on(ValueColumns::blocks(tile_));
    columns.next_slot();
    columns.sweep_slots(last);
  }

  // Along with the first slot's sums come the weights of the last slot but one, and the maxima of
  // the last one.
  void add_up_but_last(Gp before) const {
    const std::uint64_t last = slots_ - 1;
    if (last == 1) weigh_alone(0);
    start_maxima(last);
    const WeightSums sums(tile_, 0, 0);
    sums.sweep(0, [&] {
      raise_maxima(last, before);
      if (last > 1) weigh(last - 1, before);
      e_.advance(before, tile_.score_stride());
    });
    if (last > 1) sums.sweep(1);
    count_newest(last, before);
    for (std::uint64_t slot = 2; slot < last; ++slot) sums.sweep(slot);
  }

  void weigh_alone(std::uint64_t slot) const {
    HeldGp before(e_, "scores of the tile before");
    HeldGp last(e_, "scores before the newest tile's");
    e_.set(before, context_.row(context_.plan.no_scores), "as if of a tile before");
    load_kept(context_, last, context_.plan.last_scores, "scores before the newest tile's");
    e_.emit(Op::S_ADD_INT, {last, last, before});
    SweepLoop tiles(e_, before, last, "tiles of positions");
    weigh(slot, before);
    e_.advance(before, tile_.score_stride());
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
