#include "plena/compiler/model_graph.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "plena/compiler/tiled_graph.h"

namespace plena {

namespace {

using Vector = std::vector<float>;

Vector scaled(const Tensor& tensor, float factor) {
  Vector values = tensor.values();
  for (float& value : values) value *= factor;
  return values;
}

// Mean of each column.
Vector column_means(const Tensor& weight) {
  std::vector<double> sums(weight.columns());
  Vector row(weight.columns());
  for (std::uint64_t r = 0; r < weight.rows(); ++r) {
    weight.read_row(r, row);
    for (std::size_t i = 0; i < row.size(); ++i) sums[i] += static_cast<double>(row[i]);
  }
  for (double& sum : sums) sum /= static_cast<double>(weight.rows());
  return {sums.begin(), sums.end()};
}

void subtract_mean(Vector& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value);
  const auto mean = static_cast<float>(sum / static_cast<double>(values.size()));
  for (float& value : values) value -= mean;
}

// W v, in f64.
Vector product(const Tensor& weight, const Vector& v) {
  Vector row(weight.columns());
  Vector result(weight.rows());
  for (std::uint64_t r = 0; r < weight.rows(); ++r) {
    weight.read_row(r, row);
    double sum = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      sum += static_cast<double>(row[i]) * static_cast<double>(v[i]);
    }
    result[r] = static_cast<float>(sum);
  }
  return result;
}

// What the matrices behind a norm of the residual stream take in of it.
struct FoldedNorm {
  std::shared_ptr<const Vector> gain;  // null: it stays with the norm
  Vector bias;                         // empty: none
};

// The machine's norms divide by the root of a sum, not of a mean.
Vector gain_of(const Norm& norm) {
  return scaled(norm.weight, std::sqrt(static_cast<float>(norm.weight.columns())));
}

struct Turns {
  Hadamard inputs;
  Hadamard outputs;
};

// A linear map behind a folded norm or behind none.
class FoldedLinear {
 public:
  FoldedLinear(const Linear& linear, const FoldedNorm* norm, float factor, bool centred,
               Turns turns = {})
      : linear_(linear), norm_(norm), factor_(factor), centred_(centred), turns_(turns) {}

  [[nodiscard]] Matrix matrix() const {
    Matrix matrix;
    matrix.weight = linear_.weight;
    if (norm_ != nullptr) matrix.input_gain = norm_->gain;
    matrix.factor = factor_;
    if (centred_) matrix.centre = column_means(linear_.weight);
    matrix.input_turn = turns_.inputs;
    matrix.output_turn = turns_.outputs;
    return matrix;
  }

  [[nodiscard]] bool biased() const {
    return static_cast<bool>(linear_.bias) || (norm_ != nullptr && !norm_->bias.empty());
  }

  /// [rows]; zeros where there is no bias.
  [[nodiscard]] Vector bias() const {
    Vector values(linear_.weight.rows(), 0.0F);
    if (norm_ != nullptr && !norm_->bias.empty()) values = product(linear_.weight, norm_->bias);
    if (linear_.bias) {
      const Vector own = linear_.bias.values();
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += own[i];
    }
    if (centred_) subtract_mean(values);
    for (float& value : values) value *= factor_;
    turns_.outputs.turn(values);
    return values;
  }

 private:
  const Linear& linear_;
  const FoldedNorm* norm_;
  float factor_;
  bool centred_;
  Turns turns_;
};

