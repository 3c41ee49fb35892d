#include "plena/compiler/tiling.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plena/compiler/tiled_graph.h"

namespace plena {
namespace {

// Heads that share `width` evenly, on tiles of 64.
HeadShape shape_of(std::uint32_t width, std::uint32_t heads, std::uint32_t kv_heads) {
  return {heads, kv_heads, width / heads};
}

HeadLayout layout_of(std::uint32_t width, std::uint32_t heads, std::uint32_t kv_heads) {
  return lay_out_heads(shape_of(width, heads, kv_heads), 64, 1, {.dim = width}).value();
}

TEST(Tiling, RoundsEveryWidthUpToTiles) {
  EXPECT_EQ(tiles_of(64, 64), 1U);
  EXPECT_EQ(tiles_of(172, 64), 3U);
}

// Elements 0 and 2 turn together, 1 and 3; the last two do not turn.
TEST(Tiling, MakesTheHalvesOfARotaryHeadNeighbours) {
  EXPECT_EQ(rotary_order(6, 4, true), (std::vector<std::uint32_t>{0, 2, 1, 3, 4, 5}));
  EXPECT_EQ(rotary_order(4, 4, false), (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

// Four KV heads of 8 lanes fill half a row. Twice there, all eight query heads find their own lanes
// in one row: 2 * 8 tiles of weights of 16 cycles less, and 32 columns of V more.
TEST(HeadLayout, CopiesNarrowKvHeadsWhereTilesOfWeightsCostMore) {
  const HeadLayout layout = lay_out_heads({8, 4, 8}, 64, 1, {.dim = 512, .context = 128}).value();
  EXPECT_EQ(layout.copies, 2U);
  EXPECT_EQ(layout.groups, 1U);
  EXPECT_EQ(layout.tiles, 1U);
  EXPECT_EQ(layout.slots, 8U);
}

// stories260K: 2 tiles of weights of 16 cycles less, but 32 columns of V more at each of 4 tiles of
// positions.
TEST(HeadLayout, SharesColumnsOfValuesWhereContextIsLong) {
  const HeadLayout layout = lay_out_heads({8, 4, 8}, 64, 1, {.dim = 64, .context = 512}).value();
  EXPECT_EQ(layout.copies, 1U);
  EXPECT_EQ(layout.groups, 2U);
  EXPECT_EQ(layout.slots, 4U);
}

// SmolLM2-135M: nine heads of 64, three KV heads; every KV head has a tile of its own and its
// three query heads a row each.
TEST(HeadLayout, GivesWideHeadsRowsOfTheirOwn) {
  const HeadLayout layout = layout_of(576, 9, 3);
  EXPECT_EQ(layout.copies, 1U);
  EXPECT_EQ(layout.groups, 3U);
  EXPECT_EQ(layout.tiles, 3U);
  EXPECT_EQ(layout.slots, 1U);
}

// Six KV heads of 16 lanes need two rows: three in each, not four and two.
TEST(HeadLayout, SpreadsSlotsEvenlyOverTiles) {
  const HeadLayout layout = layout_of(96, 6, 6);
  EXPECT_EQ(layout.tiles, 2U);
  EXPECT_EQ(layout.slots, 3U);
}

TEST(HeadLayout, PadsAHeadToADivisorOfTheRow) {
  const HeadLayout layout = layout_of(40, 2, 2);
  EXPECT_EQ(layout.head_lanes, 32U);
  EXPECT_EQ(layout.slots, 2U);
}

// Whatever the sizes: every element of the query vector has one lane, and the lanes of a query
// head lie over the lanes of its KV head.
TEST(HeadLayout, PutsEveryQueryHeadOverItsKvHead) {
  for (const auto& [dim, heads, kv_heads] :
       {std::tuple{64U, 8U, 4U}, std::tuple{64U, 4U, 4U}, std::tuple{576U, 9U, 3U},
        std::tuple{96U, 6U, 6U}, std::tuple{96U, 12U, 2U}, std::tuple{40U, 2U, 1U},
        std::tuple{320U, 10U, 5U}, std::tuple{64U, 8U, 1U}, std::tuple{400U, 4U, 2U}}) {
    const HeadShape shape = shape_of(dim, heads, kv_heads);
    const HeadLayout layout = layout_of(dim, heads, kv_heads);
    const auto order = rotary_order(shape.head_dim, shape.head_dim, true);
    const LaneMap queries = query_lanes(shape, layout, order, 64);
    const LaneMap keys = key_lanes(shape, layout, order, 64);
    ASSERT_EQ(queries.size(), std::size_t{layout.query_rows()} * 64);
    ASSERT_EQ(keys.size(), std::size_t{layout.key_rows()} * 64);
    std::multiset<std::uint32_t> seen;
    for (std::size_t lane = 0; lane < queries.size(); ++lane) {
      if (queries[lane] == kPadding) continue;
      seen.insert(queries[lane]);
      const std::size_t row = lane / 64;
      const std::size_t tile = row / layout.span / layout.groups;
      const std::uint32_t key = keys[(tile * layout.span + row % layout.span) * 64 + lane % 64];
      const std::uint32_t head = queries[lane] / shape.head_dim;
      ASSERT_NE(key, kPadding);
      EXPECT_EQ(key / shape.head_dim, head / (heads / kv_heads));
      EXPECT_EQ(key % shape.head_dim, queries[lane] % shape.head_dim);
    }
    EXPECT_EQ(seen.size(), dim);
    EXPECT_EQ(std::set<std::uint32_t>(seen.begin(), seen.end()).size(), dim);
  }
}

TEST(Tiling, RefusesHeadsThatDoNotDivide) {
  EXPECT_FALSE(lay_out_heads({8, 3, 8}, 64, 1, {}));
  EXPECT_FALSE(lay_out_heads({0, 0, 8}, 64, 1, {}));
}

std::vector<Layer> layers_of(std::initializer_list<std::size_t> kinds) {
  std::vector<Layer> layers;
  for (const std::size_t kind : kinds) layers.emplace_back().kind = kind;
  return layers;
}

std::string text_of(const std::vector<LayerLoop>& loops) {
  std::string text;
  for (const LayerLoop& loop : loops) {
    text += fmt::format("{}(", loop.count);
    for (const LayerLoop::Run& run : loop.body) text += fmt::format(" {}x{}", run.layers, run.kind);
    text += " )";
  }
  return text;
}

TEST(LayerLoops, FindThePatternThatRepeatsFarthest) {
  EXPECT_EQ(text_of(layer_loops(layers_of({0, 0, 0}))), "3( 1x0 )");
  EXPECT_EQ(text_of(layer_loops(layers_of({0, 1, 0, 1, 0, 1}))), "3( 1x0 1x1 )");
  EXPECT_EQ(text_of(layer_loops(layers_of({0, 0, 1, 0, 0, 1, 0}))), "2( 2x0 1x1 )1( 1x0 )");
  EXPECT_EQ(text_of(layer_loops(layers_of({0, 1}))), "1( 1x0 )1( 1x1 )");
}

}  // namespace
}  // namespace plena
