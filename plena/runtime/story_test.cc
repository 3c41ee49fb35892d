// Real models on the simulated machine, end to end: what it says, compared with reference outputs
// and with a plain f32 forward pass.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/npy.h"
#include "plena/base/shared_data.h"
#include "plena/compiler/compile.h"
#include "plena/compiler/model_graph.h"
#include "plena/config/testing/typed_settings.h"
#include "plena/model/testing/reference_forward.h"
#include "plena/runtime/generation.h"

namespace plena {
namespace {

using testing::settings_of;
using Ids = std::vector<std::uint32_t>;

LlamaModel open_model(const std::string& name) {
  return open_llama2c(fmt::format("{}/models/{}/{}.bin", PLENA_SOURCE_DIR, name, name)).value();
}

Session make_session(const LlamaModel& model, const Settings& settings) {
  CompileOptions options;
  options.settings = settings;
  const auto image = compile(describe(model), options);
  EXPECT_TRUE(image) << image.error().render();
  return Session::create(image.value()).value();
}

std::uint32_t likeliest(std::span<const float> logits) {
  return static_cast<std::uint32_t>(std::max_element(logits.begin(), logits.end()) -
                                    logits.begin());
}

// How two runs over the same tokens differ in their logits.
class Comparison {
 public:
  void add(std::span<const float> logits, std::span<const float> expected) {
    ASSERT_EQ(logits.size(), expected.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const float difference = std::abs(logits[i] - expected[i]);
      worst_ = std::isnan(difference) ? HUGE_VALF : std::max(worst_, difference);
    }
    ++positions_;
    agreed_ += likeliest(logits) == likeliest(expected) ? 1 : 0;
  }

  [[nodiscard]] float worst() const { return worst_; }
  [[nodiscard]] int positions() const { return positions_; }
  [[nodiscard]] double agreement() const { return static_cast<double>(agreed_) / positions_; }

 private:
  float worst_ = 0;
  int positions_ = 0;
  int agreed_ = 0;
};

// The 200 tokens stories260K says greedily, and the logits after each of them.
struct Reference {
  Ids ids;
  std::vector<float> logits;  // [ids, vocab]

  [[nodiscard]] std::span<const float> row(std::size_t position) const {
    const std::size_t vocab = logits.size() / ids.size();
    return std::span(logits).subspan(position * vocab, vocab);
  }
};

Reference load_reference() {
  const auto folder = shared_data() + "/models/stories260K/";
  const auto text = read_text(folder + "reference.json").value();
  return {nlohmann::json::parse(text).at("greedy_tokens").get<Ids>(),
          read_npy(folder + "reference_logits.npy").value().values<float>()};
}

TEST(Story, InFp32TheMachineSaysWhatTheReferenceSays) {
  PLENA_NEEDS_SHARED();
  const auto reference = load_reference();
  auto session = make_session(open_model("stories260K"), settings_of(testing::kPlainFp32));
  Sampler sampler({.temperature = 0});
  Comparison comparison;
  GenerationHooks hooks;
  hooks.step = [&](std::uint32_t, std::span<const float> logits) {
    comparison.add(logits, reference.row(comparison.positions()));
  };

  const auto generation = generate(session, sampler, Ids{1}, {200, {1, 2}}, hooks).value();

  EXPECT_EQ(generation.ids, reference.ids);
  EXPECT_LT(comparison.worst(), 1e-4F);
}

// Feeds the reference's tokens to a machine with these settings.
FeedReport feed_reference(const Settings& settings, Comparison& comparison) {
  const auto reference = load_reference();
  auto session = make_session(open_model("stories260K"), settings);
  GenerationHooks hooks;
  hooks.step = [&](std::uint32_t, std::span<const float> logits) {
    comparison.add(logits, reference.row(comparison.positions()));
  };
  return feed(session, reference.ids, hooks).value();
}

TEST(Story, InBf16TheMachineNearlyAgreesWithTheReference) {
  PLENA_NEEDS_SHARED();
  Comparison comparison;

  feed_reference(settings_of(testing::kPlainBf16), comparison);

  EXPECT_GE(comparison.agreement(), 0.98);
  EXPECT_LE(comparison.worst(), 0.8F);
}

TEST(Story, WithMxfp8InHbmTheMachineKeepsMostOfTheModel) {
  PLENA_NEEDS_SHARED();
  Comparison comparison;

  const auto report = feed_reference(Settings(), comparison);

  EXPECT_GE(comparison.agreement(), 0.88);
  EXPECT_LE(report.perplexity(), 1.72);
}

TEST(Story, InFp32AModelWithoutGroupingSaysWhatAnF32PassSays) {
  const auto model = open_model("aidreams260K");
  auto session = make_session(model, settings_of(testing::kPlainFp32));
  Sampler sampler({.temperature = 0});

  const auto generation = generate(session, sampler, Ids{1}, {128, {1, 2}}).value();

  EXPECT_EQ(generation.ids, testing::greedy_tokens(model, 128));
}

TEST(Story, TheWholeContextAgreesWithAnF32Pass) {
  const auto model = open_model("stories260K");
  auto session = make_session(model, settings_of(testing::kPlainFp32));
  testing::ReferenceForward forward(model);
  Comparison comparison;
  std::uint32_t id = 1;
  for (std::uint32_t position = 0; position < model.config.context; ++position) {
    const auto expected = forward.step(id, position);
    comparison.add(session.step(id, position).value(), expected);
    id = likeliest(expected);
  }

  EXPECT_EQ(comparison.positions(), 512);
  EXPECT_LT(comparison.worst(), 1e-4F);
}

// Gains beside the matrices or inside them: the same model (model_graph.h).
TEST(Story, GainsThatStayWithTheirNormsChangeNothing) {
  const auto model = open_model("stories260K");
  CompileOptions options;
  options.settings = settings_of(testing::kPlainFp32);
  const auto graph = model_graph(describe(model), {.fold_gains = false}).value();
  auto apart = Session::create(compile(graph, options).value()).value();
  auto folded = make_session(model, options.settings);
  Comparison comparison;
  for (std::uint32_t position = 0; position < 20; ++position) {
    const auto expected = folded.step(position + 1, position).value();
    comparison.add(apart.step(position + 1, position).value(), expected);
  }
  EXPECT_LT(comparison.worst(), 1e-4F);
}

}  // namespace
}  // namespace plena