Vector joined(std::initializer_list<Vector> parts) {
  Vector all;
  for (const Vector& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

bool has_branch_norms(const Model& model) {
  return std::ranges::any_of(model.layers, [](const LayerWeights& layer) {
    return layer.post_attention_norm || layer.post_ffn_norm;
  });
}

// Values that all layers share.
struct SharedValues {
  ValueId residual, normed, branch, qkv, attention, hidden, logits;
  ValueId router, expert_hidden, expert;  // where layers have experts
};

// Builds one layer: operators of its kind and tensors, side by side.
class LayerBuilder {
 public:
  LayerBuilder(const Model& model, const SharedValues& values, const GraphOptions& options,
               Hadamard value_turn)
      : model_(model),
        config_(model.config),
        values_(values),
        options_(options),
        value_turn_(value_turn) {}

  Status add_layer(const LayerWeights& weights, const LayerConfig& config) {
    if (auto known = check(weights); !known) return known;
    add_attention(weights, config);
    const FoldedNorm norm = add_norm(weights.ffn_norm, "norm before feed-forward");
    if (config.experts) return add_experts(weights, norm);
    add_feed_forward(weights, norm);
    return {};
  }

  void add_ending() {
    const FoldedNorm norm = add_norm(model_.final_norm, "final norm");
    const float cap = config_.logit_cap;
    const FoldedLinear output = reader(model_.output, norm, cap == 0 ? 1.0F : 2.0F / cap);
    add_product(values_.normed, values_.logits, false,
                {{MatrixRole::Logits, Layout::Dense, config_.vocab}}, {output});
    if (cap != 0) kind.operators.emplace_back(SoftCapOp{values_.logits, cap});
  }

  LayerKind kind;
  Layer layer;

 private:
  [[nodiscard]] bool centred() const { return config_.norm == NormKind::Layer; }

  // A map of the residual stream, behind its norm.
  [[nodiscard]] FoldedLinear reader(const Linear& linear, const FoldedNorm& norm,
                                    float factor = 1.0F, Hadamard outputs = {}) const {
    return {linear, &norm, factor, false, {options_.residual, outputs}};
  }
  // A map whose outputs join the residual stream.
  [[nodiscard]] FoldedLinear writer(const Linear& linear, Hadamard inputs = {}) const {
    return {linear, nullptr, 1.0F, centred(), {inputs, options_.residual}};
  }

  [[nodiscard]] Status check(const LayerWeights& weights) const {
    const bool others =
        weights.q_norm || weights.k_norm || weights.post_attention_norm || weights.post_ffn_norm;
    if (config_.norm == NormKind::Rms || !others) return {};
    return fail(ErrorCode::Unsupported, "LayerNorm of heads, or behind attention or feed-forward");
  }

  VectorId add_vector(std::string name, Layout layout, std::uint32_t width, Vector vector) {
    kind.vectors.push_back({std::move(name), layout, width});
    layer.vectors.push_back(std::move(vector));
    return kind.vectors.size() - 1;
  }

  // Of the residual stream. Its bias, and its gain too unless that stays, is for the matrices
  // behind it.
  FoldedNorm add_norm(const Norm& norm, std::string name) {
    NormOp op{.from = values_.residual,
              .to = values_.normed,
              .epsilon = static_cast<float>(config_.hidden) * config_.norm_epsilon};
    FoldedNorm folded{nullptr, norm.bias ? norm.bias.values() : Vector{}};
    Vector gain = gain_of(norm);
    if (options_.fold_gains || options_.residual) {
      folded.gain = std::make_shared<const Vector>(std::move(gain));
    } else {
      op.gain = add_vector(std::move(name), Layout::Dense, config_.hidden, std::move(gain));
    }
    kind.operators.emplace_back(op);
    return folded;
  }

  void add_product(ValueId from, ValueId to, bool add, std::vector<MatrixUse> uses,
                   const std::vector<FoldedLinear>& maps) {
    ProductOp op{.from = from, .to = to, .matrices = std::move(uses), .add = add};
    const bool biased = std::ranges::any_of(maps, &FoldedLinear::biased);
    Vector bias;
    for (std::size_t i = 0; i < maps.size(); ++i) {
      layer.matrices[op.matrices[i].role] = {maps[i].matrix()};
      if (biased) bias = joined({bias, maps[i].bias()});
    }
    if (biased) {
      const bool heads = maps.size() > 1;
      op.bias = add_vector("bias of " + std::string(matrix_role_name(op.matrices[0].role)),
                           heads ? Layout::Qkv : op.matrices[0].outputs, op.matrices[0].width,
                           std::move(bias));
    }
    kind.operators.emplace_back(std::move(op));
  }

  // A branch joins the residual stream, behind a norm of its own or as it is.
  [[nodiscard]] ValueId branch_target(const Norm& post) const {
    return post ? values_.branch : values_.residual;
  }
  void end_branch(const Norm& post, std::string name) {
    if (!post) return;
    const float root = std::sqrt(static_cast<float>(config_.hidden));
    const VectorId gain =
        add_vector(std::move(name), Layout::Dense, config_.hidden, scaled(post.weight, root));
    kind.operators.emplace_back(
        NormOp{.from = values_.branch,
               .to = values_.residual,
               .epsilon = static_cast<float>(config_.hidden) * config_.norm_epsilon,
               .gain = gain,
               .add = true});
  }

  // Scores leave the array scaled, and for a soft cap as twice their quotient with it.
  [[nodiscard]] float query_scale() const {
    return config_.score_cap == 0 ? config_.score_scale
                                  : config_.score_scale * 2.0F / config_.score_cap;
  }

  void add_head_norm(const Norm& norm, HeadPart part, float scale) {
    if (!norm) return;
    const auto width = static_cast<float>(config_.head_dim);
    const VectorId gain = add_vector(part == HeadPart::Queries ? "q norm" : "k norm", Layout::Head,
                                     0, scaled(norm.weight, std::sqrt(width) * scale));
    kind.operators.emplace_back(HeadNormOp{
        .qkv = values_.qkv, .part = part, .epsilon = width * config_.norm_epsilon, .gain = gain});
  }

  void add_attention(const LayerWeights& weights, const LayerConfig& config) {
    const FoldedNorm norm = add_norm(weights.attention_norm, "norm before attention");
    const float scale = query_scale();
    add_product(values_.normed, values_.qkv, false,
                {{MatrixRole::Query, Layout::Queries, 0},
                 {MatrixRole::Key, Layout::Keys, 0},
                 {MatrixRole::Value, Layout::Values, 0}},
                {reader(weights.q, norm, weights.q_norm ? 1.0F : scale), reader(weights.k, norm),
                 reader(weights.v, norm, 1.0F, value_turn_)});
    add_head_norm(weights.q_norm, HeadPart::Queries, scale);
    add_head_norm(weights.k_norm, HeadPart::Keys, 1.0F);
    if (!config_.rotary.empty()) kind.operators.emplace_back(RotateOp{values_.qkv, config.rotary});
    kind.operators.emplace_back(AttentionOp{.qkv = values_.qkv,
                                            .to = values_.attention,
                                            .window = config.window,
                                            .causal = config_.causal,
                                            .score_cap = config_.score_cap,
                                            .sinks = static_cast<bool>(weights.sinks)});
    if (weights.sinks) layer.sinks = weights.sinks.values();
    add_product(values_.attention, branch_target(weights.post_attention_norm),
                !weights.post_attention_norm,
                {{MatrixRole::AttentionOutput, Layout::Dense, config_.hidden}},
                {writer(weights.o, value_turn_)});
    end_branch(weights.post_attention_norm, "norm behind attention");
  }

  [[nodiscard]] ActivationShape activation() const {
    return {config_.activation, config_.swiglu_limit, config_.swiglu_alpha};
  }
  [[nodiscard]] float gate_factor() const {
    return config_.gated && config_.activation == Activation::Silu ? -1.0F : 1.0F;
  }

  // Matrices of one feed-forward network; its bias of gate and up, or empty.
  Vector add_up(const FeedForwardWeights& ffn, const FoldedNorm& norm) {
    const FoldedLinear up = reader(ffn.up, norm, gate_factor());
    layer.matrices[MatrixRole::Up].push_back(up.matrix());
    if (!config_.gated) return up.biased() ? up.bias() : Vector{};
    const FoldedLinear gate = reader(ffn.gate, norm, gate_factor());
    layer.matrices[MatrixRole::Gate].push_back(gate.matrix());
    return up.biased() || gate.biased() ? joined({gate.bias(), up.bias()}) : Vector{};
  }

  [[nodiscard]] VectorShape up_bias_shape(std::uint32_t width) const {
    return {"bias of gate, up", config_.gated ? Layout::Gated : Layout::Dense, width};
  }

  void add_feed_forward(const LayerWeights& weights, const FoldedNorm& norm) {
    FeedForwardOp op{.from = values_.normed,
                     .to = values_.hidden,
                     .activation = activation(),
                     .gated = config_.gated};
    if (Vector bias = add_up(weights.ffn, norm); !bias.empty()) {
      const VectorShape shape = up_bias_shape(config_.ffn);
      op.bias = add_vector(shape.name, shape.layout, shape.width, std::move(bias));
    }
    kind.operators.emplace_back(op);
    add_product(values_.hidden, branch_target(weights.post_ffn_norm), !weights.post_ffn_norm,
                {{MatrixRole::Down, Layout::Dense, config_.hidden}}, {writer(weights.ffn.down)});
    end_branch(weights.post_ffn_norm, "norm behind feed-forward");
  }

  Status add_experts(const LayerWeights& weights, const FoldedNorm& norm) {
    const ExpertsConfig& experts = config_.experts;
    auto policy = router_policy(experts.count, experts.chosen);
    if (!policy) return tl::unexpected(policy.error());
    add_product(values_.normed, values_.router, false,
                {{MatrixRole::Router, Layout::Dense, policy->lanes}},
                {reader(weights.router, norm)});
    ExpertsOp op{.logits = values_.router,
                 .to = branch_target(weights.post_ffn_norm),
                 .add = !weights.post_ffn_norm,
                 .experts = experts.count,
                 .chosen = experts.chosen,
                 .renormalise = experts.weighting == ExpertWeighting::SoftmaxOfChosen,
                 .up = {.from = values_.normed,
                        .to = values_.expert_hidden,
                        .activation = activation(),
                        .gated = config_.gated},
                 .down = {.from = values_.expert_hidden,
                          .to = values_.expert,
                          .matrices = {{MatrixRole::Down, Layout::Dense, config_.hidden}}}};
    for (const FeedForwardWeights& expert : weights.experts) add_expert(expert, norm, op);
    kind.operators.emplace_back(op);
    end_branch(weights.post_ffn_norm, "norm behind feed-forward");
    return {};
  }

  // Vectors of an expert are all there or none is.
  void add_expert(const FeedForwardWeights& expert, const FoldedNorm& norm, ExpertsOp& op) {
    const FoldedLinear down = writer(expert.down);
    const bool first = layer.matrices[MatrixRole::Down].empty();
    Vector up_bias = add_up(expert, norm);
    layer.matrices[MatrixRole::Down].push_back(down.matrix());
    std::vector<Vector> vectors;
    if (!up_bias.empty()) {
      if (first) kind.expert_vectors.push_back(up_bias_shape(config_.experts.hidden));
      op.up.bias = vectors.size();
      vectors.push_back(std::move(up_bias));
    }
    if (down.biased()) {
      if (first) kind.expert_vectors.push_back({"bias of down", Layout::Dense, config_.hidden});
      op.down.bias = vectors.size();
      vectors.push_back(down.bias());
    }
    if (!vectors.empty()) layer.expert_vectors.push_back(std::move(vectors));
  }

  const Model& model_;
  const ModelConfig& config_;
  const SharedValues& values_;
  const GraphOptions& options_;
  Hadamard value_turn_;
};

class GraphBuilder {
 public:
  GraphBuilder(const Model& model, const GraphOptions& options)
      : model_(model), config_(model.config), options_(options) {}

  Result<Graph> build() && {
    if (auto known = check(); !known) return tl::unexpected(known.error());
    describe_model();
    add_values();
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      const Hadamard values = options_.values.empty() ? Hadamard{} : options_.values[i];
      LayerBuilder builder(model_, values_, options_, values);
      auto added = builder.add_layer(model_.layers[i], config_.layers[i]);
      if (!added) return tl::unexpected(added.error());
      builder.layer.kind = kind_of(std::move(builder.kind));
      graph_.layers.push_back(std::move(builder.layer));
    }
    LayerBuilder ending(model_, values_, options_, {});
    ending.add_ending();
    graph_.ending = std::move(ending.kind);
    graph_.ending_tensors = std::move(ending.layer);
    return std::move(graph_);
  }

 private:
  [[nodiscard]] Status check() const {
    if (config_.layers.size() != model_.layers.size()) {
      return fail(ErrorCode::Unsupported, "{} layers described, {} with weights",
                  config_.layers.size(), model_.layers.size());
    }
    if (options_.residual && !can_turn_residual(model_)) {
      return fail(ErrorCode::Unsupported,
                  "a residual stream behind norms of its branches does not turn");
    }
    for (const RotaryTable& table : config_.rotary) {
      if (table.inverse_frequency.size() == config_.rotary[0].inverse_frequency.size()) continue;
      return fail(ErrorCode::Unsupported, "rotary tables of {} and {} pairs",
                  config_.rotary[0].inverse_frequency.size(), table.inverse_frequency.size());
    }
    return {};
  }

  void describe_model() {
    graph_.summary =
        fmt::format("{} layers, width {}, {} heads of {}, {} KV heads, vocabulary {}, context {}",
                    model_.layers.size(), config_.hidden, config_.heads, config_.head_dim,
                    config_.kv_heads, config_.vocab, config_.context);
    graph_.dim = config_.hidden;
    graph_.vocab = config_.vocab;
    graph_.context = config_.context;
    graph_.heads = {config_.heads, config_.kv_heads, config_.head_dim};
    const auto pairs =
        config_.rotary.empty() ? std::size_t{0} : config_.rotary[0].inverse_frequency.size();
    graph_.head_order = rotary_order(config_.head_dim, static_cast<std::uint32_t>(2 * pairs),
                                     config_.pairing == RotaryPairing::Halves);
    graph_.rotary = config_.rotary;
    const bool centred = config_.norm == NormKind::Layer;
    graph_.tokens = {model_.embedding, config_.embedding_scale, centred, options_.residual};
    if (model_.positions) {
      graph_.positions = Embedding{model_.positions, 1.0F, centred, options_.residual};
    }
  }

  ValueId add_value(std::string name, Layout layout, std::uint32_t width) {
    graph_.values.push_back({std::move(name), layout, width});
    return graph_.values.size() - 1;
  }

  void add_values() {
    const std::uint32_t width = config_.hidden;
    const bool experts = std::ranges::any_of(config_.layers, &LayerConfig::experts);
    const bool dense = !std::ranges::all_of(config_.layers, &LayerConfig::experts);
    const bool posts = has_branch_norms(model_);
    values_.residual = add_value("residual", Layout::Dense, width);
    values_.normed = add_value("normed", Layout::Dense, width);
    if (posts) values_.branch = add_value("branch", Layout::Dense, width);
    values_.qkv = add_value("q, k, v", Layout::Qkv, 0);
    values_.attention = add_value("attention", Layout::Outputs, 0);
    if (dense) values_.hidden = add_value("hidden", Layout::Dense, config_.ffn);
    if (experts) {
      const auto policy = router_policy(config_.experts.count, config_.experts.chosen);
      values_.router = add_value("router logits", Layout::Dense, policy ? policy->lanes : 1);
      values_.expert_hidden =
          add_value("hidden of an expert", Layout::Dense, config_.experts.hidden);
      values_.expert = add_value("output of an expert", Layout::Dense, width);
    }
    values_.logits = add_value("logits", Layout::Dense, config_.vocab);
    graph_.residual = values_.residual;
    graph_.logits = values_.logits;
  }

  std::size_t kind_of(LayerKind kind) {
    const auto at = std::ranges::find(graph_.kinds, kind);
    if (at != graph_.kinds.end()) return static_cast<std::size_t>(at - graph_.kinds.begin());
    graph_.kinds.push_back(std::move(kind));
    return graph_.kinds.size() - 1;
  }

  const Model& model_;
  const ModelConfig& config_;
  const GraphOptions& options_;
  Graph graph_;
  SharedValues values_{};
};

}  // namespace

bool can_turn_residual(const Model& model) {
  return !has_branch_norms(model);
}

Result<Graph> model_graph(const Model& model, const GraphOptions& options) {
  return GraphBuilder(model, options).build();
}

}  // namespace plena
