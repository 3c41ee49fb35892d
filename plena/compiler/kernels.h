// The operators of the graph as instruction sequences, one file each. Every kernel reads and writes
// blocks of the memory plan and leaves no register behind.
//
// They decode one token: a vector of the model is a few rows of Vector SRAM, MLEN lanes each; its
// padding lanes are 0 (kernels keep them so). Those of a block of tokens are block_kernels.h's.
#pragma once

#include <cstdint>
#include <optional>

#include "plena/compiler/constant_pool.h"
#include "plena/compiler/emitter.h"
#include "plena/compiler/graph.h"
#include "plena/compiler/memory_plan.h"
#include "plena/compiler/tiled_graph.h"
#include "plena/config/settings.h"
#include "plena/isa/dialect.h"

namespace plena {

// HBM address registers, set once by emit_setup(); those of windowed tensors again for each layer.
inline constexpr AddressRegister kWeightsBase{0};
inline constexpr AddressRegister kCacheBase{1};
inline constexpr AddressRegister kEmbeddingBase{2};
inline constexpr AddressRegister kPositionsBase{3};
inline constexpr AddressRegister kConstantsBase{4};
inline constexpr AddressRegister kVectorsBase{5};
inline constexpr AddressRegister kExpertVectorsBase{6};

// Selectors of H-type instructions.
inline constexpr std::uint64_t kContiguous = 0;
inline constexpr std::uint64_t kStrided = 1;
inline constexpr std::uint64_t kWeights = 0;     // H_PREFETCH_M
inline constexpr std::uint64_t kActivation = 0;  // H_PREFETCH_V
inline constexpr std::uint64_t kKeyValue = 1;
inline constexpr std::uint64_t kAllLanes = 0;  // rmask

/// Where tiles of a product begin in Matrix SRAM: a slot, and how many tiles behind its start.
struct SlotPlace {
  unsigned slot = 0;
  std::uint64_t skipped = 0;
  friend bool operator==(const SlotPlace&, const SlotPlace&) = default;
};

/// What one product tells the next: weight tiles of it that are on their way already.
struct WeightPipeline {
  std::uint64_t loaded = 0;  // tiles; the stream's pointer is behind them
  SlotPlace place;           // of those
  // For the product that is emitted now: what the one behind it starts with, 0 where nobody knows.
  std::uint64_t next_tiles = 0;
  bool next_in_first_slot = false;
  // Tiles of the product behind the next one: those that may be loaded during attention, and those
  // that are on their way. They come behind the next one's where that is all of them and there is
  // room, so that the other slot is free for the next layer, else to the other slot.
  std::uint64_t behind_next_tiles = 0;
  bool behind_next_whole = false;
  std::uint64_t behind_next_loaded = 0;
  SlotPlace behind_next_place;
  // Those of the product behind that one, in the third slot.
  std::uint64_t third_tiles = 0;
  std::uint64_t third_loaded = 0;
  // The attention whose older cache tiles each layer loads for the next one; nullptr: none.
  const AttentionOp* cache_ahead = nullptr;
};

/// What every kernel works with.
struct KernelContext {
  Emitter& emitter;
  ConstantPool& constants;
  const Settings& settings;
  const Dialect& dialect;
  const TiledGraph& tiled;
  const MemoryPlan& plan;
  const PlanInput& tables;
  WeightPipeline& pipeline;
  Gp weights;  // element of the next tile of the weight stream; products move it on

