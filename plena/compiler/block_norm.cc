// Norms of a block of tokens, a few of them side by side.

#include <deque>

#include "plena/compiler/block_kernels.h"

namespace plena {

namespace {

// The chains of a few rows: a scalar and a scratch row each.
struct Chains {
  Chains(const BlockContext& context, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      scales.emplace_back(context.emitter, "scale");
      squares.emplace_back(context.emitter, "square");
      context.emitter.set(squares.back(), context.row(context.block.scratch, i), "scratch");
    }
  }
  std::deque<HeldFp> scales;
  std::deque<HeldGp> squares;
  [[nodiscard]] std::size_t size() const { return scales.size(); }
};

void start_sums(const BlockContext& context, const Chains& chains, float epsilon) {
  for (const HeldFp& scale : chains.scales) {
    context.constants.load(context.emitter, scale, epsilon, "width * epsilon");
  }
}

void finish_sums(const BlockContext& context, const Chains& chains) {
  Emitter& e = context.emitter;
  for (const HeldFp& scale : chains.scales) e.emit(Op::S_SQRT_FP, {scale, scale});
  for (const HeldFp& scale : chains.scales) e.emit(Op::S_RECI_FP, {scale, scale});
}

// Runs `body(i)` for the row of each chain; moves the pointers from the first token's row of one
// tile to that of the next.
template <class Body>
void each_row(const BlockContext& context, const Chains& chains, std::initializer_list<Gp> pointers,
              Body&& body) {
  for (std::size_t i = 0; i < chains.size(); ++i) {
    body(i);
    for (const Gp pointer : pointers) context.emitter.advance(pointer, context.settings.vlen);
  }
  const std::uint64_t rest = context.tile_rows() - chains.size() * context.settings.vlen;
  for (const Gp pointer : pointers) context.emitter.advance(pointer, rest);
}

class BlockNorm {
 public:
  BlockNorm(const BlockContext& context, const LayerKind& kind, const NormOp& op)
      : context_(context),
        e_(context.emitter),
        kind_(kind),
        op_(op),
        tiles_(context.tiled.rows(op.from)),
        copies_(abreast(context.block.tokens, kRowsAbreast)) {}

  void emit() const {
    const std::uint64_t rows = copies_ * context_.settings.vlen;
    HeldGp x(e_, "input");
    HeldGp y(e_, "output");
    const Chains chains(context_, copies_);
    e_.set(x, context_.rows(op_.from), "input");
    e_.set(y, context_.rows(op_.to), "output");
    Loop tokens(e_, context_.block.tokens / copies_, "tokens");
    start_sums(context_, chains, op_.epsilon);
    sum_up_squares(x, chains);
    finish_sums(context_, chains);
    write(x, y, chains);
    e_.advance(x, rows);
    e_.advance(y, rows);
  }

 private:
  void sum_up_squares(Gp x, const Chains& chains) const {
    HeldGp row(e_, "row");
    e_.copy(row, x);
    Loop loop(e_, tiles_, "tiles");
    each_row(context_, chains, {row}, [&](std::size_t i) {
      e_.emit(Op::V_MUL_VV, {chains.squares[i], row, row, kAllLanes});
    });
    for (std::size_t i = 0; i < chains.size(); ++i) {
      e_.emit(Op::V_RED_SUM, {chains.scales[i], chains.squares[i]});
    }
  }

  // y = x * scale [* gain], added to what is there or not.
  void write(Gp x, Gp y, const Chains& chains) const {
    HeldGp from(e_, "input");
    HeldGp to(e_, "output");
    std::optional<HeldGp> gain;
    e_.copy(from, x);
    e_.copy(to, y);
    if (op_.gain) {
      gain.emplace(e_, "gain");
      e_.set(
          *gain,
          context_.row(context_.plan.vectors, context_.tiled.first_row(kind_.vectors, *op_.gain)),
          "gain");
    }
    Loop loop(e_, tiles_, "tiles");
    each_row(context_, chains, {from, to}, [&](std::size_t i) {
      const Gp scaled = op_.add ? Gp(chains.squares[i]) : Gp(to);
      e_.emit(Op::V_MUL_VF, {scaled, from, chains.scales[i], kAllLanes});
      if (gain) e_.emit(Op::V_MUL_VV, {scaled, scaled, *gain, kAllLanes});
      if (op_.add) e_.emit(Op::V_ADD_VV, {to, to, scaled, kAllLanes});
    });
    if (gain) e_.advance(*gain, context_.settings.vlen);
  }

  const BlockContext& context_;
  Emitter& e_;
  const LayerKind& kind_;
  const NormOp& op_;
  std::uint64_t tiles_;
  std::uint64_t copies_;
};

// RMSNorm of each head; heads that share a row are taken out of it one after the other.
class BlockHeadNorm {
 public:
  BlockHeadNorm(const BlockContext& context, const LayerKind& kind, const HeadNormOp& op)
      : context_(context),
        e_(context.emitter),
        op_(op),
        layout_(context.tiled.heads),
        vlen_(context.settings.vlen),
        copies_(abreast(context.block.tokens, kRowsAbreast)),
        gain_(context.row(context.plan.vectors, context.tiled.first_row(kind.vectors, op.gain))) {}

