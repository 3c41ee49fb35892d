// The operators of the graph for a block of tokens at once, BLEN of them an instruction: M_MM and
// M_TMM instead of products of a matrix and a vector. See block_plan.h for how rows lie.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "plena/compiler/batch_plan.h"
#include "plena/compiler/block_plan.h"
#include "plena/compiler/kernels.h"

namespace plena {

/// What every kernel of a block works with. What it shares with decoding takes its integers from
/// the first entries.
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

/// The whole entry but, unless all logits are wanted, its ending: the logits of one token, which
/// `emit_ending` computes as for decoding.
void emit_block(const KernelContext& one_token, const BlockPlan& block,
                const std::function<void()>& emit_ending);

/// The context of a block in `plan`, which is that of one token but for what blocks have of their
/// own.
BlockContext block_context(const KernelContext& one_token, const MemoryPlan& plan,
                           const BlockPlan& block);

/// The entry that decodes a token of each of several sequences.
void emit_batch(const KernelContext& one_token, const BatchPlan& batch);

/// One operator of a layer, for all tokens.
void emit_block_operator(const BlockContext& context, const LayerKind& kind, const Operator& op);

void emit_block_setup(const BlockContext& context);
void emit_block_embedding(const BlockContext& context);
void emit_block_norm(const BlockContext& context, const LayerKind& kind, const NormOp& op);
void emit_block_head_norm(const BlockContext& context, const LayerKind& kind, const HeadNormOp& op);
void emit_block_rotation(const BlockContext& context, const RotateOp& op);
void emit_block_attention(const BlockContext& context, const AttentionOp& op);
void emit_block_soft_cap(const BlockContext& context, const SoftCapOp& op);
void emit_block_product(const BlockContext& context, const LayerKind& kind, const ProductOp& op);
void emit_block_experts(const BlockContext& context, const LayerKind& kind, const ExpertsOp& op);
void emit_block_feed_forward(const BlockContext& context, const LayerKind& kind,
                             const FeedForwardOp& op);

/// Key and value rows of `qkv` to the cache at the block's positions.
void emit_block_cache_append(const BlockContext& context, ValueId qkv);

/// The rows of token `last_token` of INT_MEM to where decoding has this value.
void emit_block_pick_token(const BlockContext& context, ValueId value);

/// y = sum of `inputs` tiles of x times as many tiles of Matrix SRAM, all tokens.
struct TileProduct {
  Gp x;                      // first token's row of the first input; moved on
  Gp tile;                   // first tile; kept
  bool tile_walks = false;   // and comes back, where no register is left for a copy: one input
  Gp y;                      // first token's row of the result; moved on
  std::uint64_t inputs = 1;  // tiles of x and of Matrix SRAM
  bool transposed = true;    // tiles hold rows of outputs: M_TMM, not M_MM
  std::span<const std::uint64_t> places{};  // elements from y to each BLEN outputs; empty: in order
  // What else is to be done for the BLEN tokens from x and y on: steps that do not need y, for
  // which the array leaves time between its products.
  std::span<const std::function<void()>> beside{};
};
/// What has no place is not computed.
inline constexpr std::uint64_t kNoPlace = UINT64_MAX;
void emit_tile_product(const BlockContext& context, const TileProduct& product);

/// The places of BLEN lanes each of one row where any lane of `lanes` is in use, in order.
std::vector<std::uint64_t> places_in_use(const BlockContext& context,
                                         std::span<const std::uint32_t> lanes);

/// How many of `count` equal steps stand next to each other in a loop: as many as divide it, up to
/// `most`.
inline std::uint64_t abreast(std::uint64_t count, std::uint64_t most) {
  while (count % most != 0) --most;
  return most;
}

/// Pointers to a few consecutive rows, so that none waits for another's advance.
class RowsAbreast {
 public:
  RowsAbreast(const BlockContext& context, std::uint64_t rows, std::string_view what)
      : e_(context.emitter), vlen_(context.settings.vlen) {
    for (std::uint64_t i = 0; i < rows; ++i) pointers_.emplace_back(e_, what);
  }
  void set(std::uint64_t first) const {
    for (std::uint64_t i = 0; i < size(); ++i) e_.set(pointers_[i], first + i * vlen_);
  }
  void set(Gp first) const {
    for (std::uint64_t i = 0; i < size(); ++i) e_.offset(pointers_[i], first, i * vlen_);
  }
  /// From `offset` elements behind the address kept in INT_MEM on.
  void load(const BlockContext& context, const Block& kept, std::uint64_t offset = 0) const {
    load_kept(context, pointers_[0], kept, kept.name);
    if (offset != 0) e_.advance(pointers_[0], offset);
    for (std::uint64_t i = 1; i < size(); ++i) e_.offset(pointers_[i], pointers_[0], i * vlen_);
  }
  /// All of them to the rows behind.
  void advance() const {
    for (const HeldGp& pointer : pointers_) e_.advance(pointer, size() * vlen_);
  }
  [[nodiscard]] Gp operator[](std::uint64_t row) const { return pointers_[row]; }
  [[nodiscard]] std::uint64_t size() const { return pointers_.size(); }

 private:
  Emitter& e_;
  std::uint64_t vlen_;
  std::deque<HeldGp> pointers_;
};

}  // namespace plena
