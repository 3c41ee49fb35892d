#include "plena/compiler/pack.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace plena {

namespace {

// x P with P x = (-x1, x0, -x3, x2, ...): row k of the tile says where element k goes.
void append_rotation(Quantiser& stream, std::uint32_t mlen) {
  std::vector<float> row(mlen);
  for (std::uint32_t k = 0; k < mlen; ++k) {
    const std::uint32_t partner = k ^ 1U;
    row[partner] = k % 2 == 0 ? 1.0F : -1.0F;
    stream.append(row);
    row[partner] = 0.0F;
  }
}

// Every element 1: a product with it adds up lanes.
void append_ones(Quantiser& stream, std::uint32_t mlen) {
  const std::vector<float> row(mlen, 1.0F);
  for (std::uint32_t k = 0; k < mlen; ++k) stream.append(row);
}

// Takes the first lane of each slot of heads to all of its lanes, that of the first slot also to
// the lanes without one.
void append_spread(Quantiser& stream, const HeadLayout& heads, std::uint32_t mlen) {
  const auto source = [&](std::uint32_t lane) {
    const std::uint32_t slot = lane / heads.head_lanes;
    return slot < heads.slots ? slot * heads.head_lanes : 0;
  };
  std::vector<float> row(mlen);
  for (std::uint32_t k = 0; k < mlen; ++k) {
    for (std::uint32_t lane = 0; lane < mlen; ++lane) row[lane] = source(lane) == k ? 1.0F : 0.0F;
    stream.append(row);
  }
}

// Appends the weights of one operator after the other.
class LayerPacker {
 public:
  LayerPacker(Quantiser& stream, const TiledGraph& tiled, const Layer& layer)
      : stream_(stream), tiled_(tiled), layer_(layer) {}

  void operator()(const ProductOp& op) { append(op, 0); }
  void operator()(const FeedForwardOp& op) { append(op, 0); }
  void operator()(const ExpertsOp& op) {
    for (std::uint32_t expert = 0; expert < op.experts; ++expert) {
      append(op.up, expert);
      append(op.down, expert);
    }
  }
  template <class Other>
  void operator()(const Other&) {}

 private:
  [[nodiscard]] const Matrix& matrix(MatrixRole role, std::uint32_t expert) const {
    return layer_.matrices.at(role)[expert];
  }

  void append(const ProductOp& op, std::uint32_t expert) {
    const LaneMap inputs = tiled_.lanes(op.from);
    for (const MatrixUse& use : op.matrices) {
      const LaneMap outputs = tiled_.lanes(use.outputs, use.width);
      append_tiles(stream_, {matrix(use.role, expert), outputs, inputs}, tiled_.mlen);
    }
  }

  // Gate and up tile by tile in turn.
  void append(const FeedForwardOp& op, std::uint32_t expert) {
    const LaneMap inputs = tiled_.lanes(op.from);
    const LaneMap outputs = tiled_.lanes(op.to);
    for (std::uint32_t tile = 0; tile < tiled_.rows(op.to); ++tile) {
      for (const MatrixRole role : {MatrixRole::Gate, MatrixRole::Up}) {
        if (role == MatrixRole::Gate && !op.gated) continue;
        append_tiles(stream_, {matrix(role, expert), outputs, inputs}, tiled_.mlen, tile, 1);
      }
    }
  }

  Quantiser& stream_;
  const TiledGraph& tiled_;
  const Layer& layer_;
};

void append_layer(Quantiser& stream, const TiledGraph& tiled, const LayerKind& kind,
                  const Layer& layer) {
  LayerPacker packer(stream, tiled, layer);
  for (const Operator& op : kind.operators) std::visit(packer, op);
}

// Cosines and sines of one position, `span` rows each.
void fill_angles(const TiledGraph& tiled, const RotaryTable& rotary, std::uint64_t position,
                 std::span<double> rows) {
  const HeadLayout& heads = tiled.heads;
  const std::uint32_t mlen = tiled.mlen;
  const std::uint32_t head_dim = tiled.graph->heads.head_dim;
  const std::size_t sines = std::size_t{heads.span} * mlen;
  for (std::uint32_t lane = 0; lane < heads.span * mlen; ++lane) {
    const std::uint32_t element = heads.span > 1 ? lane : lane % heads.head_lanes;
    if (element >= head_dim) continue;
    const std::size_t pair = element / 2;
    const bool turns = pair < rotary.inverse_frequency.size();
    const double angle = turns ? static_cast<double>(position) * rotary.inverse_frequency[pair] : 0;
    const double magnitude = turns ? rotary.attention_factor : 1;
    rows[lane] = magnitude * std::cos(angle);
    rows[sines + lane] = magnitude * std::sin(angle);
  }
}

// Rows of the vectors of a layer or an expert.
void fill_vectors(const TiledGraph& tiled, const std::vector<VectorShape>& shapes,
                  const std::vector<std::vector<float>>& vectors, std::span<double> rows) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    for (const std::uint32_t lane : tiled.lanes(shapes[i].layout, shapes[i].width)) {
      if (lane < vectors[i].size()) rows[at] = static_cast<double>(vectors[i][lane]);
      ++at;
    }
  }
}

}  // namespace

QuantisedTensor pack_weights(const TiledGraph& tiled, DataType type, ScaleRule scales) {
  const Graph& graph = *tiled.graph;
  Quantiser stream(type, scales);
  if (tiled.rotates()) append_rotation(stream, tiled.mlen);
  append_ones(stream, tiled.mlen);
  append_spread(stream, tiled.heads, tiled.mlen);
  for (const Layer& layer : graph.layers) {
    append_layer(stream, tiled, graph.kinds[layer.kind], layer);
  }
  append_layer(stream, tiled, graph.ending, graph.ending_tensors);
  return std::move(stream).finish();
}

