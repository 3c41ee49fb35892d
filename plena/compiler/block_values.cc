// Weighted sums of V for a block of tokens. M_MM writes BLEN outputs at a time, so that each head's
// go to its own lanes, and reads the columns of its own KV head only. The sums of weights go to the
// first lanes of each head; another product spreads them over its lanes.

#include <algorithm>

#include "plena/compiler/block_attention.h"

namespace plena {

namespace {

constexpr std::uint64_t kMostColumns = 16;  // products of BLEN lanes in one stretch of code

class BlockValues {
 public:
  BlockValues(const BlockContext& context, const AttentionOp& op)
      : context_(context),
        e_(context.emitter),
        op_(op),
        layout_(context.tiled.heads),
        packing_(context.block.packing),
        vlen_(context.settings.vlen),
        blen_(context.settings.blen) {}

  void emit() const {
    const RegionScope region(e_, "values");
    if (op_.sinks) add_sinks();
    add_tiles();
    divide();
  }

  // Those of one tile of V, whose weights score_at points to.
  void add_tile(Gp tile) const {
    each_head(&tile);
    const std::uint64_t rows = std::uint64_t{layout_.groups} * context_.block.tokens;
    add_up(context_.block.outputs_at, context_.block.weighted, rows * layout_.span);
    add_up(context_.block.sums_at, context_.block.weights, rows);
  }

  void add_sinks() const {
    start_scores(context_.row(context_.block.scores));
    each_head(nullptr);
    add_up(context_.block.sums_at, context_.block.weights,
           std::uint64_t{layout_.groups} * context_.block.tokens);
  }

  void start_scores(std::uint64_t first) const {
    HeldGp score(e_, "weights");
    e_.set(score, first, "weights");
    keep(context_, score, context_.block.score_at);
  }

  // outputs /= sums of weights.
  void divide() const {
    HeldGp sums(e_, "sums of weights");
    HeldGp outputs(e_, "outputs");
    load_kept(context_, sums, context_.block.sums_at, "denominators of this tile");
    load_kept(context_, outputs, context_.block.outputs_at, "outputs of this tile");
    Loop groups(e_, layout_.groups, "rows");
    {
      HeldGp tile(e_, "first lanes to slots");
      HeldGp spread(e_, "sums in all lanes");
      e_.set(tile, context_.tile(context_.block.spread), "first lanes to slots");
      e_.set(spread, context_.rows(context_.block.quotients), "sums in all lanes");
      std::vector<std::uint64_t> places;  // of heads that share a row
      if (layout_.span == 1) {
        places = places_in_use(context_, context_.tiled.lanes(Layout::Head, 0));
      }
      emit_tile_product(
          context_, {.x = sums, .tile = tile, .y = spread, .transposed = false, .places = places});
    }
    divide_rows(outputs);
  }

 private:
  void add_tiles() const {
    start_scores(first_scores(context_));
    walk_cache(context_, op_, layout_.key_rows(), [&](Gp tile) {
      add_tile(tile);
      advance_kept(context_, context_.block.score_at, score_stride(context_));
    });
  }

  // weighted, weights = products of every head's weights with its columns of `tile`, if there is
  // one, and with ones.
  void each_head(const Gp* tile) const {
    HeldGp weights(e_, "weights of the head");
    load_kept(context_, weights, context_.block.score_at, "weights of the tile");
    if (layout_.slots == 1 && packing_.empty()) {
      return sum_up_heads(tile, weights, kZeroGp, 0, 0, layout_.groups);
    }
    HeldGp lane(e_, "lane of the head");
    e_.set(lane, 0, "first slot");
    if (!packing_.empty()) {
      Loop families(e_, packing_.families, "families");
      for (const QueryPacking::Head& head : packing_.heads) {
        sum_up_heads(tile, weights, lane, std::uint64_t{head.slot} * layout_.head_lanes, head.group,
                     1);
      }
      return e_.advance(lane, context_.settings.hlen);
    }
    Loop slots(e_, layout_.slots, "slots");
    sum_up_heads(tile, weights, lane, 0, 0, layout_.groups);
    e_.advance(lane, layout_.head_lanes);
  }

  // `groups` heads from output row `group` on whose lanes start at `lane` + `offset`.
  void sum_up_heads(const Gp* tile, Gp weights, Gp lane, std::uint64_t offset, std::uint64_t group,
                    std::uint64_t groups) const {
    HeldGp column(e_, "columns of V");
    HeldGp y(e_, "weighted sums");
    HeldGp sum(e_, "sums of weights");
    if (tile != nullptr) {
      e_.offset(column, lane, offset);
      e_.emit(Op::S_ADD_INT, {column, column, *tile});
      e_.offset(y, lane, context_.rows(context_.block.weighted, group * layout_.span) + offset);
    }
    e_.offset(sum, lane, context_.rows(context_.block.weights, group) + offset);
    Loop loop(e_, groups, "heads of the slot");
    if (tile != nullptr && layout_.span > 1) {
      sum_up_rows(weights, column, y);
      return sum_up(weights, nullptr, nullptr, &sum);
    }
    const Gp from = column;
    const Gp to = y;
    sum_up(weights, tile == nullptr ? nullptr : &from, tile == nullptr ? nullptr : &to, &sum);
  }

