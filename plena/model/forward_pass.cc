#include "plena/model/forward_pass.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "plena/base/parallel.h"

namespace plena {

namespace {

using Vector = std::vector<float>;
using Sequence = std::vector<Vector>;  // one vector a position

void add(Vector& x, const Vector& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

void add(Sequence& xs, const Sequence& ys) {
  for (std::size_t i = 0; i < xs.size(); ++i) add(xs[i], ys[i]);
}

float cap(float value, float limit) {
  return limit == 0 ? value : limit * std::tanh(value / limit);
}

void softmax(Vector& scores) {
  const float largest = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& score : scores) sum += score = std::exp(score - largest);
  for (float& score : scores) score /= sum;
}

// Elements of a sequence's vectors side by side: [columns, positions].
Vector side_by_side(const Sequence& xs, std::size_t columns) {
  Vector turned(columns * xs.size());
  for (std::size_t i = 0; i < xs.size(); ++i) {
    for (std::size_t c = 0; c < columns; ++c) turned[c * xs.size() + i] = xs[i][c];
  }
  return turned;
}

// Linear maps of a sequence decode each row of the matrix once.
Sequence multiply(const Linear& linear, const Sequence& xs) {
  constexpr std::size_t kRows = 64;  // of a piece of work
  const std::size_t columns = linear.weight.columns();
  const std::size_t rows = linear.weight.rows();
  const Vector inputs = side_by_side(xs, columns);
  const Vector bias = linear.bias.values();
  Sequence ys(xs.size(), Vector(rows));
  const auto multiply_rows = [&](std::size_t piece) -> Status {
    Vector row(columns);
    for (std::size_t r = piece * kRows; r < std::min(rows, (piece + 1) * kRows); ++r) {
      linear.weight.read_row(r, row);
      Vector sums(xs.size());
      for (std::size_t c = 0; c < columns; ++c) {
        const float* const x = &inputs[c * xs.size()];
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += row[c] * x[i];
      }
      for (std::size_t i = 0; i < sums.size(); ++i) {
        ys[i][r] = sums[i] + (bias.empty() ? 0.0F : bias[r]);
      }
    }
    return {};
  };
  [[maybe_unused]] const Status done =  // cannot fail
      for_each_piece((rows + kRows - 1) / kRows, multiply_rows);
  return ys;
}

class Pass {
 public:
  Pass(const Model& model, const InputObserver& observer)
      : model_(model), config_(model.config), observer_(observer) {}

  // The residual stream behind the last layer.
  Result<Sequence> run_layers(std::span<const std::uint32_t> ids) {
    Sequence xs = embed(ids);
    for (; layer_ < model_.layers.size(); ++layer_) {
      auto ran = run_layer(model_.layers[layer_], config_.layers[layer_], xs);
      if (!ran) return tl::unexpected(ran.error());
    }
    if (auto seen = show(ProductInput::Logits, xs); !seen) return tl::unexpected(seen.error());
    return xs;
  }

  [[nodiscard]] Vector logits(const Sequence& xs) const {
    Vector logits;
    for (const Vector& y : multiply(model_.output, normalise(model_.final_norm, xs))) {
      for (const float logit : y) logits.push_back(cap(logit, config_.logit_cap));
    }
    return logits;
  }

 private:
  Sequence embed(std::span<const std::uint32_t> ids) {
    Sequence xs;
    for (std::size_t position = 0; position < ids.size(); ++position) {
      Vector x(config_.hidden);
      model_.embedding.read_row(ids[position], x);
      for (float& value : x) value *= config_.embedding_scale;
      if (model_.positions) {
        Vector learned(config_.hidden);
        model_.positions.read_row(position, learned);
        add(x, learned);
      }
      xs.push_back(x);
    }
    return xs;
  }

  [[nodiscard]] Status show(ProductInput input, const Sequence& xs) const {
    return observer_ ? observer_(layer_, input, xs) : Status();
  }

