#include "plena/model/testing/reference_forward.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plena::testing {

namespace {

using Vector = std::vector<float>;

// y = W x, with W [out, in] row-major.
Vector multiply(std::span<const float> matrix, std::span<const float> x) {
  Vector y(matrix.size() / x.size());
  for (std::size_t row = 0; row < y.size(); ++row) {
    const auto weights = matrix.subspan(row * x.size(), x.size());
    y[row] = std::inner_product(x.begin(), x.end(), weights.begin(), 0.0F);
  }
  return y;
}

Vector rms_norm(std::span<const float> x, std::span<const float> weight, float epsilon) {
  const float squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0F);
  const float scale = 1 / std::sqrt(squares / static_cast<float>(x.size()) + epsilon);
  Vector y(x.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * scale * weight[i];
  return y;
}

// Rotates each pair (2i, 2i+1) of every head by position * theta^(-2i / head_dim).
void rotate(Vector& heads, std::uint32_t head_dim, std::uint32_t position, float theta) {
  for (std::size_t i = 0; i < heads.size(); i += 2) {
    const auto in_head = static_cast<float>(i % head_dim);
    const float frequency = std::pow(theta, -in_head / static_cast<float>(head_dim));
    const float angle = static_cast<float>(position) * frequency;
    const float even = heads[i];
    const float odd = heads[i + 1];
    heads[i] = even * std::cos(angle) - odd * std::sin(angle);
    heads[i + 1] = even * std::sin(angle) + odd * std::cos(angle);
  }
}

void softmax(Vector& scores) {
  const float largest = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& score : scores) sum += score = std::exp(score - largest);
  for (float& score : scores) score /= sum;
}

void add(Vector& x, const Vector& y) {
  std::transform(x.begin(), x.end(), y.begin(), x.begin(), std::plus<>());
}

}  // namespace

ReferenceForward::ReferenceForward(const LlamaModel& model) : model_(&model) {
  const LlamaConfig& c = model.config;
  keys_.resize(std::size_t{c.layers} * c.context * c.kv_dim());
  values_.resize(keys_.size());
}

std::span<const float> ReferenceForward::step(std::uint32_t token, std::uint32_t position) {
  const LlamaConfig& c = model_->config;
  const auto embedding = model_->token_embedding.subspan(std::size_t{token} * c.dim, c.dim);
  x_.assign(embedding.begin(), embedding.end());
  for (std::size_t i = 0; i < model_->layers.size(); ++i) {
    attend(model_->layers[i], i, position);
    feed_forward(model_->layers[i]);
  }
  logits_ = multiply(model_->output, rms_norm(x_, model_->final_norm, c.norm_epsilon));
  return logits_;
}

void ReferenceForward::attend(const LlamaLayer& layer, std::size_t layer_index,
                              std::uint32_t position) {
  const LlamaConfig& c = model_->config;
  const std::size_t head_dim = c.head_dim();
  const std::size_t cache = layer_index * c.context * c.kv_dim();
  const auto normed = rms_norm(x_, layer.attention_norm, c.norm_epsilon);
  Vector query = multiply(layer.wq, normed);
  Vector key = multiply(layer.wk, normed);
  const Vector value = multiply(layer.wv, normed);
  rotate(query, c.head_dim(), position, c.rope_theta);
  rotate(key, c.head_dim(), position, c.rope_theta);
  std::copy(key.begin(), key.end(), keys_.begin() + cache + position * c.kv_dim());
  std::copy(value.begin(), value.end(), values_.begin() + cache + position * c.kv_dim());

  Vector heads(c.dim);
  for (std::size_t head = 0; head < c.heads; ++head) {
    const float* q = &query[head * head_dim];
    const std::size_t kv = cache + head / (c.heads / c.kv_heads) * head_dim;
    Vector scores(position + 1);
    for (std::size_t p = 0; p <= position; ++p) {
      const float dot = std::inner_product(q, q + head_dim, &keys_[kv + p * c.kv_dim()], 0.0F);
      scores[p] = dot / std::sqrt(static_cast<float>(head_dim));
    }
    softmax(scores);
    for (std::size_t p = 0; p <= position; ++p) {
      for (std::size_t i = 0; i < head_dim; ++i) {
        heads[head * head_dim + i] += scores[p] * values_[kv + p * c.kv_dim() + i];
      }
    }
  }
  add(x_, multiply(layer.wo, heads));
}

void ReferenceForward::feed_forward(const LlamaLayer& layer) {
  const auto normed = rms_norm(x_, layer.ffn_norm, model_->config.norm_epsilon);
  Vector gate = multiply(layer.w1, normed);
  const Vector up = multiply(layer.w3, normed);
  for (std::size_t i = 0; i < gate.size(); ++i) {
    gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  }
  add(x_, multiply(layer.w2, gate));
}

std::vector<std::uint32_t> greedy_tokens(const LlamaModel& model, std::size_t count) {
  constexpr std::uint32_t kBos = 1;
  ReferenceForward forward(model);
  std::vector<std::uint32_t> tokens{kBos};
  while (tokens.size() < count) {
    const auto logits = forward.step(tokens.back(), static_cast<std::uint32_t>(tokens.size() - 1));
    const auto likeliest = std::max_element(logits.begin(), logits.end());
    tokens.push_back(static_cast<std::uint32_t>(likeliest - logits.begin()));
  }
  return tokens;
}

}  // namespace plena::testing
