#include "plena/compiler/turn_choice.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "plena/base/parallel.h"
#include "plena/compiler/sample_inputs.h"
#include "plena/compiler/tiled_graph.h"
#include "plena/compiler/weight_stream.h"

namespace plena {

namespace {

constexpr std::uint32_t kSampledRows = 256;   // of a matrix
constexpr std::uint32_t kSampledExperts = 2;  // of a layer
// Without outliers errors differ by a percent or so from one rotation to another.
constexpr double kLeastGain = 0.02;

// A matrix with the lanes around it.
struct Product {
  std::size_t layer = 0;
  MatrixRole role = MatrixRole::Query;
  const Matrix* matrix = nullptr;
  LaneMap outputs;
  LaneMap inputs;
  const std::vector<float>* gains = nullptr;  // of its inputs, where they are kept apart
};

// The products of a layer in order.
class ProductList {
 public:
  explicit ProductList(const TiledGraph& tiled) : tiled_(tiled) {
    const Graph& graph = *tiled.graph;
    for (; layer_ < graph.layers.size(); ++layer_) {
      add(graph.kinds[graph.layers[layer_].kind], graph.layers[layer_]);
    }
    add(graph.ending, graph.ending_tensors);
  }

  void operator()(const NormOp& op) {
    normed_ = op.to;
    gains_ = op.gain ? &tensors_->vectors[*op.gain] : nullptr;
  }
  void operator()(const ProductOp& op) { add(op, 0); }
  void operator()(const FeedForwardOp& op) { add(op, 0); }
  void operator()(const ExpertsOp& op) {
    for (std::uint32_t expert = 0; expert < std::min(op.experts, kSampledExperts); ++expert) {
      add(op.up, expert);
      add(op.down, expert);
    }
  }
  template <class Other>
  void operator()(const Other&) {}

  std::vector<Product> products;

 private:
  void add(const LayerKind& kind, const Layer& layer) {
    tensors_ = &layer;
    for (const Operator& op : kind.operators) std::visit(*this, op);
  }
  void add(const ProductOp& op, std::uint32_t expert) {
    for (const MatrixUse& use : op.matrices) {
      add(use.role, expert, tiled_.lanes(use.outputs, use.width), op.from);
    }
  }
  void add(const FeedForwardOp& op, std::uint32_t expert) {
    if (op.gated) add(MatrixRole::Gate, expert, tiled_.lanes(op.to), op.from);
    add(MatrixRole::Up, expert, tiled_.lanes(op.to), op.from);
  }
  void add(MatrixRole role, std::uint32_t expert, LaneMap outputs, ValueId from) {
    products.push_back({layer_, role, &tensors_->matrices.at(role)[expert], std::move(outputs),
                        tiled_.lanes(from), from == normed_ ? gains_ : nullptr});
  }

  const TiledGraph& tiled_;
  const Layer* tensors_ = nullptr;
  std::size_t layer_ = 0;
  ValueId normed_ = 0;
  const std::vector<float>* gains_ = nullptr;
};

// Quantised values as f32.
std::vector<float> decoded(const QuantisedTensor& tensor, DataType type, std::size_t n) {
  std::vector<float> values(n);
  HbmCodec(type, kFp32).decode(tensor.elements.data(), tensor.scales.data(), 0, n, values.data());
  return values;
}

// Inputs as a product takes them, lane by lane: [lanes][vectors].
struct LaneInputs {
  std::vector<float> values;
  std::size_t vectors = 0;

