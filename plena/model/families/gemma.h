// What Gemma 2 and 3 share: norms whose weight is 1 + w, four of them a layer, an embedding scaled
// by the root of its width, tanh GELU, scores scaled by query_pre_attn_scalar, soft caps.
#pragma once

#include "plena/model/families/family.h"

namespace plena {

/// Everything but rotation and windows, which the caller has set before.
void import_gemma(ConfigReader& config, WeightReader& weights, bool head_norms, Model& model);

}  // namespace plena
