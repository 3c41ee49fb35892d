// Which vectors of a model a compilation turns by Hadamard rotations, and what that does to the
// error of its quantised weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plena/base/error.h"
#include "plena/compiler/hadamard.h"
#include "plena/compiler/model_graph.h"
#include "plena/config/settings.h"
#include "plena/model/model.h"
#include "plena/numerics/scale_search.h"

namespace plena {

enum class TurnRule : std::uint8_t {
  Off,   // nothing
  Auto,  // what has less error turned, by more than chance
  All,   // whatever can
};

/// A vector and the matrices around it, which turn together.
struct TurnGroup {
  std::string name;
  Hadamard turn;  // block 1: it cannot
  double error_as_is = 0;
  double error_turned = 0;
  bool turned = false;
};

struct TurnChoice {
  GraphOptions graph;  // `fold_gains` as given, turns as chosen
  TurnRule rule = TurnRule::Off;
  std::vector<TurnGroup> groups;  // the residual stream, then the values of each layer
};

/// Compares the errors of each group of matrices in HBM_M_WEIGHT_TYPE, as they are and turned, on
/// up to 512 rows of each. The error of a matrix is that of its outputs, squared, relative to them,
/// for independent inputs of equal size: sum of (w' - w)^2 over sum of w^2, gains of norms
/// included. That of a group is their mean. Plain types have no scale that rotation could improve:
/// nothing turns.
Result<TurnChoice> choose_turns(const Model& model, const Settings& settings, ScaleRule scales,
                                TurnRule rule, const GraphOptions& graph);

/// What was turned in a few words, `residual, values 3/5`; `-` where that is nothing.
std::string summary(const TurnChoice& choice);

/// Each group with its errors, a line each.
std::string describe(const TurnChoice& choice);

}  // namespace plena
