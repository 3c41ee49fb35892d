// One small model of every family on the simulated machine, against its reference logits.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/npy.h"
#include "plena/base/shared_data.h"
#include "plena/compiler/compile.h"
#include "plena/compiler/model_graph.h"
#include "plena/config/testing/typed_settings.h"
#include "plena/model/forward_pass.h"
#include "plena/model/open_model.h"
#include "plena/runtime/generation.h"

namespace plena {
namespace {

using testing::settings_of;
using Ids = std::vector<std::uint32_t>;

Session make_session(const Model& model, const Settings& settings, const Dialect& dialect) {
  const auto image = compile(model, {.settings = settings, .dialect = dialect});
  EXPECT_TRUE(image) << (image ? "" : image.error().render());
  return Session::create(image.value()).value();
}

struct Reference {
  Ids prompt;
  Ids greedy;
  std::vector<float> logits;  // [prompt + greedy, vocab]

  [[nodiscard]] Ids all() const {
    Ids ids = prompt;
    ids.insert(ids.end(), greedy.begin(), greedy.end());
    return ids;
  }
};

std::string folder_of(const std::string& name) {
  return shared_data() + "/models/tiny/" + name;
}

Reference load_reference(const std::string& folder) {
  const auto json = nlohmann::json::parse(read_text(folder + "/reference.json").value());
  return {json.at("input_ids").get<Ids>(), json.at("greedy_ids").get<Ids>(),
          read_npy(folder + "/reference_logits.npy").value().values<float>()};
}

std::size_t likeliest(std::span<const float> logits) {
  return static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
}

struct Agreement {
  float worst = 0;                // difference of two logits
  int parted = 0;                 // positions whose likeliest token is another one
  float margin_where_parted = 0;  // the largest, in the reference
};

// Feeds the reference's tokens and compares the logits after each of them.
Agreement compare(Session& session, const Ids& ids, std::span<const float> expected) {
  Agreement agreement;
  const std::size_t vocab = expected.size() / ids.size();
  for (std::size_t position = 0; position < ids.size(); ++position) {
    const auto logits = session.step(ids[position], static_cast<std::uint32_t>(position));
    EXPECT_TRUE(logits) << (logits ? "" : logits.error().render());
    if (!logits) return agreement;
    const auto reference = expected.subspan(position * vocab, vocab);
    for (std::size_t i = 0; i < vocab; ++i) {
      const float difference = std::abs((*logits)[i] - reference[i]);
      agreement.worst = std::isnan(difference) ? HUGE_VALF : std::max(agreement.worst, difference);
    }
    const std::size_t picked = likeliest(*logits);
    if (picked == likeliest(reference)) continue;
    ++agreement.parted;
    agreement.margin_where_parted = std::max(agreement.margin_where_parted,
                                             reference[likeliest(reference)] - reference[picked]);
  }
  return agreement;
}

constexpr float kFp32Tolerance = 1e-4F;

// Between `logits` and those of the reference from `first` on.
float largest_difference(std::span<const float> logits, std::span<const float> reference,
                         std::size_t first) {
  float worst = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float difference = std::abs(logits[i] - reference[first + i]);
    worst = std::isnan(difference) ? HUGE_VALF : std::max(worst, difference);
  }
  return worst;
}

class Families : public ::testing::TestWithParam<const char*> {};

TEST_P(Families, InFp32GiveTheReferenceLogits) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(folder_of(GetParam())).value();
  const auto reference = load_reference(folder_of(GetParam()));
  for (const char* isa : {"plena", "plena+moe+minmax"}) {
    auto session =
        make_session(model, settings_of(testing::kPlainFp32), Dialect::parse(isa).value());
    const Agreement agreement = compare(session, reference.all(), reference.logits);
    EXPECT_LT(agreement.worst, kFp32Tolerance) << isa;
    EXPECT_EQ(agreement.parted, 0) << isa;
  }
}

