// Rotary embedding of a block: x cos + P x sin as for one token, P x of all tokens by M_MM.

#include "plena/compiler/block_kernels.h"

namespace plena {

namespace {

// BLEN lanes of packed query rows that any head lies in; the others stay 0.
std::vector<std::uint64_t> lanes_in_use(const BlockContext& context) {
  std::vector<std::uint64_t> places(context.settings.mlen / context.settings.blen, kNoPlace);
  const HeadLayout& heads = context.tiled.heads;
  for (std::uint32_t row = 0; row < heads.query_rows(); ++row) {
    for (std::uint32_t lane = 0; lane < context.settings.mlen; lane += context.settings.blen) {
      const auto place =
          packed_place(context.block.packing, context.tiled, context.settings, row, lane);
      if (place) places[place->lane / context.settings.blen] = place->lane;
    }
  }
  return places;
}

// Turns rows of all tokens, `span` to a head.
class BlockTurn {
 public:
  // `rotated` is where P x waits.
  BlockTurn(const BlockContext& context, const RotateOp& op, const Block& rotated)
      : context_(context),
        e_(context.emitter),
        span_(context.tiled.heads.span),
        vlen_(context.settings.vlen),
        rotated_(context.rows(rotated)),
        first_angle_(context.row(context.block.position_rows, 2 * op.table * span_)) {}

  // `rows` rows of heads from address `first` on.
  void emit(std::uint64_t first, std::uint64_t rows, std::span<const std::uint64_t> places) const {
    HeldGp x(e_, "q, k");
    std::optional<HeldGp> angles;
    if (span_ > 1) angles.emplace(e_, "cosines of the first token");
    e_.set(x, first, "q, k");
    Loop heads(e_, rows / span_, "heads");
    if (angles) e_.set(*angles, first_angle_, "cosines");
    Loop loop(e_, span_, "rows of a head");
    swap_lanes(x, places);
    HeldGp cosines(e_, "cosines");
    if (angles) {
      e_.copy(cosines, *angles);
    } else {
      e_.set(cosines, first_angle_, "cosines");
    }
    turn(x, cosines);
    if (angles) e_.advance(*angles, vlen_);
  }

 private:
  // rotated = P x of all tokens; moves x on behind them.
  void swap_lanes(Gp x, std::span<const std::uint64_t> places) const {
    HeldGp tile(e_, "permutation");
    HeldGp swapped(e_, "P x");
    e_.set(tile, context_.tile(context_.plan.rotation), "P");
    e_.set(swapped, rotated_, "P x");
    emit_tile_product(context_,
                      {.x = x, .tile = tile, .y = swapped, .transposed = false, .places = places});
  }

  // x = x cos + swapped sin for the rows before `end`, those of all tokens.
  void turn(Gp end, Gp cosines) const {
    const std::uint64_t stored = context_.tables.positions.stored_rows() * vlen_;
    const std::uint64_t tokens = context_.block.tokens;
    // A head of several rows has loops and pointers of its own.
    const std::uint64_t copies = abreast(tokens, span_ > 1 ? 2 : kRowsAbreast);
    HeldGp sines(e_, "sines");
    e_.offset(sines, cosines, span_ * vlen_, "sines");
    const RowsAbreast rows(context_, copies, "q, k");
    {
      HeldGp first(e_, "q, k");
      e_.copy(first, end);
      e_.retreat(first, context_.tile_rows(), "first token's");
      rows.set(first);
    }
    const RowsAbreast swapped(context_, copies, "P x");
    swapped.set(rotated_);
    Loop loop(e_, tokens / copies, "tokens");
    for (std::uint64_t i = 0; i < copies; ++i) {
      e_.emit(Op::V_MUL_VV, {rows[i], rows[i], cosines, kAllLanes});
      e_.emit(Op::V_MUL_VV, {swapped[i], swapped[i], sines, kAllLanes});
      e_.advance(cosines, stored);
      e_.advance(sines, stored);
    }
    for (std::uint64_t i = 0; i < copies; ++i) {
      e_.emit(Op::V_ADD_VV, {rows[i], rows[i], swapped[i], kAllLanes});
    }
    rows.advance();
    swapped.advance();
  }

  const BlockContext& context_;
  Emitter& e_;
  std::uint64_t span_;
  std::uint64_t vlen_;
  std::uint64_t rotated_;      // address of the first row of P x
  std::uint64_t first_angle_;  // address of the first token's cosines
};

}  // namespace

void emit_block_rotation(const BlockContext& context, const RotateOp& op) {
  const RegionScope region(context.emitter, "rope");
  const HeadLayout& heads = context.tiled.heads;
  const BlockTurn turn(context, op, context.block.rotated);
  if (context.block.packing.empty()) {
    return turn.emit(context.rows(op.qkv), std::uint64_t{heads.query_rows()} + heads.key_rows(),
                     {});
  }
  turn.emit(context.rows(op.qkv), context.block.query_rows, lanes_in_use(context));
  const LaneMap keys = context.tiled.lanes(Layout::Keys, 0);
  const BlockTurn turn_keys(context, op, context.block.rotated_keys);
  turn_keys.emit(context.rows(op.qkv, context.block.query_rows), heads.key_rows(),
                 places_in_use(context, std::span(keys).first(context.tiled.mlen)));
}

void emit_block_soft_cap(const BlockContext& context, const SoftCapOp& op) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "soft_cap");
  HeldGp x(e, "row");
  e.set(x, context.rows(op.value), "rows to cap");
  Loop loop(e, context.tiled.rows(op.value) * std::uint64_t{context.block.tokens}, "rows");
  emit_scaled_tanh(context, x, x, op.cap);
  e.advance(x, context.settings.vlen);
}

}  // namespace plena
