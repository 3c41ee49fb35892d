// Inputs of a model's products, as a sequence of random tokens meets them: what the errors of
// quantised weights are weighed with. The weights alone do not know which of their columns matter.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "plena/base/error.h"
#include "plena/compiler/graph.h"
#include "plena/model/model.h"

namespace plena {

class SampleInputs {
 public:
  using Vectors = std::vector<std::vector<float>>;  // [positions][width]

  /// Runs up to 64 tokens through the model, in f32 on the host. Fails only where `interrupted`
  /// becomes true meanwhile.
  static Result<SampleInputs> of(const Model& model,
                                 const std::atomic<bool>* interrupted = nullptr);

  /// What a matrix of a layer takes in, behind a norm without its gain, which matrices have folded
  /// in; layer `layers` is the ending.
  [[nodiscard]] const Vectors& of(std::size_t layer, MatrixRole role) const;

 private:
  struct LayerVectors {
    Vectors attention;  // for q, k, v
    Vectors heads;      // for o
    Vectors normed;     // for router, gate, up; of the ending for the logits
    Vectors hidden;     // for down
  };
  std::vector<LayerVectors> layers_;
};

}  // namespace plena
