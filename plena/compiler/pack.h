// The contents of HBM and FP_MEM: tensors of the graph in the order and shape the program reads.
#pragma once

#include <cstdint>
#include <vector>

#include "plena/base/error.h"
#include "plena/compiler/memory_plan.h"
#include "plena/compiler/row_table.h"
#include "plena/compiler/tiled_graph.h"
#include "plena/compiler/weight_stream.h"
#include "plena/numerics/scale_search.h"

namespace plena {

/// The weight stream: the permutation of RoPE, the layers' products with their experts behind, the
/// ending's.
QuantisedTensor pack_weights(const TiledGraph& tiled, DataType type, ScaleRule scales);

/// [vocab][dim tiles * mlen], or tile by tile where rows come in order: [dim tiles][vocab][mlen].
QuantisedTensor pack_embedding(const TiledGraph& tiled, DataType type, ScaleRule scales);

/// Zeros, slot selectors, lanes without experts, the mask and the triangle; see ConstantRows.
QuantisedTensor pack_constants(const TiledGraph& tiled, DataType type, float lowest);

/// Cosines and sines of every position for each table of the graph, and its learned embedding.
Result<RowTable> pack_positions(const TiledGraph& tiled, DataType hbm, ElementType sram);

/// Biases and gains of all layers and the ending: [layers + 1].
Result<RowTable> pack_vectors(const TiledGraph& tiled, DataType hbm, ElementType sram);

/// Biases of all experts: [layers * experts].
Result<RowTable> pack_expert_vectors(const TiledGraph& tiled, DataType hbm, ElementType sram);

/// Sinks in the order attention takes heads: [layers][K tile][slot][group].
std::vector<float> pack_sinks(const TiledGraph& tiled);

}  // namespace plena
