// Scores of a block of tokens: K q tile of positions by tile of positions, M_BTMM where queries are
// packed, else M_TMM head by head; then masks, caps and sinks.

#include <algorithm>

#include "plena/compiler/block_maxima.h"

namespace plena {

namespace {

class BlockScores {
 public:
  BlockScores(const BlockContext& context, const AttentionOp& op)
      : context_(context),
        e_(context.emitter),
        op_(op),
        layout_(context.tiled.heads),
        packing_(context.block.packing),
        vlen_(context.settings.vlen) {}

  void emit() const {
    const RegionScope region(e_, "scores");
    start();
    multiply();
    if (op_.score_cap != 0) cap();
    mask();
    if (op_.window != 0) mask_window();
    if (op_.sinks) write_sinks();
  }

  void start() const {
    if (isolated()) isolate_queries();
    if (BlockMaxima::serve(context_, op_)) BlockMaxima::start(context_);
  }
  void multiply(Gp tile) const {
    if (packing_.empty()) {
      multiply_heads(tile);
    } else if (BlockMaxima::serve(context_, op_)) {
      multiply_beside_maxima(tile);
    } else {
      multiply_families(tile);
    }
  }

  void cap() const {
    e_.comment("soft cap");
    HeldGp score(e_, "scores");
    HeldGp end(e_, "end of the scores");
    e_.set(score, first_scores(context_), "scores");
    load_kept(context_, end, context_.block.score_end, "end of the scores");
    WalkLoop rows(e_, score, end, "rows of scores");
    emit_scaled_tanh(context_, score, score, op_.score_cap);
    e_.advance(score, vlen_);
  }

  // Before the first tile: each head's sink in the first lane, nothing in the others.
  void write_sinks() const {
    e_.comment("sinks as the scores of one more position");
    HeldGp score(e_, "rows of the sink");
    HeldGp lane(e_, "first lane");
    e_.set(score, context_.row(context_.block.scores), "rows of sinks");
    e_.set(lane, context_.row(context_.block.first_lane), "first lane");
    HeldGp sink(e_, "sink");
    load_kept(context_, sink, context_.plan.sinks_at, "sinks of this tile's heads");
    if (packing_.empty()) {
      Loop heads(e_, layout_.heads_per_tile(), "heads");
      write_sink(score, lane, sink, 0);
      return e_.advance(sink, 1);
    }
    Loop families(e_, packing_.families, "families");
    for (const QueryPacking::Head& head : packing_.heads) {
      write_sink(score, lane, sink, std::uint64_t{head.slot} * layout_.groups + head.group);
    }
    e_.advance(sink, std::uint64_t{packing_.family_kv_heads} * layout_.groups);
  }

 private:
  [[nodiscard]] bool isolated() const { return layout_.slots > 1 && packing_.empty(); }
  [[nodiscard]] std::uint64_t stride() const { return score_stride(context_); }

  // heads[slot][group] = query rows of the group, in the lanes of the slot only.
  void isolate_queries() const {
    e_.comment("each head's queries alone in rows");
    HeldGp head(e_, "head");
    HeldGp selector(e_, "selector");
    e_.set(head, context_.rows(context_.block.heads), "queries head by head");
    e_.set(selector, context_.row(context_.plan.selectors, 1), "slot selectors");
    Loop slots(e_, layout_.slots, "slots");
    {
      HeldGp query(e_, "query");
      load_kept(context_, query, context_.plan.queries_at, "queries of this tile");
      const std::uint64_t rows = std::uint64_t{layout_.groups} * context_.block.tokens;
      const std::uint64_t copies = abreast(rows, kRowsAbreast);
      Loop loop(e_, rows / copies, "query rows");
      for (std::uint64_t i = 0; i < copies; ++i) {
        e_.emit(Op::V_MUL_VV, {head, query, selector, kAllLanes});
        e_.advance(head, vlen_);
        e_.advance(query, vlen_);
      }
    }
    e_.advance(selector, vlen_);
  }

