#include "plena/compiler/tiling.h"

#include <algorithm>

#include <fmt/format.h>

namespace plena {

namespace {

constexpr std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// The narrowest slot that a row can be cut into and that holds a head.
std::uint32_t slot_lanes(std::uint32_t head_dim, std::uint32_t mlen) {
  std::uint32_t lanes = head_dim;
  while (mlen % lanes != 0) ++lanes;
  return lanes;
}

// The most copies of all KV heads that fit one row and serve whole groups of query heads.
std::uint32_t copies_in_a_row(std::uint32_t group, std::uint64_t kv_lanes, std::uint32_t mlen) {
  for (std::uint32_t copies = group; copies > 1; --copies) {
    if (group % copies == 0 && copies * kv_lanes <= mlen) return copies;
  }
  return 1;
}

HeadLayout lay_out_heads(const LlamaConfig& config, std::uint32_t mlen) {
  HeadLayout layout;
  const std::uint32_t group = config.heads / config.kv_heads;
  layout.head_lanes = slot_lanes(config.head_dim(), mlen);
  const std::uint64_t kv_lanes = std::uint64_t{config.kv_heads} * layout.head_lanes;
  layout.copies = copies_in_a_row(group, kv_lanes, mlen);
  layout.groups = group / layout.copies;
  const std::uint32_t slots = layout.copies * config.kv_heads;
  layout.tiles = ceil_div(slots, mlen / layout.head_lanes);
  layout.slots = ceil_div(slots, layout.tiles);
  return layout;
}

}  // namespace

Result<LlamaTiling> tile_llama(const LlamaConfig& config, std::uint32_t mlen) {
  if (config.dim == 0 || config.hidden_dim == 0 || config.layers == 0 || config.heads == 0 ||
      config.kv_heads == 0 || config.vocab == 0 || config.context == 0) {
    return fail(ErrorCode::Unsupported, "every size of a model has to be at least 1");
  }
  if (config.dim % config.heads != 0 || config.heads % config.kv_heads != 0) {
    return fail(ErrorCode::Unsupported,
                "{} heads over {} elements with {} KV heads do not divide evenly", config.heads,
                config.dim, config.kv_heads);
  }
  if (config.head_dim() > mlen) {
    return fail_with_hint(ErrorCode::Unsupported,
                          fmt::format("a head of {} elements is wider than a tile (MLEN {})",
                                      config.head_dim(), mlen),
                          fmt::format("raise MLEN and VLEN to {} or more", config.head_dim()));
  }
  if (config.head_dim() % 2 != 0) {
    return fail(ErrorCode::Unsupported,
                "a head of {} elements: rotary embedding turns pairs, so it has to be even",
                config.head_dim());
  }
  LlamaTiling tiling;
  tiling.mlen = mlen;
  tiling.dim_tiles = ceil_div(config.dim, mlen);
  tiling.hidden_tiles = ceil_div(config.hidden_dim, mlen);
  tiling.vocab_tiles = ceil_div(config.vocab, mlen);
  tiling.context_tiles = ceil_div(config.context, mlen);
  tiling.heads = lay_out_heads(config, mlen);
  return tiling;
}

LaneMap dense_lanes(std::uint32_t width, std::uint32_t mlen) {
  LaneMap lanes(std::size_t{ceil_div(width, mlen)} * mlen, kPadding);
  for (std::uint32_t i = 0; i < width; ++i) lanes[i] = i;
  return lanes;
}

LaneMap query_lanes(const LlamaConfig& config, const LlamaTiling& tiling) {
  const HeadLayout& layout = tiling.heads;
  const std::uint32_t group = config.heads / config.kv_heads;
  LaneMap lanes(std::size_t{layout.query_tiles()} * tiling.mlen, kPadding);
  for (std::uint32_t tile = 0; tile < layout.tiles; ++tile) {
    for (std::uint32_t row = 0; row < layout.groups; ++row) {
      for (std::uint32_t slot = 0; slot < layout.slots; ++slot) {
        const std::uint32_t index = tile * layout.slots + slot;
        if (index >= layout.copies * config.kv_heads) continue;
        const std::uint32_t kv_head = index % config.kv_heads;
        const std::uint32_t head = kv_head * group + row * layout.copies + index / config.kv_heads;
        const std::size_t first = std::size_t{tile * layout.groups + row} * tiling.mlen +
                                  std::size_t{slot} * layout.head_lanes;
        for (std::uint32_t i = 0; i < config.head_dim(); ++i) {
          lanes[first + i] = head * config.head_dim() + i;
        }
      }
    }
  }
  return lanes;
}

LaneMap key_lanes(const LlamaConfig& config, const LlamaTiling& tiling) {
  const HeadLayout& layout = tiling.heads;
  LaneMap lanes(std::size_t{layout.tiles} * tiling.mlen, kPadding);
  for (std::uint32_t index = 0; index < layout.copies * config.kv_heads; ++index) {
    const std::size_t first = std::size_t{index / layout.slots} * tiling.mlen +
                              std::size_t{index % layout.slots} * layout.head_lanes;
    for (std::uint32_t i = 0; i < config.head_dim(); ++i) {
      lanes[first + i] = (index % config.kv_heads) * config.head_dim() + i;
    }
  }
  return lanes;
}

}  // namespace plena
