// Softmax over the scores of one tile of K lanes: a few heads side by side, so that one's results
// arrive while the others' issue. The weights stay without their common factor 1 / sum, which the
// attention's outputs are multiplied by instead.

#include <algorithm>
#include <deque>
#include <functional>

#include "plena/compiler/score_maxima.h"

namespace plena {

namespace {

constexpr std::uint64_t kSideBySide = 4;  // heads, that registers and scratch rows are there for

class Softmax {
 public:
  Softmax(const AttentionTile& tile, bool exponentiated)
      : tile_(tile),
        exponentiated_(exponentiated),
        context_(tile.context),
        e_(tile.context.emitter),
        layout_(tile.layout()) {}

  void emit() const {
    e_.comment("softmax; 1 / sum is left for the outputs");
    HeldGp scores(e_, "scores of the heads");
    HeldGp scale(e_, tile_.shared_rows() ? "selector" : "entry of 1 / sum");
    std::optional<HeldGp> sink;
    e_.set(scores, context_.row(context_.plan.scores), "scores of the heads");
    if (tile_.shared_rows()) {
      if (!tile_.sums_are_products()) clear_scales();
      e_.set(scale, context_.row(context_.plan.selectors, 1), "slot selectors");
    } else {
      e_.set(scale, context_.plan.head_scales.first, "entries of 1 / sum");
    }
    if (tile_.op.sinks) {
      sink.emplace(e_, "sink");
      load_kept(context_, *sink, context_.plan.sinks_at, "sinks of this tile's heads");
    }
    walk_slots({scores, scale, sink ? Gp(*sink) : kZeroGp});
  }

 private:
  // What walks through the heads.
  struct Heads {
    Gp scores;
    Gp scale;  // selector of the slot, or entry of 1 / sum
    Gp sink;   // gp0: there are none
  };

  // A row pointer and a scalar for each head of those side by side.
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

  // Whole slots side by side, or a part of the groups of one.
  void walk_slots(const Heads& heads) const {
    const std::uint64_t groups = layout_.groups;
    const std::uint64_t most = std::max<std::uint64_t>(1, kSideBySide / groups);
    unroll(e_, layout_.slots, most, "slots", [&](std::uint64_t slots, bool more) {
      for (std::uint64_t first = 0; first < groups; first += kSideBySide) {
        const std::uint64_t copies = std::min(kSideBySide, groups - first);
        weigh(heads, slots, copies, first);
        if (more || first + copies < groups) move_on(heads, slots * copies);
      }
    });
  }

  void move_on(const Heads& heads, std::uint64_t count) const {
    e_.advance(heads.scores, count * tile_.vlen());
    if (!tile_.shared_rows()) e_.advance(heads.scale, count);
    if (tile_.op.sinks) e_.advance(heads.sink, count);
  }

  // Per head: scores become exp(score - maximum), 1 / sum of them goes where it belongs.
  void weigh(const Heads& heads, std::uint64_t slots, std::uint64_t groups,
             std::uint64_t first_group) const {
    const Batch batch(e_, slots * groups);
    if (!exponentiated_) {
      find_maxima(heads, batch);
      exponentiate(heads, batch);
    }
    if (tile_.sums_are_products()) return;
    add_up(heads, batch);
    for (const HeldFp& sum : batch.scalars) e_.emit(Op::S_RECI_FP, {sum, sum});
    if (tile_.shared_rows()) return spread_scales(heads, batch, groups, first_group);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      e_.emit(Op::S_ST_FP, {batch.scalars[i], heads.scale, i});
    }
  }

  // Walks the rows of all heads of a batch through the tiles of positions.
  void walk(const Heads& heads, const Batch& batch, const std::function<void()>& body) const {
    HeldGp last(e_, "scores of the newest tile");
    load_kept(context_, last, context_.plan.last_scores, "scores before the newest tile's");
    e_.emit(Op::S_ADD_INT, {last, last, heads.scores});
    for (std::size_t i = 0; i < batch.size(); ++i) {
      e_.offset(batch.rows[i], heads.scores, i * tile_.vlen());
    }
    SweepLoop tiles(e_, batch.rows[0], last, "tiles of positions");
    body();
    for (const HeldGp& row : batch.rows) e_.advance(row, tile_.score_stride());
  }

  void find_maxima(const Heads& heads, const Batch& batch) const {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (tile_.op.sinks) {
        e_.emit(Op::S_LD_FP, {batch.scalars[i], heads.sink, i}, "sink");
      } else {
        context_.constants.load(e_, batch.scalars[i], context_.plan.lowest_score, "lowest");
      }
    }
    walk(heads, batch, [&] {
      for (std::size_t i = 0; i < batch.size(); ++i) {
        e_.emit(Op::V_RED_MAX, {batch.scalars[i], batch.rows[i], kAllLanes});
      }
    });
  }

  void exponentiate(const Heads& heads, const Batch& batch) const {
    walk(heads, batch, [&] {
      for (std::size_t i = 0; i < batch.size(); ++i) {
        const HeldGp& row = batch.rows[i];
        e_.emit(Op::V_SUB_VF, {row, row, batch.scalars[i], kAllLanes, 0});
      }
      for (const HeldGp& row : batch.rows) e_.emit(Op::V_EXP_V, {row, row, kAllLanes});
    });
  }