  void multiply() const {
    {
      HeldGp score(e_, "scores");
      e_.set(score, first_scores(context_), "scores");
      keep(context_, score, context_.block.score_at);
    }
    walk_cache(context_, op_, 0, [&](Gp tile) {
      multiply(tile);
      advance_kept(context_, context_.block.score_at, stride());
    });
    HeldGp end(e_, "end of the scores");
    load_kept(context_, end, context_.block.score_at, "end of the scores");
    keep(context_, end, context_.block.score_end);
  }

  void multiply_heads(Gp tile) const {
    HeldGp x(e_, "queries of the head");
    HeldGp y(e_, "scores of the head");
    if (isolated()) {
      e_.set(x, context_.rows(context_.block.heads), "queries head by head");
    } else {
      load_kept(context_, x, context_.plan.queries_at, "queries of this tile");
    }
    load_kept(context_, y, context_.block.score_at, "scores of the tile");
    Loop heads(e_, layout_.heads_per_tile(), "heads");
    emit_tile_product(context_, {.x = x, .tile = tile, .y = y, .inputs = layout_.span});
    if (layout_.span > 1) e_.advance(x, (layout_.span - 1) * context_.tile_rows());
  }

  // The same; while the array works, the scores of the tile before raise their maxima.
  void multiply_beside_maxima(Gp tile) const {
    const BlockMaxima maxima(context_);
    const std::uint64_t products = std::uint64_t{packing_.families} * packing_.packs;
    // The array takes four times as long for the products of a row's heads as for their write-out.
    const std::uint64_t stretch = maxima.groups() / (5 * products);
    std::uint64_t written = 0;
    for (std::uint64_t i = 0; i < products; ++i) {
      const std::uint64_t pack = i % packing_.packs;
      if (i != 0 && pack == 0) e_.advance(tile, context_.settings.hlen, "next family");
      {
        HeldGp x(e_, "packed queries");
        load_kept(context_, x, context_.plan.queries_at, "queries of this tile");
        if (i != 0) e_.advance(x, i * context_.tile_rows());
        e_.emit(Op::M_BTMM, {tile, x});
      }
      maxima.raise(i + 1 == products ? maxima.groups() - (5 * products - 4) * stretch
                                     : 4 * stretch);
      {
        HeldGp y(e_, "scores of the row's heads");
        load_kept(context_, y, context_.block.score_at, "scores of the tile");
        if (written != 0) e_.advance(y, written);
        e_.emit(Op::M_BMM_WO, {y, 0});
      }
      maxima.raise(stretch);
      written += heads_of(pack) * context_.block.rows_per_head * vlen_;
    }
    if (packing_.families > 1) {
      e_.retreat(tile, (packing_.families - 1) * context_.settings.hlen, "first family");
    }
  }

  // Heads that a row of packed queries holds.
  [[nodiscard]] std::uint64_t heads_of(std::uint64_t pack) const {
    const std::uint64_t slots = context_.settings.mlen / context_.settings.hlen;
    return std::min(slots, packing_.heads.size() - pack * slots);
  }

  // The K lanes of each family by its packed rows, all heads of a row at once.
  void multiply_families(Gp tile) const {
    HeldGp x(e_, "packed queries");
    HeldGp y(e_, "scores of the row's heads");
    HeldGp lanes(e_, "K lanes of the family");
    load_kept(context_, x, context_.plan.queries_at, "queries of this tile");
    load_kept(context_, y, context_.block.score_at, "scores of the tile");
    e_.copy(lanes, tile);
    Loop families(e_, packing_.families, "families");
    for (std::uint64_t pack = 0; pack < packing_.packs; ++pack) {
      e_.emit(Op::M_BTMM, {lanes, x});
      e_.emit(Op::M_BMM_WO, {y, 0});
      e_.advance(x, context_.tile_rows());
      e_.advance(y, heads_of(pack) * context_.block.rows_per_head * vlen_);
    }
    e_.advance(lanes, context_.settings.hlen);
  }

