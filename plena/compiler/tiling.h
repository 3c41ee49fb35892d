// How the vectors of a model are cut into rows of MLEN lanes, and where each attention head sits in
// them. Numbers only: what they mean for memory is memory_plan.h's, for instructions the kernels'.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "plena/base/error.h"

namespace plena {

/// A lane, row or column that belongs to nothing: zero in the weights, never read from the result.
inline constexpr std::uint32_t kPadding = std::numeric_limits<std::uint32_t>::max();

/// Element of a vector of the model that each lane of its tiles holds, or kPadding.
using LaneMap = std::vector<std::uint32_t>;

struct HeadShape {
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;  // divides heads
  std::uint32_t head_dim = 0;

  friend bool operator==(const HeadShape&, const HeadShape&) = default;
};

/// Where heads sit in rows of MLEN lanes.
///
/// A row of K (or V) is cut into slots of `head_lanes` lanes, one KV head each. KV heads narrower
/// than a row may be copied `copies` times, so that as many query heads of a group find their KV
/// head in lanes of their own; what is left of a group is spread over `groups` rows of Q. Copies
/// save rows of Q, and tiles of the matrices around them; heads of a group that share a slot share
/// the products with its columns of V.
/// Slot s of K tile c of query row g belongs to query head
///   kv_head * (heads / kv_heads) + g * copies + copy,  with copy * kv_heads + kv_head = c * slots
///   + s.
///
/// A head wider than a row spans several: then slots and copies are 1, and each "row" above is
/// `span` consecutive rows.
struct HeadLayout {
  std::uint32_t head_lanes = 0;  // lanes of a slot: head_dim, padded to a divisor of MLEN and
                                 // whole BLEN
  std::uint32_t copies = 0;      // of each KV head in a row of K
  std::uint32_t groups = 0;      // rows of Q over one row of K
  std::uint32_t tiles = 0;       // tiles of a row of K, V
  std::uint32_t slots = 0;       // slots in use of each tile
  std::uint32_t span = 1;        // rows of a head

  /// Query heads that share one tile of K.
  [[nodiscard]] std::uint32_t heads_per_tile() const { return slots * groups; }
  /// Rows of the queries and of the attention's output, in the order [tile][group][span].
  [[nodiscard]] std::uint32_t query_rows() const { return tiles * groups * span; }
  /// Rows of the keys and of the values, in the order [tile][span].
  [[nodiscard]] std::uint32_t key_rows() const { return tiles * span; }
};

/// What decides how many copies a token costs least with: how wide the residual stream is, and
/// how many positions there are.
struct HeadUse {
  std::uint32_t dim = 1;
  std::uint32_t context = 1;
};

/// Heads of equal size that divide evenly, each on a multiple of `blen` lanes, so that M_MM_WO
/// writes one head's alone; anything else is an error.
Result<HeadLayout> lay_out_heads(const HeadShape& shape, std::uint32_t mlen, std::uint32_t blen,
                                 const HeadUse& use);

/// Element of a head in each of its lanes. Rotary embedding turns neighbouring lanes: where a model
/// turns element i of the first `rotary` with element i + rotary / 2, those become neighbours.
std::vector<std::uint32_t> rotary_order(std::uint32_t head_dim, std::uint32_t rotary, bool halves);

/// A head's elements as they come.
std::vector<std::uint32_t> plain_order(std::uint32_t head_dim);

/// Tiles that `width` elements take.
constexpr std::uint32_t tiles_of(std::uint64_t width, std::uint32_t mlen) {
  return static_cast<std::uint32_t>((width + mlen - 1) / mlen);
}

/// Lanes of a vector of `width` elements in order, padded to whole tiles.
LaneMap dense_lanes(std::uint32_t width, std::uint32_t mlen);

/// Element of the model's query vector [heads * head_dim] in each lane of the query rows.
LaneMap query_lanes(const HeadShape& shape, const HeadLayout& layout,
                    const std::vector<std::uint32_t>& order, std::uint32_t mlen);

/// Element of the model's key or value vector [kv_heads * head_dim] in each lane of the key rows.
LaneMap key_lanes(const HeadShape& shape, const HeadLayout& layout,
                  const std::vector<std::uint32_t>& order, std::uint32_t mlen);

/// Element of a head [head_dim] in each lane of the `span` rows that any head's rows look like.
LaneMap head_lanes(const HeadLayout& layout, const std::vector<std::uint32_t>& order,
                   std::uint32_t mlen);

}  // namespace plena
