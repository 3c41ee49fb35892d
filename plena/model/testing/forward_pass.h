// A forward pass of the general model description in plain f32 on the host, for tests: what
// importers are checked with against reference logits, and what the machine's results are compared
// with. Written to be obviously right; slow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plena/model/model.h"

namespace plena::testing {

/// Logits [ids.size(), vocab] of a whole sequence from position 0. The ids lie in the vocabulary,
/// and there are no more than the context has positions.
std::vector<float> forward_logits(const Model& model, std::span<const std::uint32_t> ids);

}  // namespace plena::testing