  /// Address of a row of a Vector SRAM block, in elements.
  [[nodiscard]] std::uint64_t row(const Block& block, std::uint64_t index = 0) const {
    return (block.first + index) * settings.vlen;
  }
  [[nodiscard]] std::uint64_t row(ValueId value, std::uint64_t index = 0) const {
    return row(plan.values[value], index);
  }
  /// Address of the first tile of a Matrix SRAM block, in elements.
  [[nodiscard]] std::uint64_t tile(const Block& block) const {
    return block.first * tiled.tile_elements();
  }
};

/// Address registers, SCALE_REG, STRIDE_REG, the constant rows, this position's masks and table
/// rows; the weight stream's pointer goes to the first layer.
void emit_setup(const KernelContext& context);

/// Of these what a block of tokens needs as well: address registers, SCALE_REG, STRIDE_REG, the
/// constant rows.
void emit_shared_setup(const KernelContext& context);

/// Where tensors have several windows: address registers and first elements of the next layer or of
/// the ending.
void emit_layer_places(const KernelContext& context, bool ending);

/// The tiles that come once and lie first in the weight stream: the permutation of RoPE, and those
/// for sums of weights, which are needed last.
void emit_rotation_tile(const KernelContext& context);
void emit_sum_tiles(const KernelContext& context);

/// All of them; moves the stream's pointer on to the first layer.
void emit_constant_tiles(const KernelContext& context);

/// Masks and rows of tables that follow from the position.
void emit_position(const KernelContext& context);

/// Loads row `token` of the embedding: the residual.
void emit_embedding(const KernelContext& context);

/// What is to be done with rows that emit_setup() and emit_embedding() load, once all loads are
/// under way: terms of the position's rows are added up, and its embedding, where it is learned, to
/// the residual.
void emit_arrived_rows(const KernelContext& context);

/// The first of these alone.
void emit_position_terms(const KernelContext& context);

/// The layer's biases and gains to Vector SRAM; `rows` of them.
void emit_layer_vectors(const KernelContext& context, std::uint32_t rows);

/// Loads `rows` rows from element `from` on to row `to`, as many H_PREFETCH_V as it takes; may move
/// both registers on. Rows behind the last one are overwritten up to a whole transfer.
void load_rows(const KernelContext& context, Gp from, AddressRegister base, Gp to,
               std::uint64_t rows);

/// Loads an entry of a table and adds up its terms, so that `to` starts with its rows.
void load_entry(const KernelContext& context, Gp from, AddressRegister base, Gp to,
                const TableShape& table);

/// The bias of the next `rows` tiles of logits, where they come in pieces.
void emit_logit_bias(const KernelContext& context, const LayerKind& ending, VectorId bias,
                     std::uint64_t rows);

/// Address of the first row of a product's bias.
std::uint64_t bias_address(const KernelContext& context, const LayerKind& kind,
                           const ProductOp& op);

/// Operators of the graph, see graph.h. `vectors` are those of their kind of layer.
void emit_norm(const KernelContext& context, const LayerKind& kind, const NormOp& op);

/// A norm whose factor comes behind the products that read it: W (x s) = (W x) s, so that the array
/// need not wait for s. That of q and k is a factor of their cosines and sines.
struct LateNorm {
  ValueId from = 0;  // x, in place of the norm's output
  Fp scale;          // s
};
/// Whether operator `at` of the layer is a norm that may be late for the next one: few rows, no
/// gain in between, a format that takes products of what is not normed yet, and no other reader.
bool may_be_late(const KernelContext& context, const LayerKind& kind, std::size_t at);
/// scale = the norm's factor.
void emit_norm_scale(const KernelContext& context, const LayerKind& kind, const NormOp& op,
                     Fp scale);
void emit_head_norm(const KernelContext& context, const LayerKind& kind, const HeadNormOp& op);
void emit_rotation(const KernelContext& context, const RotateOp& op,
                   const std::optional<LateNorm>& norm = {});
void emit_attention(const KernelContext& context, const AttentionOp& op);
/// The rows of scores as if of a tile before the first, once for all layers.
void emit_no_scores(const KernelContext& context);
/// What of the cache can be loaded before this position's key and value are known: behind the
/// product that makes them, while others wait for its results.
void emit_early_cache_load(const KernelContext& context, const AttentionOp& op);
/// The attention that stands for those of all layers when each of them loads for the next one, into
/// the half of the tiles that it does not use itself; nullptr where layers differ in what they
/// load, or there are no halves.
const AttentionOp* cache_load_ahead(const KernelContext& context);
/// What the first layer finds loaded then.
void emit_first_cache_load(const KernelContext& context);
void emit_experts(const KernelContext& context, const LayerKind& kind, const ExpertsOp& op);
void emit_soft_cap(const KernelContext& context, const SoftCapOp& op);
/// With a late norm the outputs are those of x itself.
void emit_product(const KernelContext& context, const LayerKind& kind, const ProductOp& op,
                  const std::optional<LateNorm>& norm = {});
void emit_feed_forward(const KernelContext& context, const LayerKind& kind, const FeedForwardOp& op,
                       const std::optional<LateNorm>& norm = {});

/// Key and value rows of `qkv` to the cache at their positions.
void emit_cache_append(const KernelContext& context, ValueId qkv);

/// One product: outputs = W inputs, or outputs += W inputs, for the next inputs x outputs tiles of
/// a stream: one M_TMV a tile, one M_MV_WO an output tile.
struct TiledProduct {
  Gp stream;                  // element of its next tile behind kWeightsBase; moved on
  std::uint64_t inputs = 0;   // address of the first row
  std::uint64_t outputs = 0;  // likewise
  std::uint64_t input_tiles = 0;
  std::uint64_t output_tiles = 0;
  std::uint64_t kinds = 1;            // of outputs, in turn; the first kind is wanted first
  std::optional<Fp> scale;            // a factor of the outputs
  std::optional<std::uint64_t> bias;  // address of its first row
  bool add = false;
};
void emit_tiled_product(const KernelContext& context, const TiledProduct& product);

/// How a product's tiles come into a slot of Matrix SRAM: the tiles of `outputs` output tiles at a
/// time or, where one has too many, `chunks` chunks of `inputs` tiles.
struct TileGroup {
  std::uint64_t inputs = 1;
  std::uint64_t chunks = 1;
  std::uint64_t outputs = 1;
  std::uint64_t first_tiles = 0;  // of the first group
  bool whole = false;             // the first group is all there is
};
TileGroup tile_group(const MemoryPlan& plan, std::uint64_t input_tiles, std::uint64_t output_tiles);

/// Up to `tiles` tiles that the next product starts with, as far as they are not on their way.
void load_first_tiles(const KernelContext& context, std::uint64_t tiles);

/// The first tiles of the product behind the next one, where attention leaves time for them; and,
/// when those are under way, of the one behind that.
void load_behind_next(const KernelContext& context);
void load_third(const KernelContext& context);

/// A gated or plain feed-forward layer up to its down product; see FeedForwardOp.
struct TiledFeedForward {
  Gp stream;
  std::optional<LateNorm> norm;
  std::optional<std::uint64_t> bias;  // address of its first row
};
void emit_feed_forward(const KernelContext& context, const FeedForwardOp& op,
                       const TiledFeedForward& tiled);

/// Rows of Vector SRAM at equal distances.
struct RowSeries {
  std::uint64_t first = 0;   // address
  std::uint64_t stride = 0;  // elements from one to the next
};

/// to = activation(gate) [* up] for `count` rows, a few of them side by side. `gate` and `up` are
/// overwritten; FeedForwardOp says what sign they have.
struct ActivationRows {
  std::uint64_t count = 0;
  RowSeries gate;
  RowSeries up;  // unused where the layer is not gated
  RowSeries to;
};
/// Whether it takes rows of MemoryPlan::activation.
bool needs_another_stage(const ActivationShape& activation, const Dialect& dialect);
void emit_activation(const KernelContext& context, const ActivationShape& activation, bool gated,
                     const ActivationRows& rows);

/// to = cap * tanh(from / cap), where `from` holds twice the quotient: rows of Vector SRAM may be
/// the same.
void emit_scaled_tanh(const KernelContext& context, Gp to, Gp from, float cap);

/// `count` equal steps as a loop over up to `most` copies of them, as even as they come: what the
/// loop and the pointers common to its steps cost is paid once a turn, and the copies are a longer
/// stretch of instructions to order. `body(copies, more)` emits that many steps; with `more` it
/// moves on to those behind them.
template <class Body>
void unroll(Emitter& emitter, std::uint64_t count, std::uint64_t most, std::string_view what,
            Body&& body) {
  const std::uint64_t least_turns = (count + most - 1) / most;
  const std::uint64_t copies = (count + least_turns - 1) / least_turns;
  const std::uint64_t turns = count / copies;
  const std::uint64_t rest = count % copies;
  {
    Loop loop(emitter, turns, what);
    body(copies, turns > 1 || rest != 0);
  }
  if (rest != 0) body(rest, false);
}

/// Copies of a short step that the kernels are content with.
inline constexpr std::uint64_t kMostCopies = 8;

/// Advances a pointer at the end of a loop body that runs `count` times; once needs no advance.
inline void step(const KernelContext& context, Gp pointer, std::uint64_t amount,
                 std::uint64_t count) {
  if (count > 1) context.emitter.advance(pointer, amount);
}

/// A value of INT_MEM that the program keeps for itself.
inline void load_kept(const KernelContext& context, Gp to, const Block& place,
                      std::string_view what, Gp index = kZeroGp) {
  context.emitter.emit(Op::S_LD_INT, {to, index, place.first}, what);
}
inline void keep(const KernelContext& context, Gp from, const Block& place) {
  context.emitter.emit(Op::S_ST_INT, {from, kZeroGp, place.first});
}

}  // namespace plena
