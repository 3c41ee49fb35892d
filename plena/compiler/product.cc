// Dense products on the matrix-vector path: weights stream by, activations stay.

#include "plena/compiler/kernels.h"

namespace plena {

void emit_product(const KernelContext& context, const Block& inputs, std::uint64_t input_tiles,
                  const Block& outputs, std::uint64_t output_tiles, Destination destination) {
  Emitter& e = context.emitter;
  const std::uint64_t vlen = context.settings.vlen;
  HeldGp x(e, inputs.name);
  HeldGp y(e, outputs.name);
  HeldGp tile(e, "tile");
  HeldGp partial(e, "scratch");
  e.set(tile, context.tile(context.plan.stage), "tile in use");
  e.set(y, context.row(outputs), outputs.name);
  if (destination == Destination::AddTo)
    e.set(partial, context.row(context.plan.scratch), "scratch");
  if (input_tiles == 1) e.set(x, context.row(inputs), inputs.name);
  Loop over_outputs(e, output_tiles, "output tiles");
  if (input_tiles > 1) e.set(x, context.row(inputs), inputs.name);
  {
    Loop over_inputs(e, input_tiles, "input tiles");
    e.emit(Op::H_PREFETCH_M, {tile, context.weights, kWeightsBase, kContiguous, kWeights});
    e.emit(Op::M_MV, {x, tile});
    e.advance(context.weights, context.tiling.tile_elements());
    step(context, x, vlen, input_tiles);
  }
  if (destination == Destination::AddTo) {
    e.emit(Op::M_MV_WO, {partial, 0});
    e.emit(Op::V_ADD_VV, {y, y, partial, kAllLanes});
  } else {
    e.emit(Op::M_MV_WO, {y, 0});
  }
  step(context, y, vlen, output_tiles);
}

}  // namespace plena