  // Positions out of sight get a score so low that their weight is exactly 0.
  void mask() const {
    e_.comment("hide the positions to come");
    HeldGp score(e_, "scores of the last tile");
    {
      HeldGp t(e_, "distance");
      load_kept(context_, score, context_.block.score_end, "end of the scores");
      e_.set(t, stride());
      e_.emit(Op::S_SUB_INT, {score, score, t}, "scores of the last tile");
    }
    add_masks(score, context_.rows(context_.block.mask));
  }

  // Windows of the block begin in the tile before `edge` or in that one. Where those are not in
  // sight their masks fall on rows before or behind the scores.
  void mask_window() const {
    e_.comment("hide the positions before the window");
    const BlockWindow& window = context_.block.windows.at(op_.window);
    HeldGp score(e_, "scores of the tile");
    {
      HeldGp t(e_, "tiles, distance");
      load_kept(context_, score, window.edge, "tiles before the edge");
      load_kept(context_, t, window.first_tile, "tiles before the first");
      e_.emit(Op::S_SUB_INT, {score, score, t});
      e_.set(t, stride());
      e_.emit(Op::S_MUL_INT, {score, score, t});
      e_.advance(score, first_scores(context_) - stride(), "scores of the tile");
    }
    add_masks(score, context_.rows(window.masks));
    e_.advance(score, stride());
    add_masks(score, context_.rows(window.masks, 1));
  }

  // Adds a row of masks for each token to the scores of every head.
  void add_masks(Gp score, std::uint64_t masks) const {
    const std::uint64_t copies = abreast(context_.block.tokens, kRowsAbreast);
    const std::uint64_t head = context_.block.rows_per_head * vlen_;
    const RowsAbreast mask(context_, copies, "masks of the tokens");
    const RowsAbreast rows(context_, copies, "scores");
    HeldGp first(e_, "scores of the first head");
    mask.set(masks);
    e_.copy(first, score);
    Loop tokens(e_, context_.block.tokens / copies, "tokens");
    rows.set(first);
    unroll(e_, layout_.heads_per_tile(), kMostCopies / 2, "heads", [&](std::uint64_t heads, bool) {
      for (std::uint64_t h = 0; h < heads; ++h) {
        for (std::uint64_t i = 0; i < copies; ++i) {
          e_.emit(Op::V_ADD_VV, {rows[i], rows[i], mask[i], kAllLanes});
          e_.advance(rows[i], head);
        }
      }
    });
    mask.advance();
    e_.advance(first, copies * vlen_);
  }

  void write_sink(Gp score, Gp lane, Gp sink, std::uint64_t index) const {
    HeldFp value(e_, "sink");
    e_.emit(Op::S_LD_FP, {value, sink, index}, "sink");
    const std::uint64_t rows = context_.block.rows_per_head;
    const std::uint64_t copies = abreast(rows, kRowsAbreast);
    Loop loop(e_, rows / copies, "tokens");
    for (std::uint64_t i = 0; i < copies; ++i) {
      e_.emit(Op::V_ADD_VF, {score, lane, value, kAllLanes});
      e_.advance(score, vlen_);
    }
  }

  const BlockContext& context_;
  Emitter& e_;
  const AttentionOp& op_;
  const HeadLayout& layout_;
  const QueryPacking& packing_;
  std::uint64_t vlen_;
};

}  // namespace

void emit_block_scores(const BlockContext& context, const AttentionOp& op) {
  BlockScores(context, op).emit();
}

void start_tile_scores(const BlockContext& context, const AttentionOp& op) {
  const BlockScores scores(context, op);
  scores.start();
  if (op.sinks) scores.write_sinks();
}

void emit_tile_scores(const BlockContext& context, const AttentionOp& op, Gp tile) {
  const BlockScores scores(context, op);
  scores.multiply(tile);
  if (op.score_cap != 0) scores.cap();
}

}  // namespace plena
