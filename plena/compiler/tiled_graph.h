// The graph with its tiles: how many rows each vector takes, which lanes hold which element, and
// how many weight tiles the operators read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plena/base/error.h"
#include "plena/compiler/graph.h"
#include "plena/compiler/tiling.h"

namespace plena {

/// Lanes that V_TOPK looks at: 4 of 32 or 8 of 128 (semantics 8).
struct RouterPolicy {
  std::uint32_t policy = 0;
  std::uint32_t lanes = 32;
  std::uint32_t picks = 4;
};

/// The narrowest policy that picks `chosen` of `experts`; an error where none does.
Result<RouterPolicy> router_policy(std::uint32_t experts, std::uint32_t chosen);

struct TiledGraph {
  const Graph* graph = nullptr;
  std::uint32_t mlen = 0;
  HeadLayout heads;
  std::uint32_t dim_tiles = 0;
  std::uint32_t context_tiles = 0;     // tiles of MLEN positions
  std::uint32_t vector_rows = 0;       // of the layer with the most vectors
  std::uint32_t expert_rows = 0;       // likewise of its experts'
  std::uint32_t experts = 0;           // of a layer; 0: none
  RouterPolicy router;                 // where there are experts
  std::uint32_t hidden_tiles = 0;      // of the widest feed-forward layer
  std::uint32_t most_inputs = 0;       // input tiles of the widest product
  std::uint64_t weight_tiles = 0;      // of the whole model, the permutation included
  std::vector<std::uint32_t> windows;  // widths of attention windows, each once

  [[nodiscard]] std::uint64_t tile_elements() const { return std::uint64_t{mlen} * mlen; }
  [[nodiscard]] bool causal() const;
  [[nodiscard]] bool attends() const;
  [[nodiscard]] bool rotates() const { return !graph->rotary.empty(); }
  /// Tiles before the weights: the permutation of RoPE where there is one, ones, and what takes the
  /// first lane of a slot to all of its lanes.
  [[nodiscard]] std::uint32_t constant_tiles() const { return rotates() ? 3 : 2; }
  /// Regions of K and V of one layer that hold the same positions.
  [[nodiscard]] std::uint32_t cache_regions() const { return 2 * heads.key_rows(); }

  [[nodiscard]] LaneMap lanes(Layout layout, std::uint32_t width) const;
  [[nodiscard]] std::uint32_t rows(Layout layout, std::uint32_t width) const;
  [[nodiscard]] std::uint32_t rows(const Value& value) const {
    return rows(value.layout, value.width);
  }
  [[nodiscard]] std::uint32_t rows(ValueId value) const { return rows(graph->values[value]); }
  [[nodiscard]] LaneMap lanes(ValueId value) const {
    return lanes(graph->values[value].layout, graph->values[value].width);
  }
  /// First row of a vector among those of its layer (or expert).
  [[nodiscard]] std::uint32_t first_row(const std::vector<VectorShape>& vectors, VectorId id) const;
  [[nodiscard]] std::uint32_t all_rows(const std::vector<VectorShape>& vectors) const {
    return first_row(vectors, vectors.size());
  }

  /// Tiles an expert of these operators takes.
  [[nodiscard]] std::uint64_t expert_tiles(const ExpertsOp& op) const;
  /// Weight tiles of one layer of a kind, its experts included.
  [[nodiscard]] std::uint64_t tiles_of_layer(const LayerKind& kind) const;
};

/// Lays the graph out for tiles of MLEN, heads on multiples of BLEN lanes. The graph outlives the
/// result.
Result<TiledGraph> tile_graph(const Graph& graph, std::uint32_t mlen, std::uint32_t blen = 1);

/// A loop over layers: its body, kinds with how many layers of each follow one another, `count`
/// times.
struct LayerLoop {
  struct Run {
    std::size_t kind = 0;
    std::uint32_t layers = 0;
  };
  std::uint32_t count = 1;
  std::vector<Run> body;
};

/// Layers in order as loops: the pattern that repeats farthest becomes one.
std::vector<LayerLoop> layer_loops(const std::vector<Layer>& layers);

/// The tiled graph as text: rows and lanes of the values, tiles of the operators, layer loops.
std::string describe(const TiledGraph& graph);

}  // namespace plena
