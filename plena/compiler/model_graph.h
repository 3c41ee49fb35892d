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
};

/// Fails for what the description can say and no operator computes (LayerNorm of heads or behind a
/// branch, rotary tables of different widths).
Result<Graph> model_graph(const Model& model, const GraphOptions& options = {});

}  // namespace plena