  void add_up(const Heads& heads, const Batch& batch) const {
    start_sums(heads, batch);
    walk(heads, batch, [&] {
      for (std::size_t i = 0; i < batch.size(); ++i) {
        e_.emit(Op::V_RED_SUM, {batch.scalars[i], batch.rows[i]});
      }
    });
  }

  // A sink is one more term: exp(sink - maximum).
  void start_sums(const Heads& heads, const Batch& batch) const {
    const HeldFp weight(e_, "sink");
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const HeldFp& sum = batch.scalars[i];
      if (!tile_.op.sinks) {
        e_.emit(Op::S_ADD_FP, {sum, kZeroFp, kZeroFp}, "sum = 0");
        continue;
      }
      e_.emit(Op::S_LD_FP, {weight, heads.sink, i}, "sink");
      e_.emit(Op::S_SUB_FP, {sum, weight, sum});
      e_.emit(Op::S_EXP_FP, {sum, sum}, "weight of the sink");
    }
  }

  void clear_scales() const {
    HeldGp zeros(e_, "zeros");
    HeldGp row(e_, "scales of the group");
    e_.set(zeros, context_.row(context_.plan.selectors), "zeros");
    e_.set(row, context_.row(context_.plan.group_scales), "1 / sum in the lanes of heads");
    unroll(e_, layout_.groups, kMostCopies, "groups", [&](std::uint64_t copies, bool more) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        e_.emit(Op::V_ADD_VF, {row, zeros, kZeroFp, kAllLanes});
        if (more || i + 1 < copies) e_.advance(row, tile_.vlen());
      }
    });
  }

  // group_scales[group] += selector * 1 / sum for the heads of a batch, which are `groups` of each
  // of their slots, from `first_group` on; the last of a slot's moves on to the next selector.
  void spread_scales(const Heads& heads, const Batch& batch, std::uint64_t groups,
                     std::uint64_t first_group) const {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      e_.set(batch.rows[i], context_.row(context_.plan.scratch, i), "scratch");
      e_.emit(Op::V_MUL_VF, {batch.rows[i], heads.scale, batch.scalars[i], kAllLanes});
      const std::uint64_t group = first_group + i % groups;
      if (group + 1 == layout_.groups) e_.advance(heads.scale, tile_.vlen(), "next slot");
    }
    HeldGp row(e_, "scales of the group");
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::uint64_t group = first_group + i % groups;
      e_.set(row, context_.row(context_.plan.group_scales, group), "scales of the group");
      e_.emit(Op::V_ADD_VV, {row, row, batch.rows[i], kAllLanes});
    }
  }

  const AttentionTile& tile_;
  bool exponentiated_;
  const KernelContext& context_;
  Emitter& e_;
  const HeadLayout& layout_;
};

// All heads side by side. Those whose maximum comes from FP_MEM take their turns among the others.
class Exponentials {
 public:
  Exponentials(const AttentionTile& tile, const ScoreMaxima& maxima)
      : tile_(tile), maxima_(maxima), e_(tile.context.emitter) {}

  void emit() {
    const MemoryPlan& plan = tile_.context.plan;
    e_.comment("exp(score - maximum)");
    for (std::uint64_t head = 0; head < tile_.head_count(); ++head) {
      rows_.emplace_back(e_, "scores of the head");
      e_.set(rows_.back(), tile_.context.row(plan.scores, head), "scores of the head");
    }
    HeldGp last(e_, "scores of the newest tile");
    load_kept(tile_.context, last, plan.last_scores, "scores before the newest tile's");
    e_.emit(Op::S_ADD_INT, {last, last, rows_[0]});
    SweepLoop tiles(e_, rows_[0], last, "tiles of positions");
    emit_tile();
  }

 private:
  void emit_tile() const {
    const std::uint64_t heads = tile_.head_count();
    const std::uint64_t held = maxima_.held();
    const std::uint64_t some = held / 2;
    subtract(0, held);
    subtract(held, std::min(held + 1, heads));
    exponentiate(0, some);
    subtract(held + 1, heads);
    exponentiate(some, heads);
    for (const HeldGp& row : rows_) e_.advance(row, tile_.score_stride());
  }

  void subtract(std::uint64_t first, std::uint64_t end) const {
    for (std::uint64_t head = first; head < end; ++head) {
      const Gp row = rows_[head];
      e_.emit(Op::V_SUB_VF, {row, row, maxima_.of(head), kAllLanes, 0});
    }
  }
  void exponentiate(std::uint64_t first, std::uint64_t end) const {
    for (std::uint64_t head = first; head < end; ++head) {
      e_.emit(Op::V_EXP_V, {rows_[head], rows_[head], kAllLanes});
    }
  }

  const AttentionTile& tile_;
  const ScoreMaxima& maxima_;
  Emitter& e_;
  std::deque<HeldGp> rows_;
};

}  // namespace

void emit_softmax(const AttentionTile& tile, bool exponentiated) {
  Softmax(tile, exponentiated).emit();
}

void emit_exponentials(const AttentionTile& tile, const ScoreMaxima& maxima) {
  Exponentials(tile, maxima).emit();
}

}  // namespace plena