  Status run_layer(const LayerWeights& layer, const LayerConfig& layer_config, Sequence& xs) const {
    if (auto seen = show(ProductInput::Attention, xs); !seen) return seen;
    const Sequence heads = attend(layer, layer_config, normalise(layer.attention_norm, xs));
    if (auto seen = show(ProductInput::AttentionOutput, heads); !seen) return seen;
    add(xs, normalise(layer.post_attention_norm, multiply(layer.o, heads)));

    if (auto seen = show(ProductInput::FeedForward, xs); !seen) return seen;
    const Sequence normed = normalise(layer.ffn_norm, xs);
    auto fed = layer_config.experts ? mix_experts(layer, normed) : feed_forward(layer.ffn, normed);
    if (!fed) return tl::unexpected(fed.error());
    add(xs, normalise(layer.post_ffn_norm, *fed));
    return {};
  }

  // Leaves the vectors as they are where there is no such norm.
  Sequence normalise(const Norm& norm, Sequence xs) const {
    if (!norm) return xs;
    const Vector weight = norm.weight.values();
    const Vector bias = norm.bias.values();
    for (Vector& x : xs) normalise(x, weight, bias);
    return xs;
  }

  void normalise(std::span<float> x, const Vector& weight, const Vector& bias) const {
    const auto n = static_cast<float>(x.size());
    if (config_.norm == NormKind::Layer) {
      const float mean = std::accumulate(x.begin(), x.end(), 0.0F) / n;
      for (float& value : x) value -= mean;
    }
    const float squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0F);
    const float scale = 1 / std::sqrt(squares / n + config_.norm_epsilon);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = x[i] * scale * weight[i] + (bias.empty() ? 0.0F : bias[i]);
    }
  }

  // Norm and rotation of each head of a query or key.
  void prepare_heads(Vector& heads, const Norm& norm, const LayerConfig& layer,
                     std::size_t position) const {
    const Vector weight = norm.weight.values();
    for (std::size_t at = 0; at < heads.size(); at += config_.head_dim) {
      const auto head = std::span(heads).subspan(at, config_.head_dim);
      if (norm) normalise(head, weight, {});
      if (!config_.rotary.empty()) rotate(head, config_.rotary[layer.rotary], position);
    }
  }

  void rotate(std::span<float> head, const RotaryTable& table, std::size_t position) const {
    const std::size_t pairs = table.inverse_frequency.size();
    const bool halves = config_.pairing == RotaryPairing::Halves;
    for (std::size_t i = 0; i < pairs; ++i) {
      float& first = head[halves ? i : 2 * i];
      float& second = head[halves ? i + pairs : 2 * i + 1];
      const double angle = static_cast<double>(position) * table.inverse_frequency[i];
      const auto cosine = static_cast<float>(std::cos(angle) * table.attention_factor);
      const auto sine = static_cast<float>(std::sin(angle) * table.attention_factor);
      const float a = first;
      const float b = second;
      first = a * cosine - b * sine;
      second = b * cosine + a * sine;
    }
  }

