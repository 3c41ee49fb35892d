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

Result<MemoryPlan> plan_with(const Settings& settings, const Graph& graph = small_graph()) {
  return plan_memory(tile_graph(graph, settings.mlen).value(), kInput, settings);
}

TEST(CheckBlocks, FindsOverlapAndBlocksThatLeaveTheMemory) {
  EXPECT_TRUE(check_blocks({{"a", 0, 4}, {"b", 4, 4}}, 8));
  EXPECT_FALSE(check_blocks({{"b", 3, 4}, {"a", 0, 4}}, 8));
  EXPECT_FALSE(check_blocks({{"a", 5, 4}}, 8));
  EXPECT_FALSE(check_blocks({{"a", UINT64_MAX, 2}}, 8));
}

TEST(CheckBlocks, LetsBlocksOverlapThatAreNotInUseAtTheSameStep) {
  const Life early({true, true, false});
  const Life late({false, false, true});
  const Life middle({false, true, true});
  EXPECT_TRUE(check_blocks({{"a", 0, 4, early}, {"b", 2, 4, late}}, 8));
  EXPECT_FALSE(check_blocks({{"a", 0, 4, early}, {"b", 2, 4, middle}}, 8));
  EXPECT_FALSE(check_blocks({{"a", 0, 4, early}, {"for ever", 2, 4}}, 8));
  // A long block in between that is not in use does not hide what overlaps behind it.
  EXPECT_FALSE(check_blocks({{"a", 0, 8, early}, {"b", 1, 1, late}, {"c", 7, 1, middle}}, 8));
}

TEST(BlockAllocator, PlacesABlockWhereNothingLivesMeanwhile) {
  const Life early({true, true, false});
  const Life late({false, false, true});
  BlockAllocator rows("rows", 16, "rows");
  EXPECT_EQ(rows.place("for ever", 2).first, 0U);
  EXPECT_EQ(rows.place("early", 4, early).first, 2U);
  EXPECT_EQ(rows.place("late", 3, late).first, 2U);
  EXPECT_EQ(rows.place("late, too", 2, late).first, 5U);
  EXPECT_EQ(rows.place("for ever, too", 1).first, 7U);
  EXPECT_EQ(rows.place("in the gap", 1, early).first, 6U);
  EXPECT_EQ(rows.used(), 8U);
}

// Whatever two blocks of a plan are in use at the same step: on top of each other they are found.
TEST(MemoryPlan, IsRefusedWithAnyTwoLivingBlocksInOnePlace) {
  Graph graph = small_graph();
  graph.values.push_back({"normed", Layout::Dense, 64});
  graph.values.push_back({"outputs", Layout::Outputs, 0});
  graph.kinds[0].operators = {
      NormOp{.from = 0, .to = 3},
      ProductOp{.from = 3, .to = 1, .matrices = {{MatrixRole::Query, Layout::Qkv, 0}}},
      RotateOp{.qkv = 1}, AttentionOp{.qkv = 1, .to = 4},
      ProductOp{
          .from = 4, .to = 0, .matrices = {{MatrixRole::Up, Layout::Dense, 64}}, .add = true}};
  graph.ending.operators = {
      ProductOp{.from = 0, .to = 2, .matrices = {{MatrixRole::Logits, Layout::Dense, 512}}}};
  PlanInput input = kInput;
  input.share = true;
  const Settings settings;
  const MemoryPlan plan =
      plan_memory(tile_graph(graph, settings.mlen).value(), input, settings).value();
  const std::vector<Block>& blocks = plan.vram.blocks();
  ASSERT_TRUE(check_blocks(blocks, plan.vram.capacity()));
  int shared = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t k = i + 1; k < blocks.size(); ++k) {
      if (blocks[i].count == 0 || blocks[k].count == 0) continue;
      std::vector<Block> broken = blocks;
      broken[k].first = broken[i].first + broken[i].count - 1;
      if (blocks[i].life.meets(blocks[k].life)) {
        EXPECT_FALSE(check_blocks(broken, plan.vram.capacity()))
            << blocks[i].name << ", " << blocks[k].name;
      } else if (blocks[i].first < blocks[k].first + blocks[k].count &&
                 blocks[k].first < blocks[i].first + blocks[i].count) {
        ++shared;
      }
    }
  }
  EXPECT_GT(shared, 0);
}

TEST(MemoryPlan, KeepsAllScalesOneDistanceBehindTheirElements) {
  const Settings settings;
  const MemoryPlan plan = plan_with(settings).value();
  // The last scale of every tensor lies before the end of what was placed for scales.
  for (const HbmTensor& t : {plan.weights.windows[0], plan.cache.windows[0], plan.embedding,
                             plan.position_table, plan.constants}) {
    EXPECT_GE(plan.scale_offset, t.base + t.elements);
    EXPECT_LE(plan.scale_offset + t.base + t.elements / 8, plan.hbm.used());
  }
}