  LaneInputs(const Product& product, const SampleInputs::Vectors& inputs)
      : values(product.inputs.size() * inputs.size()), vectors(inputs.size()) {
    for (std::size_t v = 0; v < vectors; ++v) {
      std::vector<float> x = inputs[v];
      if (product.gains != nullptr) {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] *= (*product.gains)[i];
      }
      product.matrix->input_turn.turn(x);
      for (std::size_t lane = 0; lane < product.inputs.size(); ++lane) {
        const std::uint32_t element = product.inputs[lane];
        if (element != kPadding) values[lane * vectors + v] = x[element];
      }
    }
  }
};

// Sum of squares of the outputs of tiles side by side, [input tiles][mlen outputs][mlen inputs].
double square_sum(const std::vector<float>& tiles, std::size_t mlen, const LaneInputs& inputs) {
  double sum = 0;
  std::vector<float> outputs(inputs.vectors);
  for (std::size_t j = 0; j < mlen; ++j) {
    std::ranges::fill(outputs, 0.0F);
    for (std::size_t first = 0; first * mlen < tiles.size(); first += mlen) {
      const float* const row = &tiles[first * mlen + j * mlen];
      for (std::size_t k = 0; k < mlen; ++k) {
        const float* const x = &inputs.values[(first + k) * inputs.vectors];
        for (std::size_t v = 0; v < inputs.vectors; ++v) outputs[v] += row[k] * x[v];
      }
    }
    for (const float y : outputs) sum += static_cast<double>(y) * static_cast<double>(y);
  }
  return sum;
}

// Error of the outputs relative to them, both squared.
double relative_error(const Product& product, const SampleInputs::Vectors& sample,
                      std::uint32_t mlen, DataType type, ScaleRule scales) {
  const DataType fp32 = DataType::plain(kFp32);
  const LaneInputs inputs(product, sample);
  const std::size_t n = product.inputs.size() * mlen;
  const std::size_t tiles = product.outputs.size() / mlen;
  const std::size_t sampled = std::min<std::size_t>(tiles, std::max(1U, kSampledRows / mlen));
  double size = 0;
  double error = 0;
  for (std::size_t i = 0; i < sampled; ++i) {
    Quantiser exact(fp32);
    append_tiles(exact, {*product.matrix, product.outputs, product.inputs}, mlen,
                 i * tiles / sampled, 1);
    std::vector<float> values = decoded(std::move(exact).finish(), fp32, n);
    Quantiser quantiser(type, scales);
    quantiser.append(values);
    const std::vector<float> approximations = decoded(std::move(quantiser).finish(), type, n);
    size += square_sum(values, mlen, inputs);
    for (std::size_t k = 0; k < n; ++k) values[k] -= approximations[k];
    error += square_sum(values, mlen, inputs);
  }
  return size == 0 ? 0 : error / size;
}

bool is_around_values(const Product& product) {
  return product.role == MatrixRole::Value || product.role == MatrixRole::AttentionOutput;
}

class TurnChooser {
 public:
  TurnChooser(const Model& model, const Settings& settings, const TurnOptions& options)
      : model_(model), settings_(settings), options_(options) {
    choice_.graph = options.graph;
  }

  Result<TurnChoice> choose() && {
    if (options_.rule == TurnRule::Off || !settings_.hbm_m_weight_type.is_mx()) return choice_;
    auto inputs = SampleInputs::of(model_, options_.interrupted);
    if (!inputs) return forward_error(inputs);
    inputs_ = *std::move(inputs);
    if (auto chosen = choose_residual(); !chosen) return tl::unexpected(chosen.error());
    if (auto chosen = choose_values(); !chosen) return tl::unexpected(chosen.error());
    return std::move(choice_);
  }

 private:
  using Errors = std::vector<std::vector<double>>;  // [layers and the ending][matrices]

  Status choose_residual() {
    TurnGroup group{.name = "residual stream"};
    if (can_turn_residual(model_)) {
      group.turn = widest_hadamard(model_.config.hidden, settings_.mlen);
    }
    if (group.turn) {
      GraphOptions turned = choice_.graph;
      turned.residual = group.turn;
      const auto before = errors(choice_.graph, false);
      if (!before) return tl::unexpected(before.error());
      const auto after = errors(turned, false);
      if (!after) return tl::unexpected(after.error());
      decide(group, joined(*before), joined(*after));
      if (group.turned) choice_.graph.residual = group.turn;
    }
    choice_.groups.push_back(group);
    return {};
  }

