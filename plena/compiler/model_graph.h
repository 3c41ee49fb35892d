// From a model's description to its operator graph. Every operator follows from a field of the
// description; no family is named.
#pragma once

#include "plena/base/error.h"
#include "plena/compiler/graph.h"
#include "plena/model/model.h"

namespace plena {

/// Fails for what the description can say and no operator computes (LayerNorm of heads or behind a
/// branch, rotary tables of different widths).
Result<Graph> model_graph(const Model& model);

}  // namespace plena