  // A head of several rows: each row of V with the same weights.
  void sum_up_rows(Gp weights, Gp column, Gp y) const {
    HeldGp at(e_, "weights of the head");
    HeldGp row(e_, "row of V");
    e_.copy(row, column);
    Loop rows(e_, layout_.span, "rows of the head");
    e_.copy(at, weights);
    const Gp from = row;
    sum_up(at, &from, &y, nullptr);
    e_.advance(row, context_.tiled.tile_elements());
  }

  // One head, all tokens; moves everything but `column` on behind them.
  void sum_up(Gp weights, const Gp* column, const Gp* y, const HeldGp* sum) const {
    std::optional<HeldGp> ones;
    if (sum != nullptr) {
      ones.emplace(e_, "ones");
      e_.set(*ones, context_.tile(context_.block.ones), "ones");
    }
    const std::uint64_t rows = blen_ * vlen_;
    Loop tokens(e_, context_.block.tokens / blen_, "tokens, BLEN at a time");
    if (column != nullptr) multiply_columns(weights, *column, *y);
    if (sum != nullptr) e_.emit(Op::M_MM, {*ones, weights});
    e_.advance(weights, rows);
    if (y != nullptr) e_.advance(*y, rows);
    if (sum == nullptr) return;
    e_.emit(Op::M_MM_WO, {*sum, 0});
    e_.advance(*sum, rows);
  }

  void multiply_columns(Gp weights, Gp first, Gp y) const {
    const std::uint64_t columns = layout_.head_lanes / blen_;
    const std::uint64_t copies = abreast(columns, std::min(columns, kMostColumns));
    HeldGp column(e_, "BLEN columns");
    std::optional<HeldGp> walk;
    if (copies != columns) {
      walk.emplace(e_, "weighted sums");
      e_.copy(*walk, y);
      e_.copy(column, first);
    }
    Loop loop(e_, columns / copies, "columns");
    for (std::uint64_t i = 0; i < copies; ++i) {
      if (walk || i > 0) {
        e_.emit(Op::M_MM, {column, weights});
      } else {
        e_.emit(Op::M_MM, {first, weights});
      }
      if (walk) {
        e_.advance(column, blen_);
      } else if (i + 1 < copies) {
        e_.offset(column, i == 0 ? first : Gp(column), blen_);
      }
      e_.emit(Op::M_MM_WO, {walk ? Gp(*walk) : y, i * blen_});
    }
    if (walk) e_.advance(*walk, copies * blen_);
  }

  // `rows` rows from those kept in `place` on += the addends.
  void add_up(const Block& place, const Block& addends, std::uint64_t rows) const {
    const std::uint64_t copies = abreast(rows, kRowsAbreast);
    const RowsAbreast to(context_, copies, "sum");
    const RowsAbreast addend(context_, copies, "addend");
    to.load(context_, place);
    addend.set(context_.rows(addends));
    Loop loop(e_, rows / copies, "rows");
    for (std::uint64_t i = 0; i < copies; ++i) {
      e_.emit(Op::V_ADD_VV, {to[i], to[i], addend[i], kAllLanes});
    }
    to.advance();
    addend.advance();
  }

  // The rows of one head's group: reciprocals of a few sums, then the outputs of those tokens.
  void divide_rows(Gp outputs) const {
    const std::uint64_t copies = abreast(context_.block.tokens, kRowsAbreast);
    const RowsAbreast spread(context_, copies, "sums in all lanes");
    spread.set(context_.rows(context_.block.quotients));
    {
      Loop tokens(e_, context_.block.tokens / copies, "tokens");
      for (std::uint64_t i = 0; i < copies; ++i) {
        e_.emit(Op::V_RECI_V, {spread[i], spread[i], kAllLanes});
      }
      spread.advance();
    }
    const RowsAbreast output(context_, copies, "outputs");
    output.set(outputs);
    Loop rows(e_, layout_.span, "rows of a head");
    spread.set(context_.rows(context_.block.quotients));
    {
      Loop tokens(e_, context_.block.tokens / copies, "tokens");
      for (std::uint64_t i = 0; i < copies; ++i) {
        e_.emit(Op::V_MUL_VV, {output[i], output[i], spread[i], kAllLanes});
      }
      output.advance();
      spread.advance();
    }
    e_.advance(outputs, context_.tile_rows());
  }

  const BlockContext& context_;
  Emitter& e_;
  const AttentionOp& op_;
  const HeadLayout& layout_;
  const QueryPacking& packing_;
  std::uint64_t vlen_;
  std::uint64_t blen_;
};

}  // namespace

void emit_block_values(const BlockContext& context, const AttentionOp& op) {
  BlockValues(context, op).emit();
}

void start_tile_values(const BlockContext& context, const AttentionOp& op) {
  const BlockValues values(context, op);
  if (op.sinks) values.add_sinks();
  values.start_scores(first_scores(context));
}

void emit_tile_values(const BlockContext& context, const AttentionOp& op, Gp tile) {
  BlockValues(context, op).add_tile(tile);
}

void finish_tile_values(const BlockContext& context, const AttentionOp& op) {
  BlockValues(context, op).divide();
}

}  // namespace plena
