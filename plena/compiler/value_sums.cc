// The weighted sums of V, and 1 / sum of the weights as their common factor.
//
// Heads that share rows need only the columns of their own slot: M_MM takes BLEN of them at a time,
// for as many heads of the slot as there are. Where that does not pay, M_MV takes all columns of
// one head, and the lanes of other slots are cut off.

#include <algorithm>

#include "plena/compiler/attention_sweeps.h"

namespace plena {

namespace {

class ValueSums {
 public:
  explicit ValueSums(const AttentionTile& tile)
      : tile_(tile),
        context_(tile.context),
        e_(tile.context.emitter),
        cache_(tile.cache),
        layout_(tile.layout()),
        vlen_(tile.vlen()) {}

  void emit() const {
    e_.comment("weighted sums of V");
    if (!tile_.shared_rows()) {
      for (std::uint32_t row = 0; row < layout_.span; ++row) sum_up_heads(row);
      return scale_heads();
    }
    if (ValueColumns::pay(tile_)) {
      sum_up_columns();
    } else {
      sum_up_heads(0);
      gather();
    }
    emit_scaled_groups(tile_);
  }

 private:
  // ---- M_MM: the columns of a slot for its heads

  // Rows of a block beyond the groups of a slot belong to the next slot's heads; what comes of them
  // goes to rows that are written after it, or to nobody's.
  void sum_up_columns() const {
    const std::uint64_t blen = context_.settings.blen;
    for (std::uint64_t block = (layout_.groups + blen - 1) / blen; block-- > 0;) {
      ValueColumns(tile_, block * blen).sweep_slots(layout_.slots);
    }
  }

  // ---- M_MV: all columns, head by head

  // Row of the first head's output.
  void set_output_rows(Gp head, std::uint32_t row) const {
    if (tile_.shared_rows()) return e_.set(head, context_.row(context_.plan.heads), "outputs");
    tile_.set_rows(head, tile_.op.to, row, "outputs");
  }

  void sum_up_heads(std::uint32_t row) const {
    HeldGp scores(e_, "scores of the head");
    HeldGp output(e_, "output");
    e_.set(scores, context_.row(context_.plan.scores), "scores of the head");
    set_output_rows(output, row);
    unroll(e_, tile_.head_count(), kMostCopies, "heads", [&](std::uint64_t copies, bool) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        if (cache_.resident()) {
          walk_resident(scores, row);
        } else {
          walk_staged(scores, row);
        }
        e_.emit(Op::M_MV_WO, {output, i * layout_.span * vlen_});
        step(context_, scores, vlen_, tile_.head_count());
      }
      step(context_, output, copies * layout_.span * vlen_, tile_.head_count());
    });
  }

  void walk_resident(Gp scores, std::uint32_t row) const {
    HeldGp score(e_, "scores");
    HeldGp value(e_, "V tile");
    HeldGp last(e_, "newest V tile");
    cache_.set_value_sweep(value, last, row);
    e_.copy(score, scores);
    SweepLoop tiles(e_, value, last, "tiles of positions");
    e_.emit(Op::M_MV, {score, value});
    e_.advance(value, tile_.tile_elements());
    e_.advance(score, tile_.score_stride());
  }

  void walk_staged(Gp scores, std::uint32_t row) const {
    HeldGp score(e_, "scores");
    HeldGp value(e_, "V tile");
    HeldGp last(e_, "newest V tile");
    cache_.set_region_sweep(value, last, layout_.key_rows() + row);
    HeldGp staged(e_, "tile");
    e_.set(staged, context_.tile(context_.plan.cache_stage), "tile in use");
    e_.copy(score, scores);
    SweepLoop tiles(e_, value, last, "tiles of positions");
    e_.emit(Op::H_PREFETCH_M, {staged, value, kCacheBase, kContiguous, kKeyValue});
    e_.emit(Op::M_MV, {score, staged});
    e_.advance(score, tile_.score_stride());
    e_.advance(value, tile_.tile_elements());
  }

  // Each head's output in its own lanes only, then to[group] = the outputs of its slots.
  void gather() const {
    cut();
    HeldGp out(e_, "attention");
    HeldGp head(e_, "output");
    HeldGp zeros(e_, "zeros");
    tile_.set_rows(out, tile_.op.to, 0, "attention");
    e_.set(zeros, context_.row(context_.plan.selectors), "zeros");
    e_.set(head, context_.row(context_.plan.heads), "outputs head by head");
    Loop groups(e_, layout_.groups, "groups");
    e_.emit(Op::V_ADD_VF, {out, zeros, kZeroFp, kAllLanes}, "zeros");
    {
      HeldGp output(e_, "output of the slot");
      e_.copy(output, head);
      unroll(e_, layout_.slots, kMostCopies, "slots", [&](std::uint64_t copies, bool) {
        for (std::uint64_t i = 0; i < copies; ++i) {
          e_.emit(Op::V_ADD_VV, {out, out, output, kAllLanes});
          e_.advance(output, layout_.groups * vlen_);
        }
      });
    }
    step(context_, head, vlen_, layout_.groups);
    step(context_, out, vlen_, layout_.groups);
  }

