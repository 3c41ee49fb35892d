// Dense products: tiles of weights stream through Matrix SRAM once, in the order they are stored.

#include <algorithm>

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

class ProductLoops {
 public:
  ProductLoops(const KernelContext& context, const TiledProduct& product)
      : context_(context),
        e_(context.emitter),
        product_(product),
        vlen_(context.settings.vlen),
        tile_elements_(context.tiled.tile_elements()) {}

  void emit() {
    HeldGp y(e_, "output");
    std::optional<HeldGp> bias;
    e_.set(y, product_.outputs, "output");
    if (product_.bias) {
      bias.emplace(e_, "bias");
      e_.set(*bias, *product_.bias, "bias");
    }
    Loop over_outputs(e_, product_.output_tiles, "output tiles");
    if (context_.tokens == 1) {
      emit_streaming(y, bias);
    } else {
      emit_block(y, bias);
    }
    step(context_, y, vlen_, product_.output_tiles);
    if (bias) step(context_, *bias, vlen_, product_.output_tiles);
  }

 private:
  // An output tile of one token leaves the array: biased, added up or as it is.
  void write_out(Gp y, const std::optional<HeldGp>& bias, bool add) const {
    std::optional<HeldGp> partial;
    if (add) {
      partial.emplace(e_, "scratch");
      e_.set(*partial, context_.row(context_.plan.scratch), "scratch");
    }
    const Gp written = add ? Gp(*partial) : y;
    e_.emit(Op::M_MV_WO, {written, 0});
    if (bias) e_.emit(Op::V_ADD_VV, {written, written, *bias, kAllLanes});
    if (add) e_.emit(Op::V_ADD_VV, {y, y, written, kAllLanes});
  }

  // One token: every weight tile is used as it comes.
  void emit_streaming(Gp y, const std::optional<HeldGp>& bias) const {
    HeldGp x(e_, "input");
    HeldGp tile(e_, "tile");
    e_.set(x, product_.inputs, "input");
    e_.set(tile, context_.tile(context_.plan.stage), "tile in use");
    {
      Loop over_inputs(e_, product_.input_tiles, "input tiles");
      e_.emit(Op::H_PREFETCH_M, {tile, product_.stream, kWeightsBase, kContiguous, kWeights});
      e_.emit(Op::M_TMV, {x, tile});
      e_.advance(product_.stream, tile_elements_);
      step(context_, x, vlen_, product_.input_tiles);
    }
    write_out(y, bias, product_.add);
  }

  // A block: weight tiles are loaded as many at a time as there is room for, and used by all tokens
  // before the next ones come.
  void emit_block(Gp y, const std::optional<HeldGp>& bias) const {
    const std::uint64_t chunk = chunk_tiles();
    const std::uint64_t chunks = product_.input_tiles / chunk;
    HeldGp x(e_, "input");
    e_.set(x, product_.inputs, "input");
    emit_chunk(x, y, bias, product_.add, chunk);
    if (chunks == 1) return;
    Loop rest(e_, chunks - 1, "further input tiles");
    e_.advance(x, chunk * vlen_);
    emit_chunk(x, y, std::nullopt, true, chunk);
  }

  // The most input tiles that divide them all and fit.
  [[nodiscard]] std::uint64_t chunk_tiles() const {
    std::uint64_t chunk = std::min(product_.input_tiles, context_.plan.stage.count);
    while (product_.input_tiles % chunk != 0) --chunk;
    return chunk;
  }

  void emit_chunk(Gp x, Gp y, const std::optional<HeldGp>& bias, bool add,
                  std::uint64_t chunk) const {
    HeldGp tile(e_, "tile");
    {
      e_.set(tile, context_.tile(context_.plan.stage), "tiles in use");
      Loop load(e_, chunk, "input tiles");
      e_.emit(Op::H_PREFETCH_M, {tile, product_.stream, kWeightsBase, kContiguous, kWeights});
      e_.advance(product_.stream, tile_elements_);
      e_.advance(tile, tile_elements_);
    }
    HeldGp token_x(e_, "input of the token");
    HeldGp token_y(e_, "output of the token");
    e_.copy(token_x, x);
    e_.copy(token_y, y);
    Loop tokens(e_, context_.tokens, "tokens");
    e_.set(tile, context_.tile(context_.plan.stage), "tiles in use");
    {
      Loop inputs(e_, chunk, "input tiles");
      e_.emit(Op::M_TMV, {token_x, tile});
      e_.advance(token_x, vlen_);
      step(context_, tile, tile_elements_, chunk);
    }
    write_out(token_y, bias, add);
    e_.advance(token_y, product_.output_stride);
    if (chunk != product_.input_tiles) {
      e_.advance(token_x, (product_.input_tiles - chunk) * vlen_);
    }
  }

  const KernelContext& context_;
  Emitter& e_;
  const TiledProduct& product_;
  std::uint64_t vlen_;
  std::uint64_t tile_elements_;
};

}  // namespace

void emit_tiled_product(const KernelContext& context, const TiledProduct& product) {
  ProductLoops(context, product).emit();
}

void emit_product(const KernelContext& context, const LayerKind& kind, const ProductOp& op) {
  std::string name;
  std::uint64_t output_tiles = 0;
  for (const MatrixUse& use : op.matrices) {
    name += (name.empty() ? "" : "_") + std::string(matrix_role_name(use.role));
    output_tiles += context.tiled.rows(use.outputs, use.width);
  }
  const RegionScope region(context.emitter, name);
  TiledProduct product{.stream = context.weights,
                       .inputs = context.row(op.from),
                       .outputs = context.row(op.to),
                       .input_tiles = context.tiled.rows(op.from),
                       .output_tiles = output_tiles,
                       .output_stride = context.token_stride(op.to),
                       .add = op.add};
  if (op.bias) {
    product.bias =
        context.row(context.plan.vectors, context.tiled.first_row(kind.vectors, *op.bias));
  }
  emit_tiled_product(context, product);
}

}  // namespace plena