  void emit() const {
    const bool queries = op_.part == HeadPart::Queries;
    const std::uint64_t rows = queries ? layout_.query_rows() : layout_.key_rows();
    HeldGp x(e_, "head");
    e_.set(x, context_.rows(op_.qkv, queries ? 0 : context_.block.query_rows),
           queries ? "queries" : "keys");
    Loop heads(e_, rows / layout_.span, "rows");
    {
      const Chains chains(context_, copies_);
      Loop tokens(e_, context_.block.tokens / copies_, "tokens");
      if (layout_.slots > 1) {
        norm_slots(x, chains);
      } else {
        norm_rows(x, chains);
      }
      e_.advance(x, copies_ * vlen_);
    }
    if (layout_.span > 1) e_.advance(x, (layout_.span - 1) * context_.tile_rows());
  }

 private:
  // One head in `span` rows of its own.
  void norm_rows(Gp x, const Chains& chains) const {
    start_sums(context_, chains, op_.epsilon);
    HeldGp row(e_, "row");
    {
      e_.copy(row, x);
      Loop loop(e_, layout_.span, "rows of the head");
      each_row(context_, chains, {row}, [&](std::size_t i) {
        e_.emit(Op::V_MUL_VV, {chains.squares[i], row, row, kAllLanes});
      });
      for (std::size_t i = 0; i < chains.size(); ++i) {
        e_.emit(Op::V_RED_SUM, {chains.scales[i], chains.squares[i]});
      }
    }
    finish_sums(context_, chains);
    HeldGp gain(e_, "gain");
    e_.set(gain, gain_, "gain");
    e_.copy(row, x);
    Loop loop(e_, layout_.span, "rows of the head");
    each_row(context_, chains, {row}, [&](std::size_t i) {
      e_.emit(Op::V_MUL_VF, {row, row, chains.scales[i], kAllLanes});
      e_.emit(Op::V_MUL_VV, {row, row, gain, kAllLanes});
    });
    e_.advance(gain, vlen_);
  }

  [[nodiscard]] std::uint64_t scratch(std::uint64_t set) const {
    return context_.row(context_.block.scratch, set * kRowsAbreast);
  }
  // Runs `body(i)` for the row of each chain; moves the pointers on behind them.
  template <class Body>
  void each(const Chains& chains, std::initializer_list<Gp> pointers, Body&& body) const {
    for (std::size_t i = 0; i < chains.size(); ++i) {
      body(i);
      for (const Gp pointer : pointers) e_.advance(pointer, vlen_);
    }
  }

  // The heads of one row of each token.
  void norm_slots(Gp x, const Chains& chains) const {
    HeldGp selector(e_, "selector");
    HeldGp head(e_, "heads alone");
    HeldGp sum(e_, "normed heads");
    HeldGp row(e_, "row");
    e_.set(selector, context_.row(context_.plan.selectors), "zeros, slot selectors");
    e_.set(sum, scratch(2), "normed heads");
    each(chains, {sum},
         [&](std::size_t) { e_.emit(Op::V_ADD_VF, {sum, selector, kZeroFp, kAllLanes}, "zeros"); });
    {
      Loop slots(e_, layout_.slots, "slots");
      e_.advance(selector, vlen_);
      e_.copy(row, x);
      e_.set(head, scratch(1), "heads alone");
      each(chains, {head, row},
           [&](std::size_t) { e_.emit(Op::V_MUL_VV, {head, row, selector, kAllLanes}); });
      start_sums(context_, chains, op_.epsilon);
      e_.set(head, scratch(1), "heads alone");
      each(chains, {head}, [&](std::size_t i) {
        e_.emit(Op::V_MUL_VV, {chains.squares[i], head, head, kAllLanes});
      });
      each(chains, {},
           [&](std::size_t i) { e_.emit(Op::V_RED_SUM, {chains.scales[i], chains.squares[i]}); });
      finish_sums(context_, chains);
      e_.set(head, scratch(1), "heads alone");
      e_.set(sum, scratch(2), "normed heads");
      each(chains, {head}, [&](std::size_t i) {
        e_.emit(Op::V_MUL_VF, {head, head, chains.scales[i], kAllLanes});
      });
      e_.set(head, scratch(1), "heads alone");
      each(chains, {head, sum},
           [&](std::size_t) { e_.emit(Op::V_ADD_VV, {sum, sum, head, kAllLanes}); });
    }
    e_.set(selector, gain_, "gain");
    e_.set(sum, scratch(2), "normed heads");
    e_.copy(row, x);
    each(chains, {row, sum},
         [&](std::size_t) { e_.emit(Op::V_MUL_VV, {row, sum, selector, kAllLanes}); });
  }

  const BlockContext& context_;
  Emitter& e_;
  const HeadNormOp& op_;
  const HeadLayout& layout_;
  std::uint64_t vlen_;
  std::uint64_t copies_;
  std::uint64_t gain_;  // address of its first row
};

}  // namespace

void emit_block_norm(const BlockContext& context, const LayerKind& kind, const NormOp& op) {
  const RegionScope region(context.emitter, "rmsnorm");
  BlockNorm(context, kind, op).emit();
}

void emit_block_head_norm(const BlockContext& context, const LayerKind& kind,
                          const HeadNormOp& op) {
  const RegionScope region(context.emitter, "head_norm");
  BlockHeadNorm(context, kind, op).emit();
}

}  // namespace plena
