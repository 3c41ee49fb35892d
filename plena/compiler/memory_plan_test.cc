#include "plena/compiler/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plena {
namespace {

using ::testing::HasSubstr;

// stories260K with nothing in its layers but their shape.
Graph small_graph() {
  Graph graph;
  graph.dim = 64;
  graph.vocab = 512;
  graph.context = 512;
  graph.heads = {8, 4, 8};
  graph.head_order = plain_order(8);
  graph.values = {
      {"residual", Layout::Dense, 64}, {"q, k, v", Layout::Qkv, 0}, {"logits", Layout::Dense, 512}};
  graph.logits = 2;
  graph.rotary.emplace_back();
  graph.kinds.emplace_back();
  graph.layers.resize(5);
  return graph;
}

const PlanInput kInput{.positions = {.entries = 512, .rows = 2, .terms = 2}};

Result<MemoryPlan> plan_with(const Settings& settings, std::uint64_t weight_tiles = 74) {
  const Graph graph = small_graph();
  TiledGraph tiled = tile_graph(graph, settings.mlen).value();
  tiled.weight_tiles = weight_tiles;
  return plan_memory(tiled, kInput, settings);
}

TEST(CheckBlocks, FindsOverlapAndBlocksThatLeaveTheMemory) {
  EXPECT_TRUE(check_blocks({{"a", 0, 4}, {"b", 4, 4}}, 8));
  EXPECT_FALSE(check_blocks({{"b", 3, 4}, {"a", 0, 4}}, 8));
  EXPECT_FALSE(check_blocks({{"a", 5, 4}}, 8));
  EXPECT_FALSE(check_blocks({{"a", UINT64_MAX, 2}}, 8));
}

TEST(MemoryPlan, KeepsAllScalesOneDistanceBehindTheirElements) {
  const Settings settings;
  const MemoryPlan plan = plan_with(settings).value();
  // The last scale of every tensor lies before the end of what was placed for scales.
  for (const HbmTensor& t :
       {plan.weights, plan.cache, plan.embedding, plan.position_table, plan.constants}) {
    EXPECT_GE(plan.scale_offset, t.base + t.elements);
    EXPECT_LE(plan.scale_offset + t.base + t.elements / 8, plan.hbm.used());
  }
}

// Five layers of one K and one V tile region; a store of four rows reaches two regions further.
TEST(MemoryPlan, LeavesRoomForTheRowsAStoreWritesBehindTheLastLayer) {
  const MemoryPlan plan = plan_with(Settings{}).value();
  EXPECT_EQ(plan.cache_stride, 512U * 64U);
  EXPECT_EQ(plan.cache.elements, 12U * 512U * 64U);
}

TEST(MemoryPlan, LetsGoOfTheValueTilesWhereMatrixSramIsSmall) {
  Settings settings;
  EXPECT_EQ(plan_with(settings)->value_tiles.count, 8U);
  settings.matrix_sram_size = 64 * 9;
  EXPECT_EQ(plan_with(settings)->value_tiles.count, 0U);
}

TEST(MemoryPlan, SaysWhichMemoryIsTooSmall) {
  const auto error_with = [](auto member, std::uint64_t value) {
    Settings settings;
    settings.*member = static_cast<std::remove_reference_t<decltype(settings.*member)>>(value);
    const auto plan = plan_with(settings);
    return plan ? std::string() : plan.error().message;
  };
  EXPECT_THAT(error_with(&Settings::hbm_size, 100000), HasSubstr("HBM"));
  EXPECT_THAT(error_with(&Settings::vector_sram_size, 50), HasSubstr("Vector SRAM"));
  EXPECT_THAT(error_with(&Settings::matrix_sram_size, 64), HasSubstr("tiles of Matrix SRAM"));
  EXPECT_THAT(error_with(&Settings::fp_sram_depth, 2), HasSubstr("FP_MEM"));
  EXPECT_THAT(error_with(&Settings::int_sram_depth, 2), HasSubstr("INT_MEM"));
}

TEST(MemoryPlan, RefusesTensorsBeyondTheReachOfAnOffset) {
  const auto plan = plan_with(Settings{}, std::uint64_t{1} << 20);  // times 4096 elements: 2^32
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, HasSubstr("weights takes 4294967296 elements"));
}

}  // namespace
}  // namespace plena
