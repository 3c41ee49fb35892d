// A forward pass of the general model description in plain f32 on the host: what the compiler
// measures the effect of quantised weights with, and what tests compare the machine's results with.
// Written to be obviously right; the machine's own way is the compiler's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "plena/base/error.h"
#include "plena/model/model.h"

namespace plena {

/// Vectors that products of a layer take in, as they are before a norm in front of them.
enum class ProductInput : std::uint8_t {
  Attention,        // the residual stream, for q, k and v
  AttentionOutput,  // the heads' outputs, for o
  FeedForward,      // the residual stream, for router, gate and up
  Hidden,           // for down; of layers with experts, one a token and expert
  Logits,           // the residual stream behind the last layer; `layer` is their number
};

/// Sees the vectors of all positions; an error ends the pass.
using InputObserver = std::function<Status(std::size_t layer, ProductInput input,
                                           const std::vector<std::vector<float>>& vectors)>;

/// Shows the observer every product's inputs for a sequence from position 0, layer by layer. The
/// ids lie in the vocabulary, and there are no more than the context has positions.
Status observe_inputs(const Model& model, std::span<const std::uint32_t> ids,
                      const InputObserver& observer);

/// Logits [ids.size(), vocab] of such a sequence.
std::vector<float> forward_logits(const Model& model, std::span<const std::uint32_t> ids);

}  // namespace plena
