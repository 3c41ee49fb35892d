// Sums of the softmax weights as products: with a tile of ones into the first lanes of each slot,
// then with a tile that takes those to all lanes of their slot. For heads that share rows.

#include <algorithm>

#include "plena/compiler/attention_sweeps.h"

namespace plena {

namespace {

std::uint64_t row_blocks(const AttentionTile& tile) {
  const std::uint64_t blen = tile.context.settings.blen;
  return (tile.layout().groups + blen - 1) / blen;
}

void add_up_weights(const AttentionTile& tile) {
  for (std::uint64_t block = 0; block < row_blocks(tile); ++block) {
    const WeightSums sums(tile, block * tile.context.settings.blen, 0);
    unroll(tile.context.emitter, tile.layout().slots, kMostCopies, "slots",
           [&](std::uint64_t copies, bool more) {
             for (std::uint64_t i = 0; i < copies; ++i) sums.sweep(i);
             if (more) sums.move_on(copies);
           });
  }
}

}  // namespace

WeightSums::WeightSums(const AttentionTile& tile, std::uint64_t first, std::uint64_t slot)
    : tile_(tile),
      e_(tile.context.emitter),
      ones_(e_, "ones"),
      sums_(e_, "sums"),
      slot_(e_, "weights of the slot"),
      span_(e_, "scores before the newest tile's") {
  const KernelContext& context = tile.context;
  const MemoryPlan& plan = context.plan;
  const HeadLayout& layout = tile.layout();
  e_.set(ones_, context.tile(plan.ones), "ones");
  load_kept(context, span_, plan.last_scores, "scores before the newest tile's");
  e_.set(sums_, context.row(plan.group_sums, first) + slot * layout.head_lanes, "sums");
  e_.set(slot_, context.row(plan.scores, slot * layout.groups + first), "weights of the slot");
}

void WeightSums::sweep(std::uint64_t i, const Rider& rider) const {
  {
    HeldGp weights(e_, "weights");
    HeldGp last(e_, "weights of the newest tile");
    e_.copy(weights, slot_);
    e_.emit(Op::S_ADD_INT, {last, slot_, span_});
    SweepLoop tiles(e_, weights, last, "tiles of positions");
    e_.emit(Op::M_MM, {ones_, weights});
    e_.advance(weights, tile_.score_stride());
    if (rider) rider();
  }
  e_.emit(Op::M_MM_WO, {sums_, i * tile_.layout().head_lanes});
  e_.advance(slot_, tile_.layout().groups * tile_.vlen());
}

void WeightSums::move_on(std::uint64_t slots) const {
  e_.advance(sums_, slots * tile_.layout().head_lanes);
}

void emit_spread_sums(const AttentionTile& tile) {
  Emitter& e = tile.context.emitter;
  const MemoryPlan& plan = tile.context.plan;
  HeldGp sums(e, "sums");
  HeldGp spread(e, "first lanes to slots");
  HeldGp scales(e, "sums by lanes");
  e.set(sums, tile.context.row(plan.group_sums), "sums");
  e.set(spread, tile.context.tile(plan.spread), "first lanes to slots");
  e.set(scales, tile.context.row(plan.group_scales), "sums by lanes");
  unroll(e, tile.layout().groups, kMostCopies, "groups", [&](std::uint64_t copies, bool more) {
    for (std::uint64_t i = 0; i < copies; ++i) {
      e.emit(Op::M_MV, {sums, spread});
      e.emit(Op::M_MV_WO, {scales, i * tile.vlen()});
      e.advance(sums, tile.vlen());
    }
    if (more) e.advance(scales, copies * tile.vlen());
  });
}

bool AttentionTile::sums_are_products() const {
  constexpr std::uint64_t kLoop = 4;  // instructions around a tile of positions
  constexpr std::uint64_t kRow = 3;   // cycles a row of scores takes otherwise
  if (!shared_rows() || op.sinks || context.plan.ones.count == 0) return false;
  const std::uint64_t blen = context.settings.blen;
  return layout().slots * row_blocks(*this) * std::max(blen, kLoop) <= kRow * head_count();
}

void emit_denominators(const AttentionTile& tile) {
  tile.context.emitter.comment("sums of the weights");
  add_up_weights(tile);
  emit_spread_sums(tile);
}

}  // namespace plena
