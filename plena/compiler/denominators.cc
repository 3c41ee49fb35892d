// Sums of the softmax weights as products: with a tile of ones into the first lanes of each slot,
// then with a tile that takes those to all lanes of their slot. For heads that share rows.

#include <algorithm>

#include "plena/compiler/attention_tile.h"

namespace plena {

namespace {

std::uint64_t row_blocks(const AttentionTile& tile) {
  const std::uint64_t blen = tile.context.settings.blen;
  return (tile.layout().groups + blen - 1) / blen;
}

// group_sums[group] = the sums of its heads, in the first BLEN lanes of their slots. Rows of a
// block beyond the groups are nobody's.
void add_up_weights(const AttentionTile& tile) {
  Emitter& e = tile.context.emitter;
  const MemoryPlan& plan = tile.context.plan;
  const HeadLayout& layout = tile.layout();
  HeldGp ones(e, "ones");
  HeldGp sums(e, "sums");
  HeldGp weights(e, "weights");
  HeldGp slot(e, "weights of the slot");
  HeldGp span(e, "scores before the newest tile's");
  HeldGp last(e, "weights of the newest tile");
  e.set(ones, tile.context.tile(plan.ones), "ones");
  load_kept(tile.context, span, plan.last_scores, "scores before the newest tile's");
  for (std::uint64_t block = 0; block < row_blocks(tile); ++block) {
    const std::uint64_t first = block * tile.context.settings.blen;
    e.set(sums, tile.context.row(plan.group_sums, first), "sums");
    e.set(slot, tile.context.row(plan.scores, first), "weights of the first slot");
    unroll(e, layout.slots, kMostCopies, "slots", [&](std::uint64_t copies, bool more) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        e.copy(weights, slot);
        e.emit(Op::S_ADD_INT, {last, slot, span});
        {
          SweepLoop tiles(e, weights, last, "tiles of positions");
          e.emit(Op::M_MM, {ones, weights});
          e.advance(weights, tile.score_stride());
        }
        e.emit(Op::M_MM_WO, {sums, i * layout.head_lanes});
        e.advance(slot, layout.groups * tile.vlen());
      }
      if (more) e.advance(sums, copies * layout.head_lanes);
    });
  }
}

// group_scales = group_sums, each sum in all lanes of its slot.
void spread_sums(const AttentionTile& tile) {
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

}  // namespace

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
  spread_sums(tile);
}

}  // namespace plena