  Sequence attend(const LayerWeights& layer, const LayerConfig& layer_config,
                  const Sequence& xs) const {
    Sequence queries = multiply(layer.q, xs);
    Sequence keys = multiply(layer.k, xs);
    const Sequence values = multiply(layer.v, xs);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      prepare_heads(queries[i], layer.q_norm, layer_config, i);
      prepare_heads(keys[i], layer.k_norm, layer_config, i);
    }
    const Vector sinks = layer.sinks.values();
    Sequence mixed(xs.size(), Vector(config_.query_width()));
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const std::size_t end = config_.causal ? i + 1 : xs.size();
      const std::size_t window = layer_config.window;
      const std::size_t begin = window != 0 && i + 1 > window ? i + 1 - window : 0;
      for (std::size_t head = 0; head < config_.heads; ++head) {
        attend_head(head, begin, end, queries[i], keys, values, sinks, mixed[i]);
      }
    }
    return mixed;
  }

  void attend_head(std::size_t head, std::size_t begin, std::size_t end, const Vector& query,
                   const Sequence& keys, const Sequence& values, const Vector& sinks,
                   Vector& mixed) const {
    const std::size_t width = config_.head_dim;
    const std::size_t kv = head / (config_.heads / config_.kv_heads) * width;
    const float* q = &query[head * width];
    Vector scores;
    for (std::size_t p = begin; p < end; ++p) {
      const float dot = std::inner_product(q, q + width, &keys[p][kv], 0.0F);
      scores.push_back(cap(dot * config_.score_scale, config_.score_cap));
    }
    if (!sinks.empty()) scores.push_back(sinks[head]);
    softmax(scores);
    for (std::size_t p = begin; p < end; ++p) {
      for (std::size_t i = 0; i < width; ++i) {
        mixed[head * width + i] += scores[p - begin] * values[p][kv + i];
      }
    }
  }

  float activate(float x) const {
    switch (config_.activation) {
      case Activation::Silu:
        return x / (1 + std::exp(-x));
      case Activation::TanhGelu:
        return x / 2 * (1 + std::tanh(0.7978845608F * (x + 0.044715F * x * x * x)));
      case Activation::ErfGelu:
        return x / 2 * (1 + std::erf(x * 0.7071067812F));
      case Activation::ClampedSwiglu:
        return x / (1 + std::exp(-config_.swiglu_alpha * x));
    }
    return x;
  }

  void clamp(Vector& gate, Vector& up) const {
    const float limit = config_.swiglu_limit;
    for (float& value : gate) value = std::min(value, limit);
    for (float& value : up) value = std::clamp(value, -limit, limit) + 1;
  }

  Result<Sequence> feed_forward(const FeedForwardWeights& ffn, const Sequence& xs) const {
    Sequence hidden = multiply(ffn.up, xs);
    Sequence gates = config_.gated ? multiply(ffn.gate, xs) : hidden;
    for (std::size_t i = 0; i < xs.size(); ++i) {
      if (!config_.gated) hidden[i].assign(hidden[i].size(), 1.0F);
      if (config_.activation == Activation::ClampedSwiglu) clamp(gates[i], hidden[i]);
      for (std::size_t k = 0; k < hidden[i].size(); ++k) hidden[i][k] *= activate(gates[i][k]);
    }
    if (auto seen = show(ProductInput::Hidden, hidden); !seen) return tl::unexpected(seen.error());
    return multiply(ffn.down, hidden);
  }

  // Weights of all experts for one token; 0 for those not chosen.
  [[nodiscard]] Vector expert_weights(Vector logits) const {
    const ExpertsConfig& experts = config_.experts;
    std::vector<std::size_t> order(logits.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
    order.resize(experts.chosen);
    Vector chosen(logits.size(), -std::numeric_limits<float>::infinity());
    for (const std::size_t expert : order) chosen[expert] = logits[expert];
    if (experts.weighting == ExpertWeighting::SoftmaxOfChosen) logits = chosen;
    softmax(logits);
    Vector weights(logits.size());
    for (const std::size_t expert : order) weights[expert] = logits[expert];
    return weights;
  }

  Result<Sequence> mix_experts(const LayerWeights& layer, const Sequence& xs) const {
    Sequence weights = multiply(layer.router, xs);
    for (Vector& of_token : weights) of_token = expert_weights(of_token);
    Sequence mixed(xs.size(), Vector(config_.hidden));
    for (std::size_t expert = 0; expert < layer.experts.size(); ++expert) {
      std::vector<std::size_t> tokens;
      Sequence inputs;
      for (std::size_t i = 0; i < xs.size(); ++i) {
        if (weights[i][expert] == 0) continue;
        tokens.push_back(i);
        inputs.push_back(xs[i]);
      }
      if (tokens.empty()) continue;
      auto outputs = feed_forward(layer.experts[expert], inputs);
      if (!outputs) return outputs;
      for (std::size_t n = 0; n < tokens.size(); ++n) {
        for (float& value : (*outputs)[n]) value *= weights[tokens[n]][expert];
        add(mixed[tokens[n]], (*outputs)[n]);
      }
    }
    return mixed;
  }

  const Model& model_;
  const ModelConfig& config_;
  const InputObserver& observer_;
  std::size_t layer_ = 0;
};

}  // namespace

Status observe_inputs(const Model& model, std::span<const std::uint32_t> ids,
                      const InputObserver& observer) {
  const auto ran = Pass(model, observer).run_layers(ids);
  return ran ? Status() : tl::unexpected(ran.error());
}

std::vector<float> forward_logits(const Model& model, std::span<const std::uint32_t> ids) {
  const InputObserver nobody;
  Pass pass(model, nobody);
  return pass.logits(pass.run_layers(ids).value());  // fails by an observer alone
}

}  // namespace plena
