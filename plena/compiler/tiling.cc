#include "plena/compiler/tiling.h"

#include <numeric>

#include <fmt/format.h>

namespace plena {

namespace {

// The narrowest slot of whole BLEN lanes that a row can be cut into and that holds a head.
std::uint32_t slot_lanes(std::uint32_t head_dim, std::uint32_t mlen, std::uint32_t blen) {
  std::uint32_t lanes = head_dim;
  while (mlen % lanes != 0 || lanes % blen != 0) ++lanes;
  return lanes;
}

// Cycles a layer takes for what depends on the copies, half way through the context: tiles of
// weights before and behind the rows of Q, which come at 256 bytes a cycle, about a byte an
// element, and the columns of V, each about a cycle a tile of positions.
std::uint64_t cycles_with(std::uint32_t copies, std::uint32_t group, std::uint64_t kv_lanes,
                          std::uint32_t mlen, const HeadUse& use) {
  constexpr std::uint64_t kBytesACycle = 256;
  const std::uint64_t tile = std::uint64_t{mlen} * mlen;
  const std::uint64_t weight_tiles = std::uint64_t{2} * (group / copies) * tiles_of(use.dim, mlen);
  return weight_tiles * tile / kBytesACycle + copies * kv_lanes * tiles_of(use.context / 2, mlen);
}

// The cheapest number of copies of all KV heads that fit one row and serve whole groups of query
// heads.
std::uint32_t copies_in_a_row(std::uint32_t group, std::uint64_t kv_lanes, std::uint32_t mlen,
                              const HeadUse& use) {
  const auto cycles = [&](std::uint32_t copies) {
    return cycles_with(copies, group, kv_lanes, mlen, use);
  };
  std::uint32_t best = 1;
  for (std::uint32_t copies = 2; copies <= group; ++copies) {
    const bool fit = group % copies == 0 && copies * kv_lanes <= mlen;
    if (fit && cycles(copies) < cycles(best)) best = copies;
  }
  return best;
}

HeadLayout lay_out_wide_heads(const HeadShape& shape, std::uint32_t mlen) {
  HeadLayout layout;
  layout.span = tiles_of(shape.head_dim, mlen);
  layout.head_lanes = mlen;
  layout.copies = 1;
  layout.groups = shape.heads / shape.kv_heads;
  layout.tiles = shape.kv_heads;
  layout.slots = 1;
  return layout;
}

HeadLayout lay_out_narrow_heads(const HeadShape& shape, std::uint32_t mlen, std::uint32_t blen,
                                const HeadUse& use) {
  HeadLayout layout;
  const std::uint32_t group = shape.heads / shape.kv_heads;
  layout.head_lanes = slot_lanes(shape.head_dim, mlen, blen);
  const std::uint64_t kv_lanes = std::uint64_t{shape.kv_heads} * layout.head_lanes;
  layout.copies = copies_in_a_row(group, kv_lanes, mlen, use);
  layout.groups = group / layout.copies;
  const std::uint32_t slots = layout.copies * shape.kv_heads;
  layout.tiles = tiles_of(slots, mlen / layout.head_lanes);
  layout.slots = tiles_of(slots, layout.tiles);
  return layout;
}

// Puts the elements of head `head` into its lanes, which start at `lanes[first]`.
void place_head(LaneMap& lanes, std::size_t first, std::uint32_t head,
                const std::vector<std::uint32_t>& order) {
  const auto head_dim = static_cast<std::uint32_t>(order.size());
  for (std::uint32_t i = 0; i < head_dim; ++i) lanes[first + i] = head * head_dim + order[i];
}

}  // namespace

Result<HeadLayout> lay_out_heads(const HeadShape& shape, std::uint32_t mlen, std::uint32_t blen,
                                 const HeadUse& use) {
  if (shape.heads == 0 || shape.kv_heads == 0 || shape.head_dim == 0 ||
      shape.heads % shape.kv_heads != 0) {
    return fail(ErrorCode::Unsupported,
                "{} heads of {} elements over {} KV heads do not divide evenly", shape.heads,
                shape.head_dim, shape.kv_heads);
  }
  return shape.head_dim > mlen ? lay_out_wide_heads(shape, mlen)
                               : lay_out_narrow_heads(shape, mlen, blen, use);
}

std::vector<std::uint32_t> plain_order(std::uint32_t head_dim) {
  std::vector<std::uint32_t> order(head_dim);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

std::vector<std::uint32_t> rotary_order(std::uint32_t head_dim, std::uint32_t rotary, bool halves) {
  std::vector<std::uint32_t> order = plain_order(head_dim);
  if (!halves) return order;
  for (std::uint32_t i = 0; i < rotary / 2; ++i) {
    order[2 * i] = i;
    order[2 * i + 1] = i + rotary / 2;
  }
  return order;
}

LaneMap dense_lanes(std::uint32_t width, std::uint32_t mlen) {
  LaneMap lanes(std::size_t{tiles_of(width, mlen)} * mlen, kPadding);
  for (std::uint32_t i = 0; i < width; ++i) lanes[i] = i;
  return lanes;
}

LaneMap query_lanes(const HeadShape& shape, const HeadLayout& layout,
                    const std::vector<std::uint32_t>& order, std::uint32_t mlen) {
  const std::uint32_t group = shape.heads / shape.kv_heads;
  LaneMap lanes(std::size_t{layout.query_rows()} * mlen, kPadding);
  for (std::uint32_t tile = 0; tile < layout.tiles; ++tile) {
    for (std::uint32_t row = 0; row < layout.groups; ++row) {
      for (std::uint32_t slot = 0; slot < layout.slots; ++slot) {
        const std::uint32_t index = tile * layout.slots + slot;
        if (index >= layout.copies * shape.kv_heads) continue;
        const std::uint32_t kv_head = index % shape.kv_heads;
        const std::uint32_t head = kv_head * group + row * layout.copies + index / shape.kv_heads;
        const std::size_t first = std::size_t{(tile * layout.groups + row) * layout.span} * mlen +
                                  std::size_t{slot} * layout.head_lanes;
        place_head(lanes, first, head, order);
      }
    }
  }
  return lanes;
}

LaneMap key_lanes(const HeadShape& shape, const HeadLayout& layout,
                  const std::vector<std::uint32_t>& order, std::uint32_t mlen) {
  LaneMap lanes(std::size_t{layout.key_rows()} * mlen, kPadding);
  for (std::uint32_t index = 0; index < layout.copies * shape.kv_heads; ++index) {
    const std::size_t first = std::size_t{index / layout.slots * layout.span} * mlen +
                              std::size_t{index % layout.slots} * layout.head_lanes;
    place_head(lanes, first, index % shape.kv_heads, order);
  }
  return lanes;
}

LaneMap head_lanes(const HeadLayout& layout, const std::vector<std::uint32_t>& order,
                   std::uint32_t mlen) {
  LaneMap lanes(std::size_t{layout.span} * mlen, kPadding);
  for (std::uint32_t slot = 0; slot < layout.slots; ++slot) {
    place_head(lanes, std::size_t{slot} * layout.head_lanes, 0, order);
  }
  return lanes;
}

}  // namespace plena
