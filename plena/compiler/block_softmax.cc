// Exponentials of a block's scores relative to the maximum of their row, as many rows side by side
// as there are registers for maxima: through the tiles of positions for the maximum, and back
// again.

#include <deque>
#include <optional>

#include "plena/compiler/block_maxima.h"

namespace plena {

namespace {

class BlockSoftmax {
 public:
  BlockSoftmax(const BlockContext& context, const AttentionOp& op)
      : context_(context),
        e_(context.emitter),
        found_(BlockMaxima::serve(context, op)),
        first_(op.sinks ? context.row(context.block.scores) : first_scores(context)),
        start_(e_, "first tile's scores"),
        last_(e_, "last tile's scores"),
        stride_(e_, "to the next tile") {
    for (std::uint64_t i = 0; i < kScoresAbreast; ++i) {
      rows_.emplace_back(e_, "scores");
      maxima_.emplace_back(e_, "maximum");
    }
  }

  // Pointers go through the tiles and back again: to the tile before a row of scores is read on the
  // way there, behind it on the way back.
  void emit() const {
    const std::uint64_t vlen = context_.settings.vlen;
    const std::uint64_t stride = score_stride(context_);
    e_.set(start_, first_, "first scores");
    e_.set(stride_, stride, "from tile to tile");
    load_kept(context_, last_, context_.block.score_end, "end of the scores");
    e_.emit(Op::S_SUB_INT, {last_, last_, stride_}, "last tile's scores");
    std::optional<HeldGp> entry;
    if (found_) {
      entry.emplace(e_, "maxima");
      e_.set(*entry, context_.block.maxima.first, "maxima");
    } else {
      set_rows(start_);
      for (const HeldGp& row : rows_) e_.emit(Op::S_SUB_INT, {row, row, stride_});
    }
    Loop groups(e_, context_.block.score_rows / kScoresAbreast, "rows side by side");
    if (found_) {
      take_maxima(*entry);
      e_.advance(*entry, kScoresAbreast);
    } else {
      find_maxima();
    }
    exponentiate();
    if (!found_) {
      for (const HeldGp& row : rows_) e_.advance(row, kScoresAbreast * vlen);
    }
    e_.advance(start_, kScoresAbreast * vlen);
    e_.advance(last_, kScoresAbreast * vlen);
  }

 private:
  void set_rows(Gp first) const {
    for (std::uint64_t i = 0; i < rows_.size(); ++i) {
      e_.offset(rows_[i], first, i * context_.settings.vlen);
    }
  }

  // Leaves the pointers at the last tile, as find_maxima().
  void take_maxima(Gp entry) const {
    for (std::uint64_t i = 0; i < rows_.size(); ++i) {
      e_.emit(Op::S_LD_FP, {maxima_[i], entry, i});
    }
    set_rows(last_);
    for (std::uint64_t i = 0; i < rows_.size(); ++i) {
      e_.emit(Op::V_RED_MAX, {maxima_[i], rows_[i], kAllLanes});
    }
  }

  void find_maxima() const {
    for (const HeldFp& maximum : maxima_) {
      context_.constants.load(e_, maximum, context_.plan.lowest_score, "lowest");
    }
    WalkLoop tiles(e_, rows_[0], last_, "tiles of positions");
    constexpr std::size_t kAhead = 3;  // pointers, of the maxima
    for (std::size_t i = 0; i < rows_.size() + kAhead; ++i) {
      if (i >= kAhead) {
        e_.emit(Op::V_RED_MAX, {maxima_[i - kAhead], rows_[i - kAhead], kAllLanes});
      }
      if (i < rows_.size()) e_.emit(Op::S_ADD_INT, {rows_[i], rows_[i], stride_});
    }
  }

  // From the last tile back to the first.
  void exponentiate() const {
    SweepLoop tiles(e_, start_, rows_[0], "tiles of positions, backwards");
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      e_.emit(Op::V_SUB_VF, {rows_[i], rows_[i], maxima_[i], kAllLanes, 0});
    }
    for (const HeldGp& row : rows_) {
      e_.emit(Op::V_EXP_V, {row, row, kAllLanes});
      e_.emit(Op::S_SUB_INT, {row, row, stride_});
    }
  }

  const BlockContext& context_;
  Emitter& e_;
  bool found_;           // maxima are, but for the last tile, which was not masked then
  std::uint64_t first_;  // address of the first row
  HeldGp start_;
  HeldGp last_;
  HeldGp stride_;
  std::deque<HeldGp> rows_;
  std::deque<HeldFp> maxima_;
};

}  // namespace

void emit_block_softmax(const BlockContext& context, const AttentionOp& op) {
  const RegionScope region(context.emitter, "softmax");
  BlockSoftmax(context, op).emit();
}

}  // namespace plena