QuantisedTensor pack_embedding(const TiledGraph& tiled, DataType type, ScaleRule scales) {
  const Graph& graph = *tiled.graph;
  std::vector<float> row(std::size_t{tiled.dim_tiles} * tiled.mlen, 0.0F);
  Quantiser stream(type, scales);
  const auto read = [&](std::uint32_t token) {
    graph.tokens.read_row(token, std::span(row).first(graph.dim));
    return std::span<const float>(row);
  };
  if (graph.rows_in_order) {
    for (std::size_t tile = 0; tile < tiled.dim_tiles; ++tile) {
      for (std::uint32_t token = 0; token < graph.vocab; ++token) {
        stream.append(read(token).subspan(tile * tiled.mlen, tiled.mlen));
      }
    }
    return std::move(stream).finish();
  }
  for (std::uint32_t token = 0; token < graph.vocab; ++token) stream.append(read(token));
  return std::move(stream).finish();
}

QuantisedTensor pack_constants(const TiledGraph& tiled, DataType type, float lowest) {
  const std::size_t mlen = tiled.mlen;
  const ConstantRows places = constant_rows(tiled);
  std::vector<float> rows(places.count * mlen, 0.0F);
  const auto at = [&](std::uint64_t row) {
    return rows.begin() + static_cast<std::ptrdiff_t>(row * mlen);
  };
  for (std::uint32_t slot = 0; slot < tiled.heads.slots; ++slot) {
    std::fill_n(at(1 + slot) + slot * tiled.heads.head_lanes, tiled.heads.head_lanes, 1.0F);
  }
  std::fill(at(places.router_padding) + tiled.experts,
            at(places.router_padding + places.router_rows), lowest);
  std::fill_n(at(places.mask + 1), 2 * mlen, lowest);
  for (std::size_t row = 0; places.triangle + row < places.count; ++row) {
    std::fill(at(places.triangle + row) + static_cast<std::ptrdiff_t>(row + 1),
              at(places.triangle + row + 1), lowest);
  }
  Quantiser stream(type);
  stream.append(rows);
  return std::move(stream).finish();
}

Result<RowTable> pack_positions(const TiledGraph& tiled, DataType hbm, ElementType sram) {
  const Graph& graph = *tiled.graph;
  const std::size_t angle_rows = 2 * std::size_t{tiled.heads.span};
  const std::uint32_t learned = graph.positions ? tiled.dim_tiles : 0;
  std::vector<float> row(graph.dim);
  const TableContents contents{
      .name = "the cosines and sines of rotary embedding",
      .entries = std::uint64_t{tiled.context_tiles} * tiled.mlen,
      .rows = static_cast<std::uint32_t>(angle_rows * graph.rotary.size()) + learned,
      .fill = [&](std::uint64_t position, std::span<double> rows) {
        for (const RotaryTable& rotary : graph.rotary) {
          fill_angles(tiled, rotary, position, rows.first(angle_rows * tiled.mlen));
          rows = rows.subspan(angle_rows * tiled.mlen);
        }
        if (!graph.positions) return;
        if (position >= graph.context) return;
        graph.positions->read_row(position, row);
        std::copy(row.begin(), row.end(), rows.begin());
      }};
  return make_row_table(contents, tiled.mlen, hbm, sram);
}

Result<RowTable> pack_vectors(const TiledGraph& tiled, DataType hbm, ElementType sram) {
  const Graph& graph = *tiled.graph;
  return make_row_table(
      {.name = "biases and gains",
       .entries = graph.layers.size() + 1,
       .rows = tiled.vector_rows,
       .fill =
           [&](std::uint64_t entry, std::span<double> rows) {
             const bool ending = entry == graph.layers.size();
             const Layer& layer = ending ? graph.ending_tensors : graph.layers[entry];
             const LayerKind& kind = ending ? graph.ending : graph.kinds[layer.kind];
             fill_vectors(tiled, kind.vectors, layer.vectors, rows);
           }},
      tiled.mlen, hbm, sram);
}

Result<RowTable> pack_expert_vectors(const TiledGraph& tiled, DataType hbm, ElementType sram) {
  const Graph& graph = *tiled.graph;
  return make_row_table({.name = "biases of experts",
                         .entries = std::uint64_t{tiled.experts} * graph.layers.size(),
                         .rows = tiled.expert_rows,
                         .fill =
                             [&](std::uint64_t entry, std::span<double> rows) {
                               const Layer& layer = graph.layers[entry / tiled.experts];
                               if (layer.expert_vectors.empty()) return;
                               fill_vectors(tiled, graph.kinds[layer.kind].expert_vectors,
                                            layer.expert_vectors[entry % tiled.experts], rows);
                             }},
                        tiled.mlen, hbm, sram);
}

std::vector<float> pack_sinks(const TiledGraph& tiled) {
  const Graph& graph = *tiled.graph;
  const HeadLayout& layout = tiled.heads;
  const LaneMap lanes = tiled.lanes(Layout::Outputs, 0);
  std::vector<float> sinks;
  for (const Layer& layer : graph.layers) {
    for (std::uint32_t tile = 0; tile < layout.tiles; ++tile) {
      for (std::uint32_t slot = 0; slot < layout.slots; ++slot) {
        for (std::uint32_t group = 0; group < layout.groups; ++group) {
          const std::size_t row = std::size_t{tile * layout.groups + group} * layout.span;
          const std::uint32_t element =
              lanes[row * tiled.mlen + std::size_t{slot} * layout.head_lanes];
          const std::size_t head = element / graph.heads.head_dim;
          sinks.push_back(head < layer.sinks.size() ? layer.sinks[head] : 0.0F);
        }
      }
    }
  }
  return sinks;
}

}  // namespace plena
