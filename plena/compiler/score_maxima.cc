#include "plena/compiler/score_maxima.h"

namespace plena {

namespace {

constexpr std::uint64_t kMaximaAbreast = 7;  // f1 … f7

}  // namespace

ScoreMaxima::ScoreMaxima(const AttentionTile& tile) : tile_(tile), e_(tile.context.emitter) {
  const std::uint64_t heads = tile.head_count();
  const std::uint64_t held = heads <= kMaximaAbreast ? heads : kMaximaAbreast - 1;
  for (std::uint64_t i = 0; i < held; ++i) held_.emplace_back(e_, "maximum");
  if (held < heads) passing_.emplace(e_, "maximum");
}

void ScoreMaxima::start() const {
  const float lowest = tile_.context.plan.lowest_score;
  for (const HeldFp& maximum : held_) {
    tile_.context.constants.load(e_, maximum, lowest, "lowest");
  }
  if (!passing_) return;
  tile_.context.constants.load(e_, *passing_, lowest, "lowest");
  for (std::uint64_t head = held_.size(); head < tile_.head_count(); ++head) save(head);
}

void ScoreMaxima::raise(std::uint64_t head, Gp row) const {
  e_.emit(Op::V_RED_MAX, {of(head), row, kAllLanes});
  if (!in_register(head)) save(head);
}

// The last turns, two for each head without a register: its scores have arrived by then.
void ScoreMaxima::raise_in_turn(std::uint64_t head, Gp row, Gp other) const {
  if (in_register(head)) raise(head, row);
  const std::uint64_t others = tile_.head_count() - held_.size();
  const std::uint64_t first = tile_.head_count() - 2 * others;
  if (head < first) return;
  const std::uint64_t turn = (head - first) / 2;
  if ((head - first) % 2 == 1) {
    e_.emit(Op::V_RED_MAX, {*passing_, other, kAllLanes});
    return e_.advance(other, tile_.vlen());
  }
  if (turn > 0) save(held_.size() + turn - 1);
  load(held_.size() + turn);
}

void ScoreMaxima::end_turns() const {
  if (passing_) save(tile_.head_count() - 1);
}

Fp ScoreMaxima::of(std::uint64_t head) const {
  if (in_register(head)) return held_[head];
  load(head);
  return *passing_;
}

void ScoreMaxima::load(std::uint64_t head) const {
  e_.emit(Op::S_LD_FP, {*passing_, kZeroGp, tile_.context.plan.score_maxima.first + head});
}

void ScoreMaxima::save(std::uint64_t head) const {
  e_.emit(Op::S_ST_FP, {*passing_, kZeroGp, tile_.context.plan.score_maxima.first + head});
}

}  // namespace plena
