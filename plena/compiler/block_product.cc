// Dense products of a block of tokens. A step takes the tiles of one output tile, or a part of them
// where its inputs are too many; while the array works on them the next step's come into the other
// half of the pool.

#include <algorithm>
#include <string>
#include <vector>

#include "plena/compiler/block_kernels.h"
#include "plena/compiler/gated_silu.h"

namespace plena {

namespace {

struct BlockProduct {
  std::uint64_t inputs = 0;  // address of the first row
  std::uint64_t input_tiles = 0;
  std::uint64_t output_tiles = 0;      // of each of `outputs`
  std::vector<std::uint64_t> outputs;  // addresses of first rows; output tiles go there in turn
  std::optional<std::uint64_t> bias;   // address of its first row, in the order of the weights
  bool add = false;
  bool gated_silu = false;  // of the two outputs, into the first
};

class BlockProductLoops {
 public:
  BlockProductLoops(const BlockContext& context, const BlockProduct& product)
      : context_(context),
        e_(context.emitter),
        product_(product),
        vlen_(context.settings.vlen),
        tile_elements_(context.tiled.tile_elements()),
        slack_(context.settings.hbm_m_prefetch_amount / context.settings.mlen - 1) {
    const std::uint64_t pool = context.block.pool.count;
    part_ = product.input_tiles;
    while (part_ > 1 && (product.input_tiles % part_ != 0 || 2 * (part_ + slack_) > pool)) --part_;
    two_slots_ = 2 * (part_ + slack_) <= pool;
  }

  void emit() const {
    HeldGp current(e_, "slot in use");
    start(current);
    keep_address(product_.outputs[0], context_.block.product_output);
    if (product_.bias) keep_address(*product_.bias, context_.block.product_bias);
    {
      OuterLoop outputs(e_, product_.output_tiles, context_.block.product_counter.first,
                        "output tiles");
      for (const std::uint64_t output : product_.outputs) {
        const bool last = output == product_.outputs.back();
        const std::uint64_t offset = output - product_.outputs[0];
        if (last && product_.gated_silu) {
          emit_activated_tile(current, offset);
        } else {
          emit_output_tile(current, offset);
        }
      }
      advance(context_.block.product_output, context_.tile_rows());
    }
    finish();
  }

  // Output tiles whose BLEN outputs go to `places` behind the first output's rows.
  void emit_placed(std::span<const std::vector<std::uint64_t>> places) const {
    HeldGp current(e_, "slot in use");
    start(current);
    for (const std::vector<std::uint64_t>& columns : places) {
      HeldGp x(e_, "input");
      HeldGp y(e_, "output");
      e_.set(x, product_.inputs, "input");
      e_.set(y, product_.outputs[0], "output");
      step(current, x, y, columns);
    }
    finish();
  }

 private:
  [[nodiscard]] std::uint64_t slot(unsigned index) const {
    return (context_.block.pool.first + index * (part_ + slack_)) * tile_elements_;
  }

  void keep_address(std::uint64_t address, const Block& place) const {
    HeldGp at(e_, place.name);
    e_.set(at, address, place.name);
    keep(context_, at, place);
  }
  void advance(const Block& place, std::uint64_t amount) const {
    HeldGp at(e_, place.name);
    load_kept(context_, at, place, place.name);
    e_.advance(at, amount);
    keep(context_, at, place);
  }

  // The next step's tiles; moves `at` on.
  void load(Gp at) const {
    Loop loop(e_, part_, "tiles to load");
    e_.emit(Op::H_PREFETCH_M, {at, context_.weights, kWeightsBase, kContiguous, kWeights});
    e_.advance(context_.weights, tile_elements_);
    step_on(at);
  }
  void step_on(Gp at) const { plena::step(context_, at, tile_elements_, part_); }

  void start(Gp current) const {
    e_.set(current, slot(0), "slot in use");
    if (!two_slots_) return;
    HeldGp at(e_, "slot to fill");
    e_.copy(at, current);
    load(at);
  }
  void finish() const {
    if (!two_slots_) return;
    e_.retreat(context_.weights, part_ * tile_elements_, "the last step fetched the next tiles");
  }

