// A Llama forward pass in plain f32 on the host, for tests: what the machine's results are
// compared with. Written for clarity; nothing of the product uses it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plena/model/llama.h"

namespace plena::testing {

class ReferenceForward {
 public:
  /// The model outlives this.
  explicit ReferenceForward(const LlamaModel& model);

  /// Logits [vocab] after `token` at `position`, the next position or an earlier one; they are
  /// valid until the next step.
  std::span<const float> step(std::uint32_t token, std::uint32_t position);

 private:
  void attend(const LlamaLayer& layer, std::size_t layer_index, std::uint32_t position);
  void feed_forward(const LlamaLayer& layer);

  const LlamaModel* model_;
  std::vector<float> x_;       // [dim], the residual stream
  std::vector<float> keys_;    // [layers, context, kv_dim]
  std::vector<float> values_;  // [layers, context, kv_dim]
  std::vector<float> logits_;  // [vocab]
};

/// The first `count` tokens from BOS when the likeliest follows each time; BOS is the first.
std::vector<std::uint32_t> greedy_tokens(const LlamaModel& model, std::size_t count);

}  // namespace plena::testing
