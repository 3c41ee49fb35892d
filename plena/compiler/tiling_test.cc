#include "plena/compiler/tiling.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plena {
namespace {

using ::testing::HasSubstr;

LlamaConfig config_of(std::uint32_t dim, std::uint32_t heads, std::uint32_t kv_heads) {
  return {.dim = dim,
          .hidden_dim = 172,
          .layers = 1,
          .heads = heads,
          .kv_heads = kv_heads,
          .vocab = 512,
          .context = 100};
}

TEST(Tiling, RoundsEveryWidthUpToTiles) {
  const auto tiling = tile_llama(config_of(64, 8, 4), 64).value();
  EXPECT_EQ(tiling.dim_tiles, 1U);
  EXPECT_EQ(tiling.hidden_tiles, 3U);
  EXPECT_EQ(tiling.vocab_tiles, 8U);
  EXPECT_EQ(tiling.context_tiles, 2U);
}

// Four KV heads of 8 lanes fill half a row: each is there twice, and all eight query heads find
// their own lanes in one row.
TEST(HeadLayout, CopiesNarrowKvHeadsUntilTheRowIsFull) {
  const HeadLayout layout = tile_llama(config_of(64, 8, 4), 64).value().heads;
  EXPECT_EQ(layout.copies, 2U);
  EXPECT_EQ(layout.groups, 1U);
  EXPECT_EQ(layout.tiles, 1U);
  EXPECT_EQ(layout.slots, 8U);
}

// SmolLM2-135M: nine heads of 64, three KV heads; every KV head has a tile of its own and its
// three query heads a row each.
TEST(HeadLayout, GivesWideHeadsRowsOfTheirOwn) {
  const HeadLayout layout = tile_llama(config_of(576, 9, 3), 64).value().heads;
  EXPECT_EQ(layout.copies, 1U);
  EXPECT_EQ(layout.groups, 3U);
  EXPECT_EQ(layout.tiles, 3U);
  EXPECT_EQ(layout.slots, 1U);
}

// Six KV heads of 16 lanes need two rows: three in each, not four and two.
TEST(HeadLayout, SpreadsSlotsEvenlyOverTiles) {
  const HeadLayout layout = tile_llama(config_of(96, 6, 6), 64).value().heads;
  EXPECT_EQ(layout.tiles, 2U);
  EXPECT_EQ(layout.slots, 3U);
}

TEST(HeadLayout, PadsAHeadToADivisorOfTheRow) {
  const HeadLayout layout = tile_llama(config_of(40, 2, 2), 64).value().heads;
  EXPECT_EQ(layout.head_lanes, 32U);
  EXPECT_EQ(layout.slots, 2U);
}

// Whatever the sizes: every element of the query vector has one lane, and the lanes of a query
// head lie over the lanes of its KV head.
TEST(HeadLayout, PutsEveryQueryHeadOverItsKvHead) {
  for (const auto& [dim, heads, kv_heads] :
       {std::tuple{64U, 8U, 4U}, std::tuple{64U, 4U, 4U}, std::tuple{576U, 9U, 3U},
        std::tuple{96U, 6U, 6U}, std::tuple{96U, 12U, 2U}, std::tuple{40U, 2U, 1U},
        std::tuple{320U, 10U, 5U}, std::tuple{64U, 8U, 1U}}) {
    const LlamaConfig config = config_of(dim, heads, kv_heads);
    const LlamaTiling tiling = tile_llama(config, 64).value();
    const LaneMap queries = query_lanes(config, tiling);
    const LaneMap keys = key_lanes(config, tiling);
    ASSERT_EQ(queries.size(), std::size_t{tiling.heads.query_tiles()} * 64);
    ASSERT_EQ(keys.size(), std::size_t{tiling.heads.tiles} * 64);
    std::multiset<std::uint32_t> seen;
    for (std::size_t lane = 0; lane < queries.size(); ++lane) {
      if (queries[lane] == kPadding) continue;
      seen.insert(queries[lane]);
      const std::size_t tile = lane / 64 / tiling.heads.groups;
      const std::uint32_t key = keys[tile * 64 + lane % 64];
      const std::uint32_t head = queries[lane] / config.head_dim();
      ASSERT_NE(key, kPadding);
      EXPECT_EQ(key / config.head_dim(), head / (heads / kv_heads));
      EXPECT_EQ(key % config.head_dim(), queries[lane] % config.head_dim());
    }
    EXPECT_EQ(seen.size(), dim);
    EXPECT_EQ(std::set<std::uint32_t>(seen.begin(), seen.end()).size(), dim);
  }
}

TEST(Tiling, RefusesHeadsItCannotPlace) {
  const auto wide = tile_llama(config_of(256, 2, 2), 64);
  ASSERT_FALSE(wide);
  EXPECT_THAT(wide.error().message, HasSubstr("wider than a tile"));
  EXPECT_THAT(wide.error().hint, HasSubstr("128"));
  const auto odd = tile_llama(config_of(6, 2, 2), 64);
  ASSERT_FALSE(odd);
  EXPECT_THAT(odd.error().message, HasSubstr("even"));
  EXPECT_FALSE(tile_llama(config_of(64, 8, 3), 64));
  EXPECT_FALSE(tile_llama(config_of(64, 7, 7), 64));
  EXPECT_FALSE(tile_llama(config_of(0, 8, 4), 64));
}

}  // namespace
}  // namespace plena
