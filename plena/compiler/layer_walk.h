// The layers of a model in order, as loops over those that compute alike.
#pragma once

#include "plena/compiler/kernels.h"

namespace plena {

/// What the program keeps of where a layer's tensors start moves on to the next layer's.
void advance_layer(const KernelContext& context);

/// Emits `layer(kind)` for each kind of layer where it stands in the loops over layers.
template <class EmitLayer>
void walk_layers(const KernelContext& context, EmitLayer&& layer) {
  const Graph& graph = *context.tiled.graph;
  const std::uint64_t counters = context.plan.layer_loops.first;
  for (const LayerLoop& pattern : layer_loops(graph.layers)) {
    OuterLoop patterns(context.emitter, pattern.count, counters, "pattern of layers");
    for (const LayerLoop::Run& run : pattern.body) {
      OuterLoop layers(context.emitter, run.layers, counters + 1, "layers");
      layer(graph.kinds[run.kind]);
    }
  }
}

}  // namespace plena