// Five layers of one K and one V tile region; a store of four rows reaches two regions further.
TEST(MemoryPlan, LeavesRoomForTheRowsAStoreWritesBehindTheLastLayer) {
  const MemoryPlan plan = plan_with(Settings{}).value();
  EXPECT_EQ(plan.cache_stride, 512U * 64U);
  EXPECT_EQ(plan.cache.windows[0].elements, 12U * 512U * 64U);
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

// A layer with nothing but a product of 2^15 x 2^15: 2^30 weights.
Graph wide_graph(std::size_t layers) {
  constexpr std::uint32_t kWidth = 1U << 15;
  Graph graph = small_graph();
  graph.rotary.clear();
  graph.values.push_back({"wide", Layout::Dense, kWidth});
  graph.kinds[0].operators = {
      ProductOp{.from = 3, .to = 3, .matrices = {{MatrixRole::Up, Layout::Dense, kWidth}}}};
  graph.layers.resize(layers);
  return graph;
}

// Two tiles of constants, of 64 x 64, stand before the first layer's weights.
constexpr std::uint64_t kConstantTiles = 2 * 4096;

// Three layers of 2^30 elements, 1 byte each, are what 32 bits reach; a fourth would be one element
// too many.
TEST(MemoryPlan, CutsWeightsIntoWindowsThatOneRegisterReaches) {
  const MemoryPlan plan = plan_with(Settings{}, wide_graph(7)).value();
  constexpr std::uint64_t kLayer = std::uint64_t{1} << 30;
  ASSERT_EQ(plan.weights.windows.size(), 3U);
  EXPECT_EQ(plan.weights.windows[0].elements, 3 * kLayer + kConstantTiles);
  EXPECT_EQ(plan.weights.windows[2].elements, kLayer);  // the ending has no weights
  EXPECT_EQ(plan.weights.layers[4].window, 1U);
  EXPECT_EQ(plan.weights.layers[4].first, kLayer);
  EXPECT_FALSE(plan.cache.windowed());
  EXPECT_TRUE(check_blocks(plan.hbm.blocks(), plan.hbm.capacity()));
  // Scales, an eighth, lie between the windows and not behind all of them.
  EXPECT_EQ(plan.scale_offset, 3 * kLayer + kConstantTiles);
  EXPECT_EQ(plan.weights.windows[1].base, (3 * kLayer + kConstantTiles) / 8 * 9 + 64);
  EXPECT_LE(plan.hbm.used(), 7 * kLayer / 8 * 9 + 3 * kLayer);
}

// A window that starts beyond 4 GiB has a high word.
TEST(MemoryPlan, TellsTheProgramWhereTheWindowsOfEachLayerLie) {
  const MemoryPlan plan = plan_with(Settings{}, wide_graph(7)).value();
  const std::vector<std::uint32_t> entries = layer_place_entries(plan);
  ASSERT_EQ(entries.size(), 3U * 8);
  EXPECT_EQ(plan.layer_places.count, entries.size());
  const std::uint64_t base = plan.weights.windows[2].base;
  ASSERT_GT(base, UINT32_MAX);
  EXPECT_EQ(entries[3 * 6], base & UINT32_MAX);
  EXPECT_EQ(entries[3 * 6 + 1], base >> 32);
  EXPECT_EQ(entries[3 * 6 + 2], 0U);
  EXPECT_EQ(entries[3 * 5 + 2], std::uint32_t{1} << 31);
  EXPECT_TRUE(layer_place_entries(plan_with(Settings{}).value()).empty());
}

// Plain elements have no scales whose distance would matter: 2^32 - 1 of them, whatever their size.
TEST(MemoryPlan, CountsElementsWhereThereAreNoScales) {
  Settings settings;
  settings.hbm_m_weight_type = DataType::plain(kBf16);
  const MemoryPlan plan = plan_with(settings, wide_graph(4)).value();
  ASSERT_EQ(plan.weights.windows.size(), 2U);
  EXPECT_EQ(plan.weights.windows[0].elements, (std::uint64_t{3} << 30) + kConstantTiles);
}

TEST(MemoryPlan, RefusesLayersBeyondTheReachOfAnOffset) {
  Graph graph = wide_graph(1);
  graph.values[3].width = 1U << 16;
  std::get<ProductOp>(graph.kinds[0].operators[0]).matrices[0].width = 1U << 16;
  const auto plan = plan_with(Settings{}, graph);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, HasSubstr("weights of one layer takes 4294975488 elements"));
}

TEST(MemoryPlan, RefusesWhatHbmDoesNotHold) {
  const auto plan = plan_with(Settings{}, wide_graph(140));
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, HasSubstr("bytes of HBM, which has 137438953472"));
}

}  // namespace
}  // namespace plena
