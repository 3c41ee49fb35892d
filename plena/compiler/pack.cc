#include "plena/compiler/pack.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <utility>

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

// Adds the weights of one operator after the other, an output tile a piece.
class LayerPacker {
 public:
  LayerPacker(TensorPieces& stream, const TiledGraph& tiled) : stream_(stream), tiled_(tiled) {}

  void add(const LayerKind& kind, const Layer& layer) {
    layer_ = &layer;
    for (const Operator& op : kind.operators) std::visit(*this, op);
  }

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
  using SharedLanes = std::shared_ptr<const LaneMap>;

  // Layers that are alike share their lanes.
  SharedLanes lanes(Layout layout, std::uint32_t width) {
    SharedLanes& lanes = lanes_[{layout, width}];
    if (lanes == nullptr) lanes = std::make_shared<const LaneMap>(tiled_.lanes(layout, width));
    return lanes;
  }
  SharedLanes lanes(ValueId id) {
    const Value& value = tiled_.graph->values[id];
    return lanes(value.layout, value.width);
  }

  void append(const ProductOp& op, std::uint32_t expert) {
    const SharedLanes inputs = lanes(op.from);
    for (const MatrixUse& use : op.matrices) {
      const SharedLanes outputs = lanes(use.outputs, use.width);
      for (std::size_t tile = 0; tile < outputs->size() / tiled_.mlen; ++tile) {
        append_tile(use.role, expert, outputs, inputs, tile);
      }
    }
  }

  // Gate and up tile by tile in turn.
  void append(const FeedForwardOp& op, std::uint32_t expert) {
    const SharedLanes inputs = lanes(op.from);
    const SharedLanes outputs = lanes(op.to);
    for (std::uint32_t tile = 0; tile < tiled_.rows(op.to); ++tile) {
      if (op.gated) append_tile(MatrixRole::Gate, expert, outputs, inputs, tile);
      append_tile(MatrixRole::Up, expert, outputs, inputs, tile);
    }
  }

  void append_tile(MatrixRole role, std::uint32_t expert, const SharedLanes& outputs,
                   const SharedLanes& inputs, std::size_t tile) {
    const Matrix& matrix = layer_->matrices.at(role)[expert];
    stream_.add(inputs->size() * tiled_.mlen,
                [&matrix, outputs, inputs, tile, mlen = tiled_.mlen](Quantiser& to) {
                  append_tiles(to, {matrix, *outputs, *inputs}, mlen, tile, 1);
                });
  }

  TensorPieces& stream_;
  const TiledGraph& tiled_;
  const Layer* layer_ = nullptr;
  std::map<std::pair<Layout, std::uint32_t>, SharedLanes> lanes_;
};

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

TensorPieces pack_weights(const TiledGraph& tiled, LayerRange layers, DataType type,
                          ScaleRule scales) {
  const Graph& graph = *tiled.graph;
  TensorPieces stream{.type = type, .scales = scales};
  if (layers.first == 0) {
    if (tiled.rotates()) {
      stream.add(tiled.tile_elements(),
                 [mlen = tiled.mlen](Quantiser& to) { append_rotation(to, mlen); });
    }
    stream.add(tiled.tile_elements(),
               [mlen = tiled.mlen](Quantiser& to) { append_ones(to, mlen); });
    stream.add(tiled.tile_elements(),
               [&tiled](Quantiser& to) { append_spread(to, tiled.heads, tiled.mlen); });
  }
  LayerPacker packer(stream, tiled);
  for (std::size_t i = layers.first; i < layers.end; ++i) {
    if (i == graph.layers.size()) {
      packer.add(graph.ending, graph.ending_tensors);
    } else {
      packer.add(graph.kinds[graph.layers[i].kind], graph.layers[i]);
    }
  }
  return stream;
}

TensorPieces pack_embedding(const TiledGraph& tiled, DataType type, ScaleRule scales) {
  constexpr std::uint32_t kTokens = 64;  // of a piece
  const Graph& graph = *tiled.graph;
  const std::size_t width = std::size_t{tiled.dim_tiles} * tiled.mlen;
  // Rows in order lie tile by tile, others token by token.
  const std::size_t parts = graph.rows_in_order ? tiled.dim_tiles : 1;
  const std::size_t part = width / parts;
  TensorPieces stream{.type = type, .scales = scales};
  for (std::size_t start = 0; start < width; start += part) {
    for (std::uint32_t first = 0; first < graph.vocab; first += kTokens) {
      const std::uint32_t count = std::min(kTokens, graph.vocab - first);
      stream.add(count * part, [&graph, first, count, width, start, part](Quantiser& to) {
        std::vector<float> row(width, 0.0F);
        for (std::uint32_t token = first; token < first + count; ++token) {
          graph.tokens.read_row(token, std::span(row).first(graph.dim));
          to.append(std::span<const float>(row).subspan(start, part));
        }
      });
    }
  }
  return stream;
}

TensorPieces pack_constants(const TiledGraph& tiled, DataType type, float lowest) {
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
  TensorPieces stream{.type = type};
  stream.add(places.count * mlen, [rows = std::move(rows)](Quantiser& to) { to.append(rows); });
  return stream;
}

TableContents position_rows(const TiledGraph& tiled) {
  const Graph& graph = *tiled.graph;
  const std::size_t angle_rows = 2 * std::size_t{tiled.heads.span};
  const std::uint32_t learned = graph.positions ? tiled.dim_tiles : 0;
  return {.name = "the cosines and sines of rotary embedding",
          .entries = std::uint64_t{tiled.context_tiles} * tiled.mlen,
          .rows = static_cast<std::uint32_t>(angle_rows * graph.rotary.size()) + learned,
          .fill = [&tiled, &graph, angle_rows](std::uint64_t position, std::span<double> rows) {
            for (const RotaryTable& rotary : graph.rotary) {
              fill_angles(tiled, rotary, position, rows.first(angle_rows * tiled.mlen));
              rows = rows.subspan(angle_rows * tiled.mlen);
            }
            if (!graph.positions || position >= graph.context) return;
            std::vector<float> row(graph.dim);
            graph.positions->read_row(position, row);
            std::ranges::copy(row, rows.begin());
          }};
}

TableContents vector_rows(const TiledGraph& tiled) {
  const Graph& graph = *tiled.graph;
  return {.name = "biases and gains",
          .entries = graph.layers.size() + 1,
          .rows = tiled.vector_rows,
          .fill = [&tiled, &graph](std::uint64_t entry, std::span<double> rows) {
            const bool ending = entry == graph.layers.size();
            const Layer& layer = ending ? graph.ending_tensors : graph.layers[entry];
            const LayerKind& kind = ending ? graph.ending : graph.kinds[layer.kind];
            fill_vectors(tiled, kind.vectors, layer.vectors, rows);
          }};
}

TableContents expert_vector_rows(const TiledGraph& tiled) {
  const Graph& graph = *tiled.graph;
  return {.name = "biases of experts",
          .entries = std::uint64_t{tiled.experts} * graph.layers.size(),
          .rows = tiled.expert_rows,
          .fill = [&tiled, &graph](std::uint64_t entry, std::span<double> rows) {
            const Layer& layer = graph.layers[entry / tiled.experts];
            if (layer.expert_vectors.empty()) return;
            fill_vectors(tiled, graph.kinds[layer.kind].expert_vectors,
                         layer.expert_vectors[entry % tiled.experts], rows);
          }};
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
