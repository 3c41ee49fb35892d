// From a model's description to its operator graph. Every operator follows from a field of the
// description; no family is named.
#pragma once

#include "plena/base/error.h"
#include "plena/compiler/graph.h"
#include "plena/model/model.h"

namespace plena {

struct GraphOptions {
  /// Whether the gain of a norm becomes part of the matrices behind it, which costs nothing at run
  /// time. Coarse types lose by it: gains that differ from input to input share their block's
  /// scale.
  bool fold_gains = true;
  /// Turns the residual stream, whose gains then are folded. The blocks divide its width. Norms
  /// behind a branch forbid it: their gains would have to act on the vector as it was.
  Hadamard residual;
  /// Turns each head's values, layer by layer: W_v writes them so and W_o reads them so, and the
  /// weighted sums between the two do not mind. Blocks divide head_dim. Empty: none.
  std::vector<Hadamard> values;
};

/// Whether the residual stream of a model can be turned.
bool can_turn_residual(const Model& model);

/// Fails for what the description can say and no operator computes (LayerNorm of heads or behind a
/// branch, rotary tables of different widths).
Result<Graph> model_graph(const Model& model, const GraphOptions& options = {});

}  // namespace plena
