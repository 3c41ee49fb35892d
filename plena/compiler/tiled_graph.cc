#include "plena/compiler/tiled_graph.h"

#include <algorithm>

#include <fmt/format.h>

namespace plena {

namespace {

// Weight tiles of one operator, experts not counted.
struct CountTiles {
  const TiledGraph& tiled;

  std::uint64_t operator()(const ProductOp& op) const {
    std::uint64_t outputs = 0;
    for (const MatrixUse& use : op.matrices) outputs += tiled.rows(use.outputs, use.width);
    return outputs * tiled.rows(op.from);
  }
  std::uint64_t operator()(const FeedForwardOp& op) const {
    return std::uint64_t{op.gated ? 2U : 1U} * tiled.rows(op.to) * tiled.rows(op.from);
  }
  std::uint64_t operator()(const ExpertsOp& op) const {
    return op.experts * tiled.expert_tiles(op);
  }
  template <class Other>
  std::uint64_t operator()(const Other&) const {
    return 0;
  }
};

void note_windows(const LayerKind& kind, std::vector<std::uint32_t>& windows) {
  for (const Operator& op : kind.operators) {
    const auto* attention = std::get_if<AttentionOp>(&op);
    if (attention == nullptr || attention->window == 0) continue;
    if (std::ranges::find(windows, attention->window) == windows.end()) {
      windows.push_back(attention->window);
    }
  }
}

const ExpertsOp* experts_of(const LayerKind& kind) {
  for (const Operator& op : kind.operators) {
    if (const auto* experts = std::get_if<ExpertsOp>(&op)) return experts;
  }
  return nullptr;
}

Status note_experts(const LayerKind& kind, TiledGraph& tiled) {
  const ExpertsOp* op = experts_of(kind);
  if (op == nullptr) return {};
  auto policy = router_policy(op->experts, op->chosen);
  if (!policy) return tl::unexpected(policy.error());
  if (tiled.experts != 0 && tiled.experts != op->experts) {
    return fail(ErrorCode::Unsupported, "layers with {} and with {} experts", tiled.experts,
                op->experts);
  }
  tiled.experts = op->experts;
  tiled.router = *policy;
  return {};
}

// How often layers from `first` on repeat the first `period` of them.
std::size_t repeats(const std::vector<Layer>& layers, std::size_t first, std::size_t period) {
  std::size_t at = first + period;
  while (at < layers.size() && layers[at].kind == layers[at - period].kind) ++at;
  return (at - first) / period;
}

LayerLoop loop_of(const std::vector<Layer>& layers, std::size_t first, std::size_t period,
                  std::size_t count) {
  LayerLoop loop;
  loop.count = static_cast<std::uint32_t>(count);
  for (std::size_t i = first; i < first + period; ++i) {
    if (loop.body.empty() || loop.body.back().kind != layers[i].kind) {
      loop.body.push_back({layers[i].kind, 0});
    }
    ++loop.body.back().layers;
  }
  return loop;
}

}  // namespace

Result<RouterPolicy> router_policy(std::uint32_t experts, std::uint32_t chosen) {
  constexpr RouterPolicy kPolicies[] = {{0, 32, 4}, {1, 128, 8}};
  for (const RouterPolicy& policy : kPolicies) {
    if (experts <= policy.lanes && chosen <= policy.picks) return policy;
  }
  return fail_with_hint(
      ErrorCode::Unsupported,
      fmt::format("V_TOPK picks 4 of 32 or 8 of 128, not {} of {} experts", chosen, experts),
      "such a model cannot be routed on this machine");
}

bool TiledGraph::attends() const {
  return std::ranges::any_of(graph->kinds, [](const LayerKind& kind) {
    return std::ranges::any_of(
        kind.operators, [](const Operator& op) { return std::holds_alternative<AttentionOp>(op); });
  });
}

bool TiledGraph::causal() const {
  if (graph->rows_in_order) return false;
  for (const LayerKind& kind : graph->kinds) {
    for (const Operator& op : kind.operators) {
      const auto* attention = std::get_if<AttentionOp>(&op);
      if (attention != nullptr && !attention->causal) return false;
    }
  }
  return true;
}

LaneMap TiledGraph::lanes(Layout layout, std::uint32_t width) const {
  const HeadShape& shape = graph->heads;
  const auto plain = plain_order(shape.head_dim);
  switch (layout) {
    case Layout::Dense:
      return dense_lanes(width, mlen);
    case Layout::Queries:
      return query_lanes(shape, heads, graph->head_order, mlen);
    case Layout::Outputs:
      return query_lanes(shape, heads, plain, mlen);
    case Layout::Keys:
      return key_lanes(shape, heads, graph->head_order, mlen);
    case Layout::Values:
      return key_lanes(shape, heads, plain, mlen);
    case Layout::Head:
      return head_lanes(heads, graph->head_order, mlen);
    case Layout::Gated: {
      LaneMap turns;
      const LaneMap half = dense_lanes(width, mlen);
      for (std::size_t tile = 0; tile < half.size(); tile += mlen) {
        const auto lanes_of_tile = std::span(half).subspan(tile, mlen);
        turns.insert(turns.end(), lanes_of_tile.begin(), lanes_of_tile.end());
        for (const std::uint32_t lane : lanes_of_tile) {
          turns.push_back(lane == kPadding ? kPadding : width + lane);
        }
      }
      return turns;
    }
    case Layout::Qkv:
      break;
  }
  LaneMap all = lanes(Layout::Queries, 0);
  std::uint32_t base = shape.heads * shape.head_dim;
  for (const Layout part : {Layout::Keys, Layout::Values}) {
    for (const std::uint32_t lane : lanes(part, 0)) {
      all.push_back(lane == kPadding ? kPadding : base + lane);
    }
    base += shape.kv_heads * shape.head_dim;
  }
  return all;
}

std::uint32_t TiledGraph::rows(Layout layout, std::uint32_t width) const {
  switch (layout) {
    case Layout::Dense:
      return tiles_of(width, mlen);
    case Layout::Queries:
    case Layout::Outputs:
      return heads.query_rows();
    case Layout::Keys:
    case Layout::Values:
      return heads.key_rows();
    case Layout::Head:
      return heads.span;
    case Layout::Gated:
      return 2 * tiles_of(width, mlen);
    case Layout::Qkv:
      return heads.query_rows() + 2 * heads.key_rows();
  }
  return 0;
}

std::uint32_t TiledGraph::first_row(const std::vector<VectorShape>& vectors, VectorId id) const {
  std::uint32_t row = 0;
  for (std::size_t i = 0; i < id; ++i) row += rows(vectors[i].layout, vectors[i].width);
  return row;
}

std::uint64_t TiledGraph::expert_tiles(const ExpertsOp& op) const {
  return CountTiles{*this}(op.up) + CountTiles{*this}(op.down);
}

std::uint64_t TiledGraph::tiles_of_layer(const LayerKind& kind) const {
  std::uint64_t tiles = 0;
  for (const Operator& op : kind.operators) tiles += std::visit(CountTiles{*this}, op);
  return tiles;
}

Result<TiledGraph> tile_graph(const Graph& graph, std::uint32_t mlen, std::uint32_t blen) {
  if (graph.dim == 0 || graph.vocab == 0 || graph.context == 0 || graph.layers.empty()) {
    return fail(ErrorCode::Unsupported, "every size of a model has to be at least 1");
  }
  TiledGraph tiled;
  tiled.graph = &graph;
  tiled.mlen = mlen;
  auto heads = lay_out_heads(graph.heads, mlen, blen, {graph.dim, graph.context});
  if (!heads) return forward_error(heads);
  tiled.heads = *heads;
  tiled.dim_tiles = tiles_of(graph.dim, mlen);
  tiled.context_tiles = tiles_of(graph.context, mlen);
  tiled.vector_rows = tiled.all_rows(graph.ending.vectors);
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    if (id != graph.logits) tiled.most_inputs = std::max(tiled.most_inputs, tiled.rows(id));
  }
  tiled.weight_tiles = tiled.constant_tiles() + tiled.tiles_of_layer(graph.ending);
  for (const LayerKind& kind : graph.kinds) {
    tiled.vector_rows = std::max(tiled.vector_rows, tiled.all_rows(kind.vectors));
    tiled.expert_rows = std::max(tiled.expert_rows, tiled.all_rows(kind.expert_vectors));
    if (auto noted = note_experts(kind, tiled); !noted) return tl::unexpected(noted.error());
    note_windows(kind, tiled.windows);
    for (const Operator& op : kind.operators) {
      const auto* experts = std::get_if<ExpertsOp>(&op);
      const auto* layer = experts != nullptr ? &experts->up : std::get_if<FeedForwardOp>(&op);
      if (layer != nullptr)
        tiled.hidden_tiles = std::max(tiled.hidden_tiles, tiled.rows(layer->to));
    }
  }
  for (const Layer& layer : graph.layers) {
    tiled.weight_tiles += tiled.tiles_of_layer(graph.kinds[layer.kind]);
  }
  return tiled;
}

std::vector<LayerLoop> layer_loops(const std::vector<Layer>& layers) {
  std::vector<LayerLoop> loops;
  for (std::size_t first = 0; first < layers.size();) {
    std::size_t best_period = 1;
    std::size_t best_count = repeats(layers, first, 1);
    for (std::size_t period = 2; 2 * period <= layers.size() - first; ++period) {
      const std::size_t count = repeats(layers, first, period);
      if (count > 1 && count * period > best_count * best_period) {
        best_period = period;
        best_count = count;
      }
    }
    loops.push_back(loop_of(layers, first, best_period, best_count));
    first += best_period * best_count;
  }
  return loops;
}

}  // namespace plena
