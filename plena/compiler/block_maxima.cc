#include "plena/compiler/block_maxima.h"

#include <deque>

namespace plena {

bool BlockMaxima::serve(const BlockContext& context, const AttentionOp& op) {
  return context.block.lowest.count != 0 && op.window == 0 && op.score_cap == 0 && !op.sinks;
}

void BlockMaxima::start(const BlockContext& context) {
  Emitter& e = context.emitter;
  HeldFp lowest(e, "lowest");
  context.constants.load(e, lowest, context.plan.lowest_score, "lowest");
  for (std::uint64_t i = 0; i < kScoresAbreast; ++i) {
    e.emit(Op::S_ST_FP, {lowest, kZeroGp, context.block.lowest.first + i});
  }
  HeldGp row(e, "lowest scores");
  HeldGp zeros(e, "zeros");
  e.set(row, context.row(context.block.scores), "as if of a tile before");
  e.set(zeros, context.row(context.plan.selectors), "zeros");
  e.emit(Op::V_ADD_VF, {row, zeros, lowest, kAllLanes});
}

BlockMaxima::BlockMaxima(const BlockContext& context)
    : context_(context),
      e_(context.emitter),
      row_step_(e_, "from row to row"),
      from_step_(e_, "from maximum to maximum"),
      from_(e_, "maxima so far"),
      to_(e_, "maxima") {
  const BlockPlan& block = context.block;
  HeldGp at(e_, "scores of the tile");
  {
    HeldGp first(e_, "scores of the first tile");
    e_.set(first, first_scores(context), "scores of the first tile");
    load_kept(context, at, block.score_at, "scores of the tile");
    emit_choice(e_, row_step_, first, at, 0, context.settings.vlen, "from row to row");
    emit_choice(e_, from_step_, first, at, 0, kScoresAbreast, "from maximum to maximum");
    emit_choice(e_, from_, first, at, block.lowest.first, block.maxima.first, "maxima so far");
  }
  e_.retreat(at, score_stride(context), "of the tile before");
  const RowsAbreast& rows = rows_.emplace(context, kScoresAbreast, "scores of the tile before");
  e_.copy(rows[0], at);
  for (std::uint64_t i = 1; i < kScoresAbreast; ++i) {
    e_.emit(Op::S_ADD_INT, {rows[i], rows[i - 1], row_step_});
  }
  e_.set(at, kScoresAbreast);
  e_.emit(Op::S_MUL_INT, {row_step_, row_step_, at}, "to the next rows side by side");
  e_.set(to_, block.maxima.first, "maxima");
}

std::uint64_t BlockMaxima::groups() const {
  return context_.block.score_rows / kScoresAbreast;
}

void BlockMaxima::raise(std::uint64_t count) const {
  if (count == 0) return;
  const RowsAbreast& rows = *rows_;
  Loop loop(e_, count, "rows side by side");
  std::deque<HeldFp> maxima;
  for (std::uint64_t i = 0; i < kScoresAbreast; ++i) {
    e_.emit(Op::S_LD_FP, {maxima.emplace_back(e_, "maximum"), from_, i});
  }
  for (std::uint64_t i = 0; i < kScoresAbreast; ++i) {
    e_.emit(Op::V_RED_MAX, {maxima[i], rows[i], kAllLanes});
    e_.emit(Op::S_ADD_INT, {rows[i], rows[i], row_step_});
  }
  for (std::uint64_t i = 0; i < kScoresAbreast; ++i) {
    e_.emit(Op::S_ST_FP, {maxima[i], to_, i});
  }
  e_.emit(Op::S_ADD_INT, {from_, from_, from_step_});
  e_.advance(to_, kScoresAbreast);
}

}  // namespace plena