// gpt-oss-mxfp4 is gpt-oss in another file format and left out: two near ties of its prompt part.
class NarrowFamilies : public ::testing::TestWithParam<const char*> {};

TEST_P(NarrowFamilies, InBf16PickNearlyAllOfTheReferenceTokens) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(folder_of(GetParam())).value();
  const auto reference = load_reference(folder_of(GetParam()));
  auto session = make_session(model, settings_of(testing::kPlainBf16, testing::kPlainFp32), {});
  const Agreement agreement = compare(session, reference.all(), reference.logits);
  EXPECT_LE(agreement.parted, 1);
  EXPECT_LT(agreement.margin_where_parted, 0.3F);
}

// All that can be turned by Hadamard rotations, folded into the weights.
Session make_turned_session(const Model& model, const Settings& settings) {
  GraphOptions options;
  if (can_turn_residual(model)) {
    options.residual = widest_hadamard(model.config.hidden, settings.mlen);
    EXPECT_TRUE(options.residual);
  }
  options.values.assign(model.layers.size(), widest_hadamard(model.config.head_dim, settings.mlen));
  EXPECT_TRUE(options.values.front());
  const auto image = compile(model_graph(model, options).value(), {.settings = settings});
  EXPECT_TRUE(image) << (image ? "" : image.error().render());
  return Session::create(image.value()).value();
}

TEST_P(Families, TurnedInFp32GiveTheReferenceLogits) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(folder_of(GetParam())).value();
  const auto reference = load_reference(folder_of(GetParam()));
  auto session = make_turned_session(model, settings_of(testing::kPlainFp32));
  const Agreement agreement = compare(session, reference.all(), reference.logits);
  EXPECT_LT(agreement.worst, kFp32Tolerance);
  EXPECT_EQ(agreement.parted, 0);
}

std::string test_name(const ::testing::TestParamInfo<const char*>& test) {
  std::string name = test.param;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tiny, Families,
                         ::testing::Values("llama-gqa", "llama3-rope", "qwen2", "qwen3",
                                           "mistral-sliding", "mixtral", "qwen3-moe", "gemma2",
                                           "gemma3", "gpt-oss", "gpt-oss-mxfp4"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Tiny, NarrowFamilies,
                         ::testing::Values("llama-gqa", "llama3-rope", "qwen2", "qwen3",
                                           "mistral-sliding", "mixtral", "qwen3-moe", "gemma2",
                                           "gemma3", "gpt-oss"),
                         test_name);

// The prompt as one block, then token by token: the same logits.
class Blocks : public ::testing::TestWithParam<const char*> {};

TEST_P(Blocks, OfThePromptLeadToTheReferenceLogits) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(folder_of(GetParam())).value();
  const auto reference = load_reference(folder_of(GetParam()));
  const Ids ids = reference.all();
  const std::size_t vocab = reference.logits.size() / ids.size();
  for (const std::size_t length : {13U, 16U}) {
    auto session = make_session(model, settings_of(testing::kPlainFp32), {});
    const auto block = session.run_block(std::span(ids).first(length), 0);
    ASSERT_TRUE(block) << block.error().render();
    const auto after_block = largest_difference(*block, reference.logits, (length - 1) * vocab);
    EXPECT_LT(after_block, kFp32Tolerance);
    const auto next = session.step(ids[length], static_cast<std::uint32_t>(length)).value();
    EXPECT_LT(largest_difference(next, reference.logits, length * vocab), kFp32Tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, Blocks,
                         ::testing::Values("llama-gqa", "llama3-rope", "qwen2", "qwen3",
                                           "mistral-sliding", "mixtral", "qwen3-moe", "gemma2",
                                           "gemma3", "gpt-oss"),
                         test_name);

TEST_P(Blocks, GiveTheLogitsOfAllTheirTokensWhereTheyAreWanted) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(folder_of(GetParam())).value();
  const auto reference = load_reference(folder_of(GetParam()));
  const Ids ids = reference.all();
  const std::size_t vocab = reference.logits.size() / ids.size();
  const auto image =
      compile(model, {.settings = settings_of(testing::kPlainFp32), .all_logits = true}).value();
  auto session = Session::create(image).value();
  const auto block = session.run_block(std::span(ids).first(13), 0);
  ASSERT_TRUE(block) << block.error().render();
  ASSERT_EQ(block->size(), 13 * vocab);
  EXPECT_LT(largest_difference(*block, reference.logits, 0), kFp32Tolerance);
  const auto next = session.step(ids[13], 13).value();
  EXPECT_LT(largest_difference(next, reference.logits, 13 * vocab), kFp32Tolerance);
}

// Six tiles: weights come a tile at a time into either slot, K and V are fetched again for each
// token.
TEST_P(Blocks, WorkInLittleMatrixSram) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(folder_of(GetParam())).value();
  const auto reference = load_reference(folder_of(GetParam()));
  const Ids ids = reference.all();
  const std::size_t vocab = reference.logits.size() / ids.size();
  Settings settings = settings_of(testing::kPlainFp32);
  settings.matrix_sram_size = 6 * std::uint64_t{settings.mlen};
  auto session = make_session(model, settings, {});
  const auto block = session.run_block(std::span(ids).first(13), 0);
  ASSERT_TRUE(block) << block.error().render();
  EXPECT_LT(largest_difference(*block, reference.logits, 12 * vocab), kFp32Tolerance);
  const auto next = session.step(ids[13], 13).value();
  EXPECT_LT(largest_difference(next, reference.logits, 13 * vocab), kFp32Tolerance);
}

