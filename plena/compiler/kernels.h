// The operators of a Llama as instruction sequences, one file each. Every kernel reads and writes
// blocks of the memory plan and leaves no register behind.
//
// All work on one token: a vector of the model is a few rows of Vector SRAM, MLEN lanes each, and
// its padding lanes are 0 (kernels keep them so).
#pragma once

#include <cstdint>

#include "plena/compiler/emitter.h"
#include "plena/compiler/memory_plan.h"
#include "plena/compiler/tiling.h"
#include "plena/config/settings.h"

namespace plena {

// HBM address registers, set once by emit_setup().
inline constexpr AddressRegister kWeightsBase{0};
inline constexpr AddressRegister kCacheBase{1};
inline constexpr AddressRegister kEmbeddingBase{2};
inline constexpr AddressRegister kRopeBase{3};
inline constexpr AddressRegister kConstantsBase{4};

// Selectors of H-type instructions.
inline constexpr std::uint64_t kContiguous = 0;
inline constexpr std::uint64_t kStrided = 1;
inline constexpr std::uint64_t kWeights = 0;     // H_PREFETCH_M
inline constexpr std::uint64_t kActivation = 0;  // H_PREFETCH_V
inline constexpr std::uint64_t kKeyValue = 1;
inline constexpr std::uint64_t kAllLanes = 0;  // rmask

/// What every kernel works with.
struct KernelContext {
  Emitter& emitter;
  const Settings& settings;
  const LlamaTiling& tiling;
  const MemoryPlan& plan;
  std::uint32_t rope_terms = 1;
  Gp weights;  // element of the next tile of the weight stream; products move it on
  Gp cache;    // element where this layer's KV cache starts

  /// Address of a row of a Vector SRAM block, in elements.
  [[nodiscard]] std::uint64_t row(const Block& block, std::uint64_t index = 0) const {
    return (block.first + index) * settings.vlen;
  }
  /// Address of the first tile of a Matrix SRAM block, in elements.
  [[nodiscard]] std::uint64_t tile(const Block& block) const {
    return block.first * tiling.tile_elements();
  }
};

/// Address registers, SCALE_REG, STRIDE_REG, the constant rows, this position's mask and rotary
/// rows, and the permutation tile (the first of the weight stream).
void emit_setup(const KernelContext& context);

/// residual = row `token` of the embedding.
void emit_embedding(const KernelContext& context);

/// normed = residual / sqrt(sum of squares + dim * epsilon). The gain and the factor sqrt(dim)
/// that make it an RMSNorm are part of the weights of the product that follows.
void emit_rmsnorm(const KernelContext& context);

/// What a product does with its output tiles.
enum class Destination : std::uint8_t { Overwrite, AddTo };

/// outputs = W inputs, or outputs += W inputs, for the next inputs x outputs tiles of the stream:
/// one M_MV a tile, one M_MV_WO an output tile. Counts are rows of the two blocks from their start.
void emit_product(const KernelContext& context, const Block& inputs, std::uint64_t input_tiles,
                  const Block& outputs, std::uint64_t output_tiles,
                  Destination destination = Destination::Overwrite);

/// Turns the query and key rows of `qkv` by the position.
void emit_rope(const KernelContext& context);

/// Writes the key and value rows of `qkv` to the cache at this position.
void emit_cache_append(const KernelContext& context);

/// attention = softmax(q K^T) V over the positions so far, head by head.
void emit_attention(const KernelContext& context);

/// hidden = silu(W1 normed) * (W3 normed), for weights that hold -W1 and -W3, tile by tile of W1
/// and W3 in turn.
void emit_swiglu(const KernelContext& context);

/// Advances a pointer at the end of a loop body that runs `count` times; once needs no advance.
inline void step(const KernelContext& context, Gp pointer, std::uint64_t amount,
                 std::uint64_t count) {
  if (count > 1) context.emitter.advance(pointer, amount);
}

}  // namespace plena
