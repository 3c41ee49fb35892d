// Which vectors of a model a compilation turns by Hadamard rotations, and what that does to the
// error of its quantised weights.
#pragma once

#include <atomic>
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
  GraphOptions graph;             // `fold_gains` as given, turns as chosen
  std::vector<TurnGroup> groups;  // the residual stream, then the values of each layer
};

struct TurnOptions {
  TurnRule rule = TurnRule::Off;
  ScaleRule scales = ScaleRule::Floor;
  GraphOptions graph;  // what else it says
  const std::atomic<bool>* interrupted = nullptr;
};

/// Compares the errors of each group of matrices in HBM_M_WEIGHT_TYPE, as they are and turned, on
/// up to 256 rows of each. The error of a matrix is that of its outputs, squared, relative to the
/// outputs, for the inputs that a sequence of random tokens gives it in f32; that of a group is the
/// mean of its matrices'. Plain types have no scale that rotation could improve: nothing turns.
Result<TurnChoice> choose_turns(const Model& model, const Settings& settings,
                                const TurnOptions& options);

/// What was turned in a few words, `residual, values 3/5`; `-` where that is nothing.
std::string summary(const TurnChoice& choice);

/// Each group with its errors, a line each.
std::string describe(const TurnChoice& choice);

}  // namespace plena
