// Attention of a block of tokens where the scores of a context do not fit Vector SRAM. The scores
// of a tile of positions come twice: the first time they raise the running maxima of their rows,
// the second time they become weights, which add to the running sums and outputs. That costs K q
// once more, and nothing has to be corrected; the results are those of block_softmax.cc, bit for
// bit.

#include <deque>

#include "plena/compiler/block_attention.h"

namespace plena {

namespace {

// Masks of the tokens of a block: rows one after the other, or the same row of zeros for all.
struct MaskRows {
  const HeldGp& first;
  const HeldGp& step;
};

class RunningBlock {
 public:
  RunningBlock(const BlockContext& context, const AttentionOp& op)
      : context_(context), e_(context.emitter), op_(op), vlen_(context.settings.vlen) {}

  void emit() const {
    keep_scores();
    start_tile_scores(context_, op_);
    find_maxima();
    add_up();
    finish_tile_values(context_, op_);
  }

 private:
  [[nodiscard]] std::uint64_t sinks() const { return context_.row(context_.block.scores); }

  // There is one set of scores.
  void keep_scores() const {
    HeldGp at(e_, "scores");
    e_.set(at, first_scores(context_), "scores of the tile");
    keep(context_, at, context_.block.score_at);
    e_.advance(at, score_stride(context_), "end of the scores");
    keep(context_, at, context_.block.score_end);
  }

  void find_maxima() const {
    const RegionScope region(e_, "maxima");
    clear_maxima();
    if (op_.sinks) raise_maxima(sinks());
    start_edge();
    walk_cache(context_, op_, 0, [&](Gp tile) {
      emit_masked_scores(tile);
      raise_maxima(first_scores(context_));
    });
  }

  void add_up() const {
    const RegionScope region(e_, "values");
    if (op_.sinks) exponentiate(sinks());
    start_tile_values(context_, op_);
    start_edge();
    walk_cache(context_, op_, 0, [&](Gp tile) {
      // Where V has no slot of its own it takes that of K, when that has served.
      const bool own_slot = context_.block.value_slot != 0;
      if (own_slot) fetch();
      emit_masked_scores(tile);
      if (!own_slot) fetch();
      exponentiate(first_scores(context_));
      HeldGp value(e_, "V tile");
      set_value_tile(value);
      emit_tile_values(context_, op_, value);
    });
  }

  void set_value_tile(Gp to) const {
    const BlockPlan& block = context_.block;
    e_.set(to,
           context_.tile(block.pool) +
               block.value_slot * block.slot_pitch * context_.tiled.tile_elements(),
           "slot of V");
  }
  void fetch() const {
    HeldGp to(e_, "slot of V");
    set_value_tile(to);
    fetch_values(context_, to);
  }

  void emit_masked_scores(Gp tile) const {
    emit_tile_scores(context_, op_, tile);
    hide_later();
    if (op_.window != 0) hide_earlier();
  }

  // ---- masks, see BlockScores

  // Positions to come, in the last tile: the walk has passed it.
  void hide_later() const {
    e_.comment("hide the positions to come");
    HeldGp at(e_, "behind the tile");
    HeldGp end(e_, "end of the tiles in sight");
    load_kept(context_, at, context_.block.walk_at, "behind the tile");
    load_kept(context_, end, context_.block.walk_end, "end of the tiles in sight");
    add_masks_if(at, end, context_.rows(context_.block.mask));
  }

  // Twice the tiles to go until the one that windows of the block begin in at the latest: a choice
  // tells apart what differs by two.
  void start_edge() const {
    if (op_.window == 0) return;
    const BlockWindow& window = context_.block.windows.at(op_.window);
    HeldGp left(e_, "tiles to the edge");
    HeldGp first(e_, "tiles before the first");
    load_kept(context_, left, window.edge, "tiles before the edge");
    load_kept(context_, first, window.first_tile, "tiles before the first");
    e_.emit(Op::S_SUB_INT, {left, left, first});
    e_.emit(Op::S_ADD_INT, {left, left, left}, "twice that");
    keep(context_, left, context_.block.edge_left);
  }

  // Positions before the windows, in the tile before the edge and in that one.
  void hide_earlier() const {
    e_.comment("hide the positions before the window");
    const BlockWindow& window = context_.block.windows.at(op_.window);
    HeldGp left(e_, "tiles to the edge");
    HeldGp tile(e_, "a tile");
    load_kept(context_, left, context_.block.edge_left, "tiles to the edge");
    add_masks_if(left, kZeroGp, context_.rows(window.masks, 1));
    e_.set(tile, 2, "a tile");
    add_masks_if(left, tile, context_.rows(window.masks));
    e_.emit(Op::S_SUB_INT, {left, left, tile});
    keep(context_, left, context_.block.edge_left);
  }

