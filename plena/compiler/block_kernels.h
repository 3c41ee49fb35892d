// The operators of the graph for a block of tokens at once, BLEN of them an instruction: M_MM and
// M_TMM instead of products of a matrix and a vector. See block_plan.h for how rows lie.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "plena/compiler/block_plan.h"
#include "plena/compiler/kernels.h"

namespace plena {

/// What every kernel of a block works with. `tokens` of the base is 1, so that what it shares with
/// decoding takes its integers from the first entries.
struct BlockContext : KernelContext {
  const BlockPlan& block;

  /// Address of the first token's row of tile `tile` of a block or value.
  [[nodiscard]] std::uint64_t rows(const Block& place, std::uint64_t tile = 0) const {
    return (place.first + tile * block.tokens) * settings.vlen;
  }
  [[nodiscard]] std::uint64_t rows(ValueId value, std::uint64_t tile = 0) const {
    return rows(block.values[value], tile);
  }
  /// Elements from one tile's rows to the next one's.
  [[nodiscard]] std::uint64_t tile_rows() const {
    return std::uint64_t{block.tokens} * settings.vlen;
  }
};

/// The whole entry but, where the model is causal, its ending: the logits of one token, which
/// `emit_ending` computes as for decoding.
void emit_block(const KernelContext& one_token, const BlockPlan& block,
                const std::function<void()>& emit_ending);

void emit_block_setup(const BlockContext& context);
void emit_block_embedding(const BlockContext& context);
void emit_block_norm(const BlockContext& context, const LayerKind& kind, const NormOp& op);
void emit_block_head_norm(const BlockContext& context, const LayerKind& kind, const HeadNormOp& op);
void emit_block_rotation(const BlockContext& context, const RotateOp& op);
void emit_block_attention(const BlockContext& context, const AttentionOp& op);
void emit_block_soft_cap(const BlockContext& context, const SoftCapOp& op);
void emit_block_product(const BlockContext& context, const LayerKind& kind, const ProductOp& op);
void emit_block_feed_forward(const BlockContext& context, const LayerKind& kind,
                             const FeedForwardOp& op);

/// Key and value rows of `qkv` to the cache at the block's positions.
void emit_block_cache_append(const BlockContext& context, ValueId qkv);

/// The rows of token `last_token` of INT_MEM to where decoding has this value.
void emit_block_pick_token(const BlockContext& context, ValueId value);

/// y = sum of `inputs` tiles of x times as many tiles of Matrix SRAM, all tokens.
struct TileProduct {
  Gp x;                                     // first token's row of the first input; moved on
  Gp tile;                                  // first tile; kept
  Gp y;                                     // first token's row of the result; moved on
  std::uint64_t inputs = 1;                 // tiles of x and of Matrix SRAM
  bool transposed = true;                   // tiles hold rows of outputs: M_TMM, not M_MM
  std::span<const std::uint64_t> places{};  // elements from y to each BLEN outputs; empty: in order
  std::function<void()> finish{};           // what follows for the BLEN tokens from x and y on
};
/// What has no place is not computed.
inline constexpr std::uint64_t kNoPlace = UINT64_MAX;
void emit_tile_product(const BlockContext& context, const TileProduct& product);

/// Runs `body(i)` for `count` steps a loop takes `abreast` of at a time: independent chains next to
/// each other. `abreast` divides `count`.
inline std::uint64_t abreast(std::uint64_t count, std::uint64_t most) {
  while (count % most != 0) --most;
  return most;
}

}  // namespace plena
