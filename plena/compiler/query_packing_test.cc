#include "plena/compiler/query_packing.h"

#include <set>

#include <gtest/gtest.h>

namespace plena {
namespace {

// A model of nothing but heads.
struct Heads {
  explicit Heads(HeadShape shape) {
    graph.dim = shape.heads * shape.head_dim;
    graph.vocab = graph.context = 64;
    graph.heads = shape;
    graph.head_order = plain_order(shape.head_dim);
    graph.kinds.emplace_back();
    graph.layers.resize(1);
    tiled = tile_graph(graph, settings.mlen, settings.blen).value();
  }
  Settings settings;  // MLEN 64, HLEN 16
  Graph graph;
  TiledGraph tiled;
};

// stories260K: two KV heads in 16 lanes, two query heads each: four heads a row, where one head a
// product would take eight.
TEST(QueryPacking, PutsTheHeadsOfKvHeadsThatShareHlenLanesSideBySide) {
  const Heads heads({.heads = 8, .kv_heads = 4, .head_dim = 8});
  const QueryPacking packing = pack_queries(heads.tiled, heads.settings);
  EXPECT_EQ(packing.families, 2U);
  EXPECT_EQ(packing.packs, 1U);
  EXPECT_EQ(packing.rows, 2U);
  EXPECT_EQ(packing.heads.size(), 4U);
}

// No two heads share a slot of HLEN lanes of a row, and each lies where its KV head does in K.
TEST(QueryPacking, GivesEachHeadASlotOfItsOwnAndTheLanesOfItsKvHead) {
  const Heads heads({.heads = 8, .kv_heads = 4, .head_dim = 8});
  const QueryPacking packing = pack_queries(heads.tiled, heads.settings);
  const HeadLayout& layout = heads.tiled.heads;
  std::set<std::pair<std::uint32_t, std::uint32_t>> slots;
  for (std::uint32_t row = 0; row < layout.query_rows(); ++row) {
    for (std::uint32_t slot = 0; slot < layout.slots; ++slot) {
      const auto place =
          packed_place(packing, heads.tiled, heads.settings, row, slot * layout.head_lanes);
      ASSERT_TRUE(place);
      slots.emplace(place->row, place->lane / heads.settings.hlen);
      const std::uint32_t kv_lane = slot % 4 * layout.head_lanes;
      EXPECT_EQ(place->lane % heads.settings.hlen, kv_lane % heads.settings.hlen);
      EXPECT_EQ(place->row, kv_lane / heads.settings.hlen);
    }
  }
  EXPECT_EQ(slots.size(), 8U);
}

// SmolLM2: heads as wide as a tile fill the array one at a time.
TEST(QueryPacking, LeavesHeadsAloneThatFillTheirProducts) {
  const Heads heads({.heads = 9, .kv_heads = 3, .head_dim = 64});
  EXPECT_TRUE(pack_queries(heads.tiled, heads.settings).empty());
}

}  // namespace
}  // namespace plena
