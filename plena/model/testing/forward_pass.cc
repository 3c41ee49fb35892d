#include "plena/model/testing/forward_pass.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace plena::testing {

namespace {

using Vector = std::vector<float>;
using Sequence = std::vector<Vector>;  // one vector a position

void add(Vector& x, const Vector& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
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

// Linear maps of a sequence decode each row of the matrix once.
Sequence multiply(const Linear& linear, const Sequence& xs) {
  Sequence ys(xs.size(), Vector(linear.weight.rows()));
  Vector row(linear.weight.columns());
  const Vector bias = linear.bias.values();
  for (std::size_t r = 0; r < linear.weight.rows(); ++r) {
    linear.weight.read_row(r, row);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      ys[i][r] = std::inner_product(row.begin(), row.end(), xs[i].begin(), 0.0F);
      if (!bias.empty()) ys[i][r] += bias[r];
    }
  }
  return ys;
}

Vector multiply(const Linear& linear, const Vector& x) {
  return multiply(linear, Sequence{x}).front();
}

class Pass {
 public:
  explicit Pass(const Model& model) : model_(model), config_(model.config) {}

  Vector run(std::span<const std::uint32_t> ids) {
    Sequence xs = embed(ids);
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      run_layer(model_.layers[i], config_.layers[i], xs);
    }
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

  void run_layer(const LayerWeights& layer, const LayerConfig& layer_config, Sequence& xs) {
    Sequence attended = attend(layer, layer_config, normalise(layer.attention_norm, xs));
    attended = normalise(layer.post_attention_norm, attended);
    for (std::size_t i = 0; i < xs.size(); ++i) add(xs[i], attended[i]);

    Sequence fed = normalise(layer.ffn_norm, xs);
    for (Vector& x : fed) {
      x = layer_config.experts ? mix_experts(layer, x) : feed_forward(layer.ffn, x);
    }
    fed = normalise(layer.post_ffn_norm, fed);
    for (std::size_t i = 0; i < xs.size(); ++i) add(xs[i], fed[i]);
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
    return multiply(layer.o, mixed);
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

  Vector feed_forward(const FeedForwardWeights& ffn, const Vector& x) const {
    Vector up = multiply(ffn.up, x);
    if (!config_.gated) {
      for (float& value : up) value = activate(value);
      return multiply(ffn.down, up);
    }
    Vector gate = multiply(ffn.gate, x);
    if (config_.activation == Activation::ClampedSwiglu) {
      const float limit = config_.swiglu_limit;
      for (float& value : gate) value = std::min(value, limit);
      for (float& value : up) value = std::clamp(value, -limit, limit) + 1;
    }
    for (std::size_t i = 0; i < up.size(); ++i) up[i] *= activate(gate[i]);
    return multiply(ffn.down, up);
  }

  Vector mix_experts(const LayerWeights& layer, const Vector& x) const {
    const ExpertsConfig& experts = config_.experts;
    Vector weights = multiply(layer.router, x);
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
    order.resize(experts.chosen);
    if (experts.weighting == ExpertWeighting::SoftmaxOfChosen) {
      Vector chosen(weights.size(), -std::numeric_limits<float>::infinity());
      for (const std::size_t expert : order) chosen[expert] = weights[expert];
      weights = chosen;
    }
    softmax(weights);
    Vector mixed(x.size());
    for (const std::size_t expert : order) {
      Vector y = feed_forward(layer.experts[expert], x);
      for (float& value : y) value *= weights[expert];
      add(mixed, y);
    }
    return mixed;
  }

  const Model& model_;
  const ModelConfig& config_;
};

}  // namespace

std::vector<float> forward_logits(const Model& model, std::span<const std::uint32_t> ids) {
  return Pass(model).run(ids);
}

}  // namespace plena::testing