  void swap(Gp to, Gp current) const {
    HeldGp both(e_, "both slots");
    e_.set(both, slot(0) + slot(1));
    e_.emit(Op::S_SUB_INT, {to, both, current}, "the other slot");
  }

  // y = the sum of one step's inputs; moves x and y on to the next tile's rows.
  void step(Gp current, Gp x, Gp y, std::span<const std::uint64_t> places = {}) const {
    step(current, x, {.x = x, .tile = current, .y = y, .inputs = part_, .places = places});
  }
  void step(Gp current, Gp x, const TileProduct& product) const {
    load_ahead(current);
    emit_tile_product(context_, product);
    if (part_ > 1) e_.advance(x, (part_ - 1) * context_.tile_rows());
    if (two_slots_) swap(current, current);
  }
  void load_ahead(Gp current) const {
    HeldGp at(e_, "slot to fill");
    if (two_slots_) {
      swap(at, current);
    } else {
      e_.copy(at, current);
    }
    load(at);
  }

  // The output tile `offset` elements behind the one that is kept.
  void emit_output_tile(Gp current, std::uint64_t offset) const {
    const std::uint64_t parts = product_.input_tiles / part_;
    HeldGp x(e_, "input");
    e_.set(x, product_.inputs, "input");
    emit_part(current, x, offset, product_.add);
    if (parts > 1) {
      Loop loop(e_, parts - 1, "parts of the inputs");
      emit_part(current, x, offset, true);
    }
    if (!product_.bias) return;
    add_up(offset, context_.block.product_bias);
    advance(context_.block.product_bias, vlen_);
  }

  // Up, and the activation of gate and up.
  void emit_activated_tile(Gp current, std::uint64_t offset) const {
    HeldGp x(e_, "input");
    HeldGp y(e_, "up");
    e_.set(x, product_.inputs, "input");
    set_output(y, offset);
    load_ahead(current);
    {
      const GatedSilu silu(context_, context_.block.product_output, y);
      emit_tile_product(context_, {.x = x,
                                   .tile = current,
                                   .tile_walks = true,
                                   .y = y,
                                   .inputs = part_,
                                   .beside = silu.steps()});
    }
    if (two_slots_) swap(current, current);
  }

  void emit_part(Gp current, Gp x, std::uint64_t offset, bool add) const {
    {
      HeldGp y(e_, "output");
      if (add) {
        e_.set(y, context_.rows(context_.block.partials), "partial sums");
      } else {
        set_output(y, offset);
      }
      step(current, x, y);
    }
    if (add) add_up(offset, std::nullopt);
  }

  void set_output(Gp y, std::uint64_t offset) const {
    load_kept(context_, y, context_.block.product_output, "output tile");
    if (offset != 0) e_.advance(y, offset);
  }

  // Every token's output += the row kept in `from`, or its partial sums.
  void add_up(std::uint64_t offset, const std::optional<Block>& from) const {
    const std::uint64_t tokens = context_.block.tokens;
    const std::uint64_t copies = abreast(tokens, kRowsAbreast);
    const RowsAbreast y(context_, copies, "outputs");
    y.load(context_, context_.block.product_output, offset);
    const RowsAbreast addend(context_, from ? 1 : copies, "addend");
    if (from) {
      addend.load(context_, *from);
    } else {
      addend.set(context_.rows(context_.block.partials));
    }
    Loop loop(e_, tokens / copies, "tokens");
    for (std::uint64_t i = 0; i < copies; ++i) {
      e_.emit(Op::V_ADD_VV, {y[i], y[i], addend[from ? 0 : i], kAllLanes});
    }
    y.advance();
    if (!from) addend.advance();
  }

