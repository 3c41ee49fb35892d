// Several sequences decoded side by side say what each says alone.
#include <gtest/gtest.h>

#include "plena/base/shared_data.h"
#include "plena/compiler/compile.h"
#include "plena/config/testing/typed_settings.h"
#include "plena/model/open_model.h"
#include "plena/runtime/generation.h"

namespace plena {
namespace {

using testing::settings_of;
using Ids = std::vector<std::uint32_t>;

Image make_image(const Model& model, std::uint32_t sequences, std::uint64_t matrix_sram_size) {
  Settings settings = settings_of(testing::kPlainFp32);
  settings.matrix_sram_size = matrix_sram_size;
  auto dialect = Dialect::parse("plena+moe");
  EXPECT_TRUE(dialect);
  auto image = compile(
      model, {.settings = settings, .dialect = *dialect, .context = 64, .sequences = sequences});
  EXPECT_TRUE(image) << (image ? "" : image.error().render());
  return *std::move(image);
}

Ids prompt_of(std::uint32_t sequence) {
  Ids ids{1};
  for (std::uint32_t i = 0; i < 3 + 5 * sequence; ++i)
    ids.push_back((37 * i + 11 * sequence) % 320);
  return ids;
}

struct Case {
  const char* folder;
  std::uint64_t matrix_sram_size;
};

class Batch : public ::testing::TestWithParam<Case> {};

TEST_P(Batch, GivesEachSequenceTheIdsOfASingleRun) {
  PLENA_NEEDS_SHARED();
  constexpr std::uint32_t kSequences = 3;
  const auto model = open_model(shared_data() + "/models/tiny/" + GetParam().folder).value();
  auto side_by_side =
      Session::create(make_image(model, kSequences, GetParam().matrix_sram_size)).value();
  auto alone = Session::create(make_image(model, 1, GetParam().matrix_sram_size)).value();
  std::vector<Ids> prompts;
  std::vector<Sampler> samplers;
  for (std::uint32_t i = 0; i < kSequences; ++i) {
    prompts.push_back(prompt_of(i));
    samplers.emplace_back(SamplingOptions{.temperature = 0, .top_p = 1, .seed = 0});
  }

  const auto batch =
      generate_batch(side_by_side, samplers, prompts, {.max_tokens = 12, .ends = {}});

  ASSERT_TRUE(batch) << batch.error().render();
  for (std::uint32_t i = 0; i < kSequences; ++i) {
    Sampler sampler({.temperature = 0, .top_p = 1, .seed = 0});
    const auto single = generate(alone, sampler, prompts[i], {.max_tokens = 12, .ends = {}});
    ASSERT_TRUE(single) << single.error().render();
    EXPECT_EQ(batch->sequences[i].sampled, single->sampled) << "sequence " << i;
    EXPECT_EQ(batch->sequences[i].ids, single->ids) << "sequence " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, Batch,
                         ::testing::Values(Case{"llama-gqa", 4096}, Case{"llama3-rope", 4096},
                                           Case{"qwen3", 4096}, Case{"gemma2", 4096},
                                           Case{"gemma3", 512}, Case{"gpt-oss", 4096}),
                         [](const auto& family) {
                           std::string name = family.param.folder;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(BatchOfSequences, GivesThePlaceOfATextThatEndedToTheNextPrompt) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(shared_data() + "/models/tiny/llama-gqa").value();
  auto two = Session::create(make_image(model, 2, 4096)).value();
  auto alone = Session::create(make_image(model, 1, 4096)).value();
  const std::vector<Ids> prompts{prompt_of(2), prompt_of(0), prompt_of(4), prompt_of(1),
                                 prompt_of(3)};
  std::vector<Sampler> samplers(5, Sampler({.temperature = 0, .top_p = 1, .seed = 0}));
  // An end that one text meets early leaves its place while the other goes on.
  Sampler first({.temperature = 0, .top_p = 1, .seed = 0});
  const std::uint32_t end =
      generate(alone, first, prompts[1], {.max_tokens = 9, .ends = {}}).value().sampled[3];
  const GenerationLimits limits{.max_tokens = 9, .ends = {end}};

  const auto batch = generate_batch(two, samplers, prompts, limits);

  ASSERT_TRUE(batch) << batch.error().render();
  ASSERT_EQ(batch->sequences.size(), 5U);
  std::uint64_t fed_together = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Sampler sampler({.temperature = 0, .top_p = 1, .seed = 0});
    const auto single = generate(alone, sampler, prompts[i], limits);
    ASSERT_TRUE(single) << single.error().render();
    EXPECT_EQ(batch->sequences[i].sampled, single->sampled) << "prompt " << i;
    EXPECT_EQ(batch->sequences[i].end, single->end) << "prompt " << i;
    fed_together += single->ids.size() - prompts[i].size();
  }
  EXPECT_EQ(batch->common_tokens, fed_together);
}

TEST(BatchOfSequences, LeavesPlacesEmptyThatNobodyWantsAndRefusesNoPrompts) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(shared_data() + "/models/tiny/llama-gqa").value();
  auto three = Session::create(make_image(model, 3, 4096)).value();
  auto alone = Session::create(make_image(model, 1, 4096)).value();
  const std::vector<Ids> prompts{prompt_of(1)};
  std::vector<Sampler> samplers(1, Sampler({.temperature = 0, .top_p = 1, .seed = 0}));
  const GenerationLimits limits{.max_tokens = 5, .ends = {}};

  const auto batch = generate_batch(three, samplers, prompts, limits);

  ASSERT_TRUE(batch) << batch.error().render();
  Sampler sampler({.temperature = 0, .top_p = 1, .seed = 0});
  EXPECT_EQ(batch->sequences[0].sampled,
            generate(alone, sampler, prompts[0], limits).value().sampled);
  EXPECT_FALSE(generate_batch(three, {}, {}, limits));
}

TEST(BatchOfSequences, EndsEachOneOnItsOwn) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(shared_data() + "/models/tiny/llama-gqa").value();
  auto session = Session::create(make_image(model, 2, 4096)).value();
  const std::vector<Ids> prompts{prompt_of(0), prompt_of(1)};
  std::vector<Sampler> samplers(2, Sampler({.temperature = 0, .top_p = 1, .seed = 0}));
  const auto free = generate_batch(session, samplers, prompts, {.max_tokens = 8, .ends = {}});
  ASSERT_TRUE(free) << free.error().render();
  const std::uint32_t end = free->sequences[0].sampled[2];

  const auto ended = generate_batch(session, samplers, prompts, {.max_tokens = 8, .ends = {end}});

  ASSERT_TRUE(ended) << ended.error().render();
  EXPECT_EQ(ended->sequences[0].end, GenerationEnd::EndToken);
  EXPECT_EQ(ended->sequences[0].sampled.back(), end);
  EXPECT_EQ(ended->sequences[1].sampled, free->sequences[1].sampled);
}

}  // namespace
}  // namespace plena
