// How a Llama model is cut into tiles of MLEN lanes, and where each attention head sits in them.
// Numbers only: what they mean for memory is memory_plan.h's, for instructions the kernels'.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "plena/base/error.h"
#include "plena/config/settings.h"
#include "plena/model/llama.h"

namespace plena {

/// A lane, row or column that belongs to nothing: zero in the weights, never read from the result.
inline constexpr std::uint32_t kPadding = std::numeric_limits<std::uint32_t>::max();

/// Element of a vector of the model that each lane of its tiles holds, or kPadding.
using LaneMap = std::vector<std::uint32_t>;

/// Where heads sit in rows of MLEN lanes.
///
/// A row of K (or V) is cut into slots of `head_lanes` lanes, one KV head each. KV heads narrower
/// than a row are copied `copies` times, so that as many query heads as possible of a group find
/// their KV head in lanes of their own; what is left of a group is spread over `groups` rows of Q.
/// Slot s of K tile c of query row g belongs to query head
///   kv_head * (heads / kv_heads) + g * copies + copy,  with copy * kv_heads + kv_head = c * slots
///   + s.
struct HeadLayout {
  std::uint32_t head_lanes = 0;  // lanes of a slot: head_dim, padded to a divisor of MLEN
  std::uint32_t copies = 0;      // of each KV head in a row of K
  std::uint32_t groups = 0;      // rows of Q over one row of K
  std::uint32_t tiles = 0;       // tiles of a row of K, V
  std::uint32_t slots = 0;       // slots in use of each tile

  /// Query heads that share one tile of K.
  [[nodiscard]] std::uint32_t heads_per_tile() const { return slots * groups; }
  /// Rows of the queries and of the attention's output, in the order [tile][group].
  [[nodiscard]] std::uint32_t query_tiles() const { return tiles * groups; }
};

struct LlamaTiling {
  std::uint32_t mlen = 0;
  std::uint32_t dim_tiles = 0;
  std::uint32_t hidden_tiles = 0;
  std::uint32_t vocab_tiles = 0;
  std::uint32_t context_tiles = 0;  // tiles of MLEN positions
  HeadLayout heads;

  [[nodiscard]] std::uint64_t tile_elements() const { return std::uint64_t{mlen} * mlen; }
  /// Tiles of K and V of one layer that hold the same positions.
  [[nodiscard]] std::uint32_t cache_tiles() const { return 2 * heads.tiles; }
};

/// Fails where a head is wider than a tile or its size is odd (RoPE turns pairs).
Result<LlamaTiling> tile_llama(const LlamaConfig& config, std::uint32_t mlen);

/// Lanes of a vector of `width` elements in order, padded to whole tiles.
LaneMap dense_lanes(std::uint32_t width, std::uint32_t mlen);

/// Element of the model's query vector [heads * head_dim] in each lane of the query tiles.
LaneMap query_lanes(const LlamaConfig& config, const LlamaTiling& tiling);

/// Element of the model's key or value vector [kv_heads * head_dim] in each lane of the K tiles.
LaneMap key_lanes(const LlamaConfig& config, const LlamaTiling& tiling);

}  // namespace plena