  const BlockContext& context_;
  Emitter& e_;
  const BlockProduct& product_;
  std::uint64_t part_ = 1;  // input tiles of a step
  bool two_slots_ = false;
  std::uint64_t vlen_;
  std::uint64_t tile_elements_;
  std::uint64_t slack_;  // tiles that a transfer fetches too far
};

// For each row of the weights of q, k and v where its outputs go: queries among the packed rows,
// keys and values behind them, lanes of nobody nowhere.
std::vector<std::vector<std::uint64_t>> qkv_places(const BlockContext& context) {
  const TiledGraph& tiled = context.tiled;
  const std::uint32_t blen = context.settings.blen;
  std::vector<std::vector<std::uint64_t>> places;
  for (std::uint32_t row = 0; row < tiled.heads.query_rows(); ++row) {
    std::vector<std::uint64_t>& columns = places.emplace_back();
    for (std::uint32_t lane = 0; lane < tiled.mlen; lane += blen) {
      const auto place = packed_place(context.block.packing, tiled, context.settings, row, lane);
      columns.push_back(place ? place->row * context.tile_rows() + place->lane : kNoPlace);
    }
  }
  std::uint64_t row = context.block.query_rows;
  for (const Layout layout : {Layout::Keys, Layout::Values}) {
    const LaneMap lanes = tiled.lanes(layout, 0);
    for (std::size_t first = 0; first < lanes.size(); first += tiled.mlen, ++row) {
      auto& columns =
          places.emplace_back(places_in_use(context, std::span(lanes).subspan(first, tiled.mlen)));
      for (std::uint64_t& place : columns) {
        if (place != kNoPlace) place += row * context.tile_rows();
      }
    }
  }
  return places;
}

}  // namespace

void emit_block_product(const BlockContext& context, const LayerKind& kind, const ProductOp& op) {
  std::string name;
  std::uint64_t output_tiles = 0;
  for (const MatrixUse& use : op.matrices) {
    name += (name.empty() ? "" : "_") + std::string(matrix_role_name(use.role));
    output_tiles += context.tiled.rows(use.outputs, use.width);
  }
  const RegionScope region(context.emitter, name);
  BlockProduct product{.inputs = context.rows(op.from),
                       .input_tiles = context.tiled.rows(op.from),
                       .output_tiles = output_tiles,
                       .outputs = {context.rows(op.to)},
                       .add = op.add};
  const bool qkv = context.tiled.graph->values[op.to].layout == Layout::Qkv;
  if (qkv && !context.block.packing.empty()) {
    return BlockProductLoops(context, product).emit_placed(qkv_places(context));
  }
  if (op.bias) product.bias = bias_address(context, kind, op);
  BlockProductLoops(context, product).emit();
}

void emit_block_feed_forward(const BlockContext& context, const LayerKind& kind,
                             const FeedForwardOp& op) {
  const RegionScope region(context.emitter, "feed_forward");
  const std::uint64_t tiles = context.tiled.rows(op.to);
  const std::uint64_t vlen = context.settings.vlen;
  BlockProduct product{.inputs = context.rows(op.from),
                       .input_tiles = context.tiled.rows(op.from),
                       .output_tiles = tiles,
                       .outputs = {context.rows(context.block.gate)}};
  if (op.gated) product.outputs.push_back(context.rows(context.block.up));
  if (op.bias) {
    product.bias =
        context.row(context.plan.vectors, context.tiled.first_row(kind.vectors, *op.bias));
  }
  const bool silu = op.gated && op.activation.kind == Activation::Silu;
  if (silu && !op.bias && product.input_tiles == 1 && GatedSilu::fits(context.settings)) {
    product.outputs[0] = context.rows(op.to);
    product.gated_silu = true;
    BlockProductLoops(context, product).emit();
    const std::uint64_t last = tiles * context.tile_rows() - context.settings.blen * vlen;
    return GatedSilu::finish(context, product.outputs[0] + last, product.outputs[1] + last);
  }
  BlockProductLoops(context, product).emit();
  emit_activation(context, op.activation, op.gated,
                  {.count = tiles * context.block.tokens,
                   .gate = {context.rows(context.block.gate), vlen},
                   .up = {context.rows(context.block.up), vlen},
                   .to = {context.rows(op.to), vlen}});
}

}  // namespace plena