  void cut() const {
    e_.comment("outputs of the heads, each in its own lanes");
    HeldGp head(e_, "output");
    HeldGp selector(e_, "selector");
    e_.set(selector, context_.row(context_.plan.selectors, 1), "slot selectors");
    e_.set(head, context_.row(context_.plan.heads), "outputs head by head");
    const std::uint64_t most = std::max<std::uint64_t>(1, kMostCopies / layout_.groups);
    unroll(e_, layout_.slots, most, "slots", [&](std::uint64_t copies, bool) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        for (std::uint64_t group = 0; group < layout_.groups; ++group) {
          e_.emit(Op::V_MUL_VV, {head, head, selector, kAllLanes});
          e_.advance(head, vlen_);
        }
        e_.advance(selector, vlen_);
      }
    });
  }

  // ---- 1 / sum

  void scale_heads() const {
    HeldGp output(e_, "output");
    HeldGp scale(e_, "entry of 1 / sum");
    HeldFp factor(e_, "1 / sum");
    set_output_rows(output, 0);
    e_.set(scale, context_.plan.head_scales.first, "entries of 1 / sum");
    const std::uint64_t most = std::max<std::uint64_t>(1, kMostCopies / layout_.span);
    unroll(e_, tile_.head_count(), most, "heads", [&](std::uint64_t copies, bool more) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        e_.emit(Op::S_LD_FP, {factor, scale, i});
        for (std::uint32_t row = 0; row < layout_.span; ++row) {
          e_.emit(Op::V_MUL_VF, {output, output, factor, kAllLanes});
          e_.advance(output, vlen_);
        }
      }
      if (more) e_.advance(scale, copies);
    });
  }

  const AttentionTile& tile_;
  const KernelContext& context_;
  Emitter& e_;
  const CacheTiles& cache_;
  const HeadLayout& layout_;
  std::uint64_t vlen_;
};

}  // namespace

ValueColumns::ValueColumns(const AttentionTile& tile, std::uint64_t first)
    : tile_(tile),
      e_(tile.context.emitter),
      out_(e_, "attention"),
      scores_(e_, "scores of the slot"),
      value_(e_, "columns of V"),
      last_(e_, "newest V tile"),
      back_(e_, "from behind V to the next columns") {
  const KernelContext& context = tile.context;
  tile.set_rows(out_, tile.op.to, static_cast<std::uint32_t>(first), "attention");
  tile.cache.set_value_sweep(value_, last_, 0);
  e_.emit(Op::S_SUB_INT, {back_, last_, value_});
  e_.advance(back_, tile.tile_elements() - context.settings.blen, "back, to the next columns");
  e_.set(scores_, context.row(context.plan.scores, first), "scores of the slot");
}

// An array that is faster than its loop waits for it.
bool ValueColumns::pay(const AttentionTile& tile) {
  constexpr std::uint64_t kLoop = 5;  // instructions around a tile of positions
  const Settings& s = tile.context.settings;
  const HeadLayout& layout = tile.layout();
  if (!tile.shared_rows() || !tile.cache.resident() || layout.head_lanes % s.blen != 0) {
    return false;
  }
  const std::uint64_t row_blocks = (layout.groups + s.blen - 1) / s.blen;
  const std::uint64_t columns = layout.slots * blocks(tile) * row_blocks;
  return columns * std::max<std::uint64_t>(s.blen, kLoop) <
         tile.head_count() * std::max<std::uint64_t>(s.mlen / s.blen, kLoop);
}

std::uint64_t ValueColumns::blocks(const AttentionTile& tile) {
  return tile.layout().head_lanes / tile.context.settings.blen;
}

void ValueColumns::sweep(std::uint64_t i, const Rider& rider) const {
  const std::uint64_t blen = tile_.context.settings.blen;
  {
    HeldGp score(e_, "scores");
    e_.copy(score, scores_);
    SweepLoop tiles(e_, value_, last_, "tiles of positions");
    e_.emit(Op::M_MM, {value_, score});
    e_.advance(value_, tile_.tile_elements());
    e_.advance(score, tile_.score_stride());
    if (rider) rider();
  }
  e_.emit(Op::M_MM_WO, {out_, i * blen});
  e_.emit(Op::S_SUB_INT, {value_, value_, back_}, "next columns");
  e_.advance(last_, blen);
}

void ValueColumns::move_on(std::uint64_t columns) const {
  e_.advance(out_, columns * tile_.context.settings.blen);
}

void ValueColumns::next_slot() const {
  e_.advance(scores_, tile_.layout().groups * tile_.vlen());
}

void ValueColumns::sweep_slots(std::uint64_t slots) const {
  const std::uint64_t most = std::max<std::uint64_t>(1, kMostCopies / blocks(tile_));
  unroll(e_, slots, most, "slots", [&](std::uint64_t copies, bool) {
    for (std::uint64_t slot = 0; slot < copies; ++slot) {
      unroll(e_, blocks(tile_), kMostCopies, "columns", [&](std::uint64_t columns, bool) {
        for (std::uint64_t i = 0; i < columns; ++i) sweep(i);
        move_on(columns);
      });
      next_slot();
    }
  });
}

void emit_scaled_groups(const AttentionTile& tile) {
  const KernelContext& context = tile.context;
  Emitter& e = context.emitter;
  HeldGp out(e, "attention");
  HeldGp scale(e, "scales of the group");
  tile.set_rows(out, tile.op.to, 0, "attention");
  e.set(scale, context.row(context.plan.group_scales), "by lanes");
  unroll(e, tile.layout().groups, kMostCopies, "groups", [&](std::uint64_t copies, bool) {
    for (std::uint64_t i = 0; i < copies; ++i) {
      if (tile.sums_are_products()) e.emit(Op::V_RECI_V, {scale, scale, kAllLanes});
      e.emit(Op::V_MUL_VV, {out, out, scale, kAllLanes});
      step(context, out, tile.vlen(), tile.layout().groups);
      step(context, scale, tile.vlen(), tile.layout().groups);
    }
  });
}

void emit_value_sums(const AttentionTile& tile) {
  ValueSums(tile).emit();
}

}  // namespace plena
