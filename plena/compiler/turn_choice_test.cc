#include "plena/compiler/turn_choice.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plena/config/testing/typed_settings.h"

namespace plena {
namespace {

constexpr std::uint32_t kHidden = 64;

// Two layers of normally distributed weights; the gains of all norms are `gains`.
Model random_model(const std::vector<float>& gains) {
  std::uint64_t seed = 0;
  const auto drawn = [&](std::uint64_t rows, std::uint64_t columns) {
    return Tensor::normal(++seed, 1.0F, rows, columns);
  };
  const Norm norm{.weight = Tensor::f32(gains, 1, kHidden)};
  Model model;
  model.config = {.hidden = kHidden,
                  .heads = 4,
                  .kv_heads = 4,
                  .head_dim = 16,
                  .ffn = 128,
                  .vocab = 64,
                  .context = 64,
                  .score_scale = 0.25F,
                  .layers = {{}, {}}};
  for (int layer = 0; layer < 2; ++layer) {
    LayerWeights weights;
    weights.attention_norm = weights.ffn_norm = norm;
    for (Linear* map : {&weights.q, &weights.k, &weights.v, &weights.o}) {
      map->weight = drawn(kHidden, kHidden);
    }
    weights.ffn.gate.weight = drawn(128, kHidden);
    weights.ffn.up.weight = drawn(128, kHidden);
    weights.ffn.down.weight = drawn(kHidden, 128);
    model.layers.push_back(weights);
  }
  model.embedding = model.output.weight = drawn(64, kHidden);
  model.final_norm = norm;
  return model;
}

std::vector<float> even_gains() {
  return std::vector<float>(kHidden, 1.0F);
}

// One input outweighs the others and takes the scale of their block.
std::vector<float> gains_with_outlier() {
  std::vector<float> gains = even_gains();
  gains[5] = 8.0F;
  return gains;
}

TurnChoice choose(const std::vector<float>& gains, DataType weights, TurnRule rule) {
  Settings settings = testing::settings_of(testing::kPlainBf16);
  settings.hbm_m_weight_type = weights;
  return choose_turns(random_model(gains), settings, {.rule = rule}).value();
}

const DataType kMxfp4 = DataType::mx(kE2M1, 32);

TEST(TurnChoice, TurnsAResidualStreamWhoseOutlierCoarsensItsBlocks) {
  const TurnChoice choice = choose(gains_with_outlier(), kMxfp4, TurnRule::Auto);
  EXPECT_EQ(choice.graph.residual.block, kHidden);
  EXPECT_LT(choice.groups[0].error_turned, 0.75 * choice.groups[0].error_as_is);
  EXPECT_THAT(summary(choice), ::testing::StartsWith("residual"));
}

TEST(TurnChoice, LeavesEvenWeightsAsTheyAre) {
  const TurnChoice choice = choose(even_gains(), kMxfp4, TurnRule::Auto);
  EXPECT_FALSE(choice.graph.residual);
  EXPECT_GT(choice.groups[0].error_turned, 0.98 * choice.groups[0].error_as_is);
}

TEST(TurnChoice, TurnsWhateverCanWhereAllIsAsked) {
  const TurnChoice choice = choose(even_gains(), kMxfp4, TurnRule::All);
  EXPECT_EQ(summary(choice), "residual, values 2/2");
  EXPECT_EQ(choice.graph.values[1].block, 16U);
}

TEST(TurnChoice, MeasuresOnlyTypesWithScales) {
  const TurnChoice choice = choose(gains_with_outlier(), DataType::plain(kBf16), TurnRule::All);
  EXPECT_TRUE(choice.groups.empty());
  EXPECT_EQ(summary(choice), "-");
}

TEST(TurnChoice, LeavesAStreamBehindNormsOfBranches) {
  const std::vector<float> gains = even_gains();
  Model model = random_model(gains);
  model.layers[0].post_ffn_norm.weight = Tensor::f32(gains, 1, kHidden);
  model.layers[1].post_ffn_norm.weight = Tensor::f32(gains, 1, kHidden);
  Settings settings = testing::settings_of(testing::kPlainBf16);
  settings.hbm_m_weight_type = kMxfp4;
  const auto choice = choose_turns(model, settings, {.rule = TurnRule::All}).value();
  EXPECT_EQ(summary(choice), "values 2/2");
  EXPECT_THAT(describe(choice), ::testing::HasSubstr("residual stream: cannot be turned"));
}

}  // namespace
}  // namespace plena