// A model that is not causal reads a sequence as one block.
TEST(Llada, InFp32GivesTheReferenceLogitsOfTheWholeSequence) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(folder_of("llada")).value();
  const auto json =
      nlohmann::json::parse(read_text(folder_of("llada") + "/reference.json").value());
  Ids ids = json.at("input_ids").get<Ids>();
  ids.resize(ids.size() + 16, *model.special.mask);
  const auto expected =
      read_npy(folder_of("llada") + "/reference_logits.npy").value().values<float>();
  auto session = make_session(model, settings_of(testing::kPlainFp32), {});
  const auto logits = session.run_block(ids, 0).value();
  ASSERT_EQ(logits.size(), expected.size());
  EXPECT_LT(largest_difference(logits, expected, 0), kFp32Tolerance);
  EXPECT_FALSE(session.step(1, 0));
}

// LayerNorm, learned positions and biases: a model that sorts, against a forward pass.
TEST(GptNanoSort, InFp32GivesTheLogitsOfTheForwardPass) {
  PLENA_NEEDS_SHARED();
  const auto model =
      open_model(shared_data() + "/models/gpt-nano-sort/gpt-nano-sort-model.json").value();
  const Ids ids = {0, 0, 2, 1, 0, 1, 0, 0, 0, 1, 1};
  auto session = make_session(model, settings_of(testing::kPlainFp32), {});
  const Agreement agreement = compare(session, ids, forward_logits(model, ids));
  EXPECT_LT(agreement.worst, kFp32Tolerance);
  EXPECT_EQ(agreement.parted, 0);
}

// Its rows are centred before they are turned.
TEST(GptNanoSort, TurnedInFp32GivesTheLogitsOfTheForwardPass) {
  PLENA_NEEDS_SHARED();
  const auto model =
      open_model(shared_data() + "/models/gpt-nano-sort/gpt-nano-sort-model.json").value();
  const Ids ids = {0, 0, 2, 1, 0, 1, 0, 0, 0, 1, 1};
  auto session = make_turned_session(model, settings_of(testing::kPlainFp32));
  const Agreement agreement = compare(session, ids, forward_logits(model, ids));
  EXPECT_LT(agreement.worst, kFp32Tolerance);
  EXPECT_EQ(agreement.parted, 0);
}

}  // namespace
}  // namespace plena
