// Dense products: tiles of weights stream through Matrix SRAM once, in the order they are stored.

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

// An output tile leaves the array: biased, added up or as it is.
void emit_write_out(const KernelContext& context, Gp y, const std::optional<HeldGp>& partial,
                    const std::optional<HeldGp>& bias) {
  Emitter& e = context.emitter;
  const Gp written = partial ? Gp(*partial) : y;
  e.emit(Op::M_MV_WO, {written, 0});
  if (bias) e.emit(Op::V_ADD_VV, {written, written, *bias, kAllLanes});
  if (partial) e.emit(Op::V_ADD_VV, {y, y, *partial, kAllLanes});
}

}  // namespace

void emit_tiled_product(const KernelContext& context, const TiledProduct& product) {
  Emitter& e = context.emitter;
  const std::uint64_t vlen = context.settings.vlen;
  HeldGp x(e, "input");
  HeldGp y(e, "output");
  HeldGp tile(e, "tile");
  std::optional<HeldGp> partial;
  std::optional<HeldGp> bias;
  e.set(tile, context.tile(context.plan.stage), "tile in use");
  e.set(y, product.outputs, "output");
  if (product.add) {
    partial.emplace(e, "scratch");
    e.set(*partial, context.row(context.plan.scratch), "scratch");
  }
  if (product.bias) {
    bias.emplace(e, "bias");
    e.set(*bias, *product.bias, "bias");
  }
  if (product.input_tiles == 1) e.set(x, product.inputs, "input");
  Loop over_outputs(e, product.output_tiles, "output tiles");
  if (product.input_tiles > 1) e.set(x, product.inputs, "input");
  {
    Loop over_inputs(e, product.input_tiles, "input tiles");
    e.emit(Op::H_PREFETCH_M, {tile, product.stream, kWeightsBase, kContiguous, kWeights});
    e.emit(Op::M_TMV, {x, tile});
    e.advance(product.stream, context.tiled.tile_elements());
    step(context, x, vlen, product.input_tiles);
  }
  emit_write_out(context, y, partial, bias);
  step(context, y, vlen, product.output_tiles);
  if (bias) step(context, *bias, vlen, product.output_tiles);
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
                       .add = op.add};
  if (op.bias) {
    product.bias =
        context.row(context.plan.vectors, context.tiled.first_row(kind.vectors, *op.bias));
  }
  emit_tiled_product(context, product);
}

}  // namespace plena
