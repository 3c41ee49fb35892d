// The contents of HBM and FP_MEM: tensors of the graph in the order and shape the program reads.
#pragma once

#include <cstdint>
#include <vector>

#include "plena/compiler/memory_plan.h"
#include "plena/compiler/row_table.h"
#include "plena/compiler/tensor_pieces.h"
#include "plena/compiler/tiled_graph.h"
#include "plena/numerics/scale_search.h"

namespace plena {

/// Layers first … end - 1.
struct LayerRange {
  std::size_t first = 0;
  std::size_t end = 0;
};

/// The window of the weight stream that holds layers `layers`, the ending counted as the last one:
/// in front of the first layer the permutation of RoPE, then the products of each with their
/// experts behind. The graph outlives the pieces, here and below.
TensorPieces pack_weights(const TiledGraph& tiled, LayerRange layers, DataType type,
                          ScaleRule scales);

/// [vocab][dim tiles * mlen], or tile by tile where rows come in order: [dim tiles][vocab][mlen].
TensorPieces pack_embedding(const TiledGraph& tiled, DataType type, ScaleRule scales);

/// Zeros, slot selectors, lanes without experts, the mask and the triangle; see ConstantRows.
TensorPieces pack_constants(const TiledGraph& tiled, DataType type, float lowest);

/// Cosines and sines of every position for each table of the graph, and its learned embedding.
TableContents position_rows(const TiledGraph& tiled);

/// Biases and gains of all layers and the ending: [layers + 1].
TableContents vector_rows(const TiledGraph& tiled);

/// Biases of all experts: [layers * experts].
TableContents expert_vector_rows(const TiledGraph& tiled);

/// Sinks in the order attention takes heads: [layers][K tile][slot][group].
std::vector<float> pack_sinks(const TiledGraph& tiled);

}  // namespace plena
