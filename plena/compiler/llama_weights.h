// The weights of a Llama as the program's weight stream: which matrices, in which order, with
// which gains folded in.
#pragma once

#include <cstdint>

#include "plena/compiler/tiling.h"
#include "plena/compiler/weight_stream.h"
#include "plena/model/llama.h"

namespace plena {

/// Tiles of the stream: the RoPE permutation; for each layer q, k, v, attention output, gate and
/// up tile by tile, down; the output matrix.
std::uint64_t weight_tiles(const LlamaConfig& config, const LlamaTiling& tiling);

/// The stream. RMSNorm's gain and sqrt(dim) are folded into the product that follows it, the
/// scale 1/sqrt(head_dim) into q, and a sign into gate and up (see emit_swiglu).
QuantisedTensor pack_weights(const LlamaModel& model, const LlamaTiling& tiling, DataType type,
                             ScaleRule scales = ScaleRule::Floor);

/// Rows [vocab][dim tiles * mlen].
QuantisedTensor pack_embedding(const LlamaModel& model, const LlamaTiling& tiling, DataType type,
                               ScaleRule scales = ScaleRule::Floor);

}  // namespace plena