  void add_masks_if(Gp at, Gp end, std::uint64_t masks) const {
    HeldGp first(e_, "masks of the tokens");
    HeldGp step(e_, "to the next token's");
    const std::uint64_t copies = abreast(context_.block.tokens, kRowsAbreast);
    emit_choice(e_, first, at, end, masks, context_.row(context_.plan.selectors), "masks, zeros");
    emit_choice(e_, step, at, end, vlen_, 0, "masks of the tokens lie one behind the other");
    add_masks({first, step}, copies);
  }

  void add_masks(const MaskRows& masks, std::uint64_t copies) const {
    const RowsAbreast rows(context_, copies, "scores");
    rows.set(first_scores(context_));
    Loop heads(e_, context_.tiled.heads.heads_per_tile(), "heads");
    HeldGp mask(e_, "mask of the token");
    e_.copy(mask, masks.first);
    Loop tokens(e_, context_.block.tokens / copies, "tokens");
    for (std::uint64_t i = 0; i < copies; ++i) {
      e_.emit(Op::V_ADD_VV, {rows[i], rows[i], mask, kAllLanes});
      e_.emit(Op::S_ADD_INT, {mask, mask, masks.step});
    }
    rows.advance();
  }

  // ---- rows of scores, as many side by side as there are registers for maxima

  void clear_maxima() const {
    HeldFp lowest(e_, "lowest");
    HeldGp entry(e_, "entry of a maximum");
    context_.constants.load(e_, lowest, context_.plan.lowest_score, "lowest");
    e_.set(entry, context_.block.maxima.first, "maxima");
    Loop loop(e_, context_.block.score_rows / kScoresAbreast, "rows side by side");
    for (std::uint64_t i = 0; i < kScoresAbreast; ++i) {
      e_.emit(Op::S_ST_FP, {lowest, entry, i});
    }
    e_.advance(entry, kScoresAbreast);
  }

  // `body(rows, maxima, entry)` for a few rows of scores at a time and the place of their maxima.
  template <class Body>
  void each_rows(std::uint64_t first, Body&& body) const {
    const RowsAbreast rows(context_, kScoresAbreast, "scores");
    std::deque<HeldFp> maxima;
    for (std::uint64_t i = 0; i < kScoresAbreast; ++i) maxima.emplace_back(e_, "maximum");
    HeldGp entry(e_, "entry of a maximum");
    rows.set(first);
    e_.set(entry, context_.block.maxima.first, "maxima");
    Loop loop(e_, context_.block.score_rows / kScoresAbreast, "rows side by side");
    for (std::uint64_t i = 0; i < kScoresAbreast; ++i) {
      e_.emit(Op::S_LD_FP, {maxima[i], entry, i});
    }
    body(rows, maxima, Gp(entry));
    rows.advance();
    e_.advance(entry, kScoresAbreast);
  }

  void raise_maxima(std::uint64_t first) const {
    each_rows(first, [&](const RowsAbreast& rows, const std::deque<HeldFp>& maxima, Gp entry) {
      for (std::uint64_t i = 0; i < kScoresAbreast; ++i) {
        e_.emit(Op::V_RED_MAX, {maxima[i], rows[i], kAllLanes});
      }
      for (std::uint64_t i = 0; i < kScoresAbreast; ++i) {
        e_.emit(Op::S_ST_FP, {maxima[i], entry, i});
      }
    });
  }

  void exponentiate(std::uint64_t first) const {
    each_rows(first, [&](const RowsAbreast& rows, const std::deque<HeldFp>& maxima, Gp) {
      for (std::uint64_t i = 0; i < kScoresAbreast; ++i) {
        e_.emit(Op::V_SUB_VF, {rows[i], rows[i], maxima[i], kAllLanes, 0});
      }
      for (std::uint64_t i = 0; i < kScoresAbreast; ++i) {
        e_.emit(Op::V_EXP_V, {rows[i], rows[i], kAllLanes});
      }
    });
  }

  const BlockContext& context_;
  Emitter& e_;
  const AttentionOp& op_;
  std::uint64_t vlen_;
};

}  // namespace

void emit_running_block_attention(const BlockContext& context, const AttentionOp& op) {
  RunningBlock(context, op).emit();
}

}  // namespace plena
