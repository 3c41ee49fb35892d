#include "plena/compiler/sample_inputs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plena/model/forward_pass.h"

namespace plena {

namespace {

constexpr std::uint32_t kTokens = 64;

std::vector<std::uint32_t> random_tokens(const ModelConfig& config) {
  std::vector<std::uint32_t> ids(std::min(kTokens, config.context));
  std::uint64_t state = 1;
  for (std::uint32_t& id : ids) {  // Knuth's MMIX generator
    state = state * 6364136223846793005U + 1442695040888963407U;
    id = static_cast<std::uint32_t>((state >> 33) % config.vocab);
  }
  return ids;
}

// The norm of the machine, whose gain has the root of the width: x over the root of its sum.
SampleInputs::Vectors normalised(SampleInputs::Vectors vectors, const ModelConfig& config) {
  for (auto& x : vectors) {
    if (config.norm == NormKind::Layer) {
      const float mean = std::accumulate(x.begin(), x.end(), 0.0F) / static_cast<float>(x.size());
      for (float& value : x) value -= mean;
    }
    const float squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0F);
    const float epsilon = static_cast<float>(x.size()) * config.norm_epsilon;
    for (float& value : x) value /= std::sqrt(squares + epsilon);
  }
  return vectors;
}

}  // namespace

Result<SampleInputs> SampleInputs::of(const Model& model, const std::atomic<bool>* interrupted) {
  SampleInputs inputs;
  inputs.layers_.resize(model.layers.size() + 1);
  const auto note = [&](std::size_t layer, ProductInput input, const Vectors& vectors) -> Status {
    if (interrupted != nullptr && *interrupted) return fail(ErrorCode::Interrupted, "interrupted");
    LayerVectors& of_layer = inputs.layers_[layer];
    switch (input) {
      case ProductInput::Attention:
        of_layer.attention = normalised(vectors, model.config);
        break;
      case ProductInput::AttentionOutput:
        of_layer.heads = vectors;
        break;
      case ProductInput::FeedForward:
      case ProductInput::Logits:
        of_layer.normed = normalised(vectors, model.config);
        break;
      case ProductInput::Hidden:
        if (of_layer.hidden.size() >= kTokens) break;  // of earlier experts
        of_layer.hidden.insert(of_layer.hidden.end(), vectors.begin(), vectors.end());
        break;
    }
    return {};
  };
  if (auto seen = observe_inputs(model, random_tokens(model.config), note); !seen) {
    return tl::unexpected(seen.error());
  }
  return inputs;
}

const SampleInputs::Vectors& SampleInputs::of(std::size_t layer, MatrixRole role) const {
  const LayerVectors& of_layer = layers_[layer];
  switch (role) {
    case MatrixRole::Query:
    case MatrixRole::Key:
    case MatrixRole::Value:
      return of_layer.attention;
    case MatrixRole::AttentionOutput:
      return of_layer.heads;
    case MatrixRole::Down:
      return of_layer.hidden;
    default:
      return of_layer.normed;
  }
}

}  // namespace plena
