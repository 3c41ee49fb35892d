// The stages between a model and its program as text, for people: the operator graph and its tiles.
#include <fmt/format.h>

#include "plena/compiler/graph.h"
#include "plena/compiler/tiled_graph.h"

namespace plena {

namespace {

std::string_view layout_name(Layout layout) {
  switch (layout) {
    case Layout::Dense:
      return "dense";
    case Layout::Queries:
      return "queries";
    case Layout::Outputs:
      return "outputs of heads";
    case Layout::Keys:
      return "keys";
    case Layout::Values:
      return "values";
    case Layout::Qkv:
      return "queries, keys, values";
    case Layout::Head:
      return "one head";
    case Layout::Gated:
      return "gate and up in turn";
  }
  return "";
}

std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::Silu:
      return "silu";
    case Activation::TanhGelu:
      return "gelu (tanh)";
    case Activation::ErfGelu:
      return "gelu (erf)";
    case Activation::ClampedSwiglu:
      return "clamped swiglu";
  }
  return "";
}

// One operator a line, in the names of its values.
class OperatorText {
 public:
  OperatorText(const Graph& graph, const LayerKind& kind) : graph_(graph), kind_(kind) {}

  std::string operator()(const NormOp& op) const {
    return fmt::format("{} {} rmsnorm({}){}", name(op.to), op.add ? "+=" : "=", name(op.from),
                       op.gain ? " * " + kind_.vectors[*op.gain].name : "");
  }
  std::string operator()(const ProductOp& op) const {
    std::string matrices;
    for (const MatrixUse& use : op.matrices) {
      matrices += (matrices.empty() ? "" : ", ") + std::string(matrix_role_name(use.role));
    }
    return fmt::format("{} {} [{}] {}{}", name(op.to), op.add ? "+=" : "=", matrices, name(op.from),
                       op.bias ? " + bias" : "");
  }
  std::string operator()(const HeadNormOp& op) const {
    return fmt::format("{} of {} = rmsnorm of each head * {}",
                       op.part == HeadPart::Queries ? "queries" : "keys", name(op.qkv),
                       kind_.vectors[op.gain].name);
  }
  std::string operator()(const RotateOp& op) const {
    return fmt::format("queries and keys of {} turn by rotary table {}", name(op.qkv), op.table);
  }
  std::string operator()(const AttentionOp& op) const {
    std::string text = fmt::format("{} = attention({})", name(op.to), name(op.qkv));
    if (op.window != 0) text += fmt::format(", window {}", op.window);
    if (!op.causal) text += ", all positions see each other";
    if (op.score_cap != 0) text += fmt::format(", scores capped at {}", op.score_cap);
    if (op.sinks) text += ", sinks";
    return text;
  }
  std::string operator()(const FeedForwardOp& op) const {
    return fmt::format("{} = {} of [{}up] {}{}", name(op.to), activation_name(op.activation.kind),
                       op.gated ? "gate, " : "", name(op.from), op.bias ? " + bias" : "");
  }
  std::string operator()(const ExpertsOp& op) const {
    return fmt::format("{} {} the best {} of {} experts by {}, each: {}; {}", name(op.to),
                       op.add ? "+=" : "=", op.chosen, op.experts, name(op.logits), (*this)(op.up),
                       (*this)(op.down));
  }
  std::string operator()(const SoftCapOp& op) const {
    return fmt::format("{} capped at {}", name(op.value), op.cap);
  }

 private:
  [[nodiscard]] const std::string& name(ValueId id) const { return graph_.values[id].name; }

  const Graph& graph_;
  const LayerKind& kind_;
};

std::string kind_text(const Graph& graph, const LayerKind& kind) {
  std::string text;
  for (const Operator& op : kind.operators) {
    text += "  " + std::visit(OperatorText(graph, kind), op) + "\n";
  }
  return text;
}

std::string layers_of_kind(const Graph& graph, std::size_t kind) {
  std::string text;
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    if (graph.layers[i].kind == kind) text += fmt::format(" {}", i);
  }
  return text;
}

}  // namespace

std::string describe(const Graph& graph) {
  std::string text = graph.summary + "\n\nvectors\n";
  for (const Value& value : graph.values) {
    text += fmt::format("  {:<24} {}{}\n", value.name, layout_name(value.layout),
                        value.layout == Layout::Dense ? fmt::format(" [{}]", value.width) : "");
  }
  for (std::size_t kind = 0; kind < graph.kinds.size(); ++kind) {
    text += fmt::format("\nlayers{}\n", layers_of_kind(graph, kind));
    text += kind_text(graph, graph.kinds[kind]);
  }
  return text + "\nending\n" + kind_text(graph, graph.ending);
}

std::string describe(const TiledGraph& tiled) {
  const Graph& graph = *tiled.graph;
  std::string text = fmt::format("tiles of {} lanes\n", tiled.mlen);
  for (const Value& value : graph.values) {
    text += fmt::format("  {:>6} rows  {}\n", tiled.rows(value), value.name);
  }
  const HeadLayout& heads = tiled.heads;
  text += fmt::format(
      "heads: {} slots of {} lanes a row, {} rows a head, {} tiles of keys, {} copies of each, {} "
      "rows of queries over each\n",
      heads.slots, heads.head_lanes, heads.span, heads.tiles, heads.copies, heads.groups);
  text += fmt::format("weights: {} tiles\n", tiled.weight_tiles);
  for (std::size_t kind = 0; kind < graph.kinds.size(); ++kind) {
    text +=
        fmt::format("  {:>6} a layer of kind {}\n", tiled.tiles_of_layer(graph.kinds[kind]), kind);
  }
  text += fmt::format("  {:>6} the ending\n", tiled.tiles_of_layer(graph.ending));
  text += "loops:";
  for (const LayerLoop& loop : layer_loops(graph.layers)) {
    text += fmt::format(" {} times (", loop.count);
    for (std::size_t i = 0; i < loop.body.size(); ++i) {
      text += fmt::format("{}{} layers of kind {}", i == 0 ? "" : ", ", loop.body[i].layers,
                          loop.body[i].kind);
    }
    text += ")";
  }
  return text + "\n";
}

}  // namespace plena