  Status choose_values() {
    const Hadamard turn = widest_hadamard(model_.config.head_dim, settings_.mlen);
    const std::size_t layers = model_.layers.size();
    GraphOptions turned = choice_.graph;
    turned.values.assign(layers, turn);
    const auto before = errors(choice_.graph, true);
    if (!before) return tl::unexpected(before.error());
    const auto after = errors(turned, true);
    if (!after) return tl::unexpected(after.error());
    choice_.graph.values.assign(layers, Hadamard{});
    for (std::size_t i = 0; i < layers; ++i) {
      TurnGroup group{.name = fmt::format("values of layer {}", i), .turn = turn};
      if (turn) decide(group, (*before)[i], (*after)[i]);
      if (group.turned) choice_.graph.values[i] = turn;
      choice_.groups.push_back(group);
    }
    return {};
  }

  void decide(TurnGroup& group, const std::vector<double>& before,
              const std::vector<double>& after) const {
    const auto mean = [](const std::vector<double>& errors) {
      return std::accumulate(errors.begin(), errors.end(), 0.0) /
             static_cast<double>(errors.size());
    };
    group.error_as_is = mean(before);
    group.error_turned = mean(after);
    group.turned =
        options_.rule == TurnRule::All || group.error_turned < (1 - kLeastGain) * group.error_as_is;
  }

  static std::vector<double> joined(const Errors& errors) {
    std::vector<double> all;
    for (const auto& layer : errors) all.insert(all.end(), layer.begin(), layer.end());
    return all;
  }

  // Of all matrices or of those around the values.
  [[nodiscard]] Result<Errors> errors(const GraphOptions& options, bool around_values) const {
    const auto graph = model_graph(model_, options);
    if (!graph) return tl::unexpected(graph.error());
    const auto tiled = tile_graph(*graph, settings_.mlen, settings_.blen);
    if (!tiled) return tl::unexpected(tiled.error());
    std::vector<Product> products = ProductList(*tiled).products;
    if (around_values) std::erase_if(products, std::not_fn(is_around_values));
    std::vector<double> of_products(products.size());
    const auto measure = [&](std::size_t i) -> Status {
      if (options_.interrupted != nullptr && *options_.interrupted) {
        return fail(ErrorCode::Interrupted, "interrupted");
      }
      const Product& product = products[i];
      of_products[i] = relative_error(product, inputs_.of(product.layer, product.role),
                                      settings_.mlen, settings_.hbm_m_weight_type, options_.scales);
      return {};
    };
    if (auto done = for_each_piece(products.size(), measure); !done) {
      return tl::unexpected(done.error());
    }
    Errors errors(graph->layers.size() + 1);
    for (std::size_t i = 0; i < products.size(); ++i) {
      errors[products[i].layer].push_back(of_products[i]);
    }
    return errors;
  }

  const Model& model_;
  const Settings& settings_;
  const TurnOptions& options_;
  SampleInputs inputs_;
  TurnChoice choice_;
};

std::string group_text(const TurnGroup& group) {
  if (!group.turn) return fmt::format("  {}: cannot be turned\n", group.name);
  return fmt::format("  {}, {} elements at a time: {:.2f} % as is, {:.2f} % turned: {}\n",
                     group.name, group.turn.block, 100 * group.error_as_is,
                     100 * group.error_turned, group.turned ? "turned" : "left as is");
}

}  // namespace

Result<TurnChoice> choose_turns(const Model& model, const Settings& settings,
                                const TurnOptions& options) {
  return TurnChooser(model, settings, options).choose();
}

std::string summary(const TurnChoice& choice) {
  const auto values = std::ranges::count_if(choice.graph.values, &Hadamard::operator bool);
  std::string text = choice.graph.residual ? "residual" : "";
  if (values != 0) {
    text +=
        fmt::format("{}values {}/{}", text.empty() ? "" : ", ", values, choice.graph.values.size());
  }
  return text.empty() ? "-" : text;
}

std::string describe(const TurnChoice& choice) {
  if (choice.groups.empty()) return "";
  std::string text =
      "Hadamard rotations, relative squared error of the outputs of quantised weights:\n";
  for (const TurnGroup& group : choice.groups) text += group_text(group);
  return text;
}

}  // namespace plena
