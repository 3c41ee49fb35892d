// Attention with a running maximum and sum, for contexts whose scores do not fit Vector SRAM:
// reference logits of every family over several tiles of positions, and contexts that fit no other
// way.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/npy.h"
#include "plena/base/shared_data.h"
#include "plena/compiler/compile.h"
#include "plena/config/testing/typed_settings.h"
#include "plena/model/open_model.h"
#include "plena/runtime/session.h"

namespace plena {
namespace {

using ::testing::HasSubstr;
using testing::settings_of;
using Ids = std::vector<std::uint32_t>;

constexpr float kFp32Tolerance = 1e-4F;

Image compile_or_fail(const Model& model, const CompileOptions& options) {
  auto image = compile(model, options);
  EXPECT_TRUE(image) << (image ? "" : image.error().render());
  return *std::move(image);
}

// Tiles so small that the references' 32 positions take several.
Settings small_tiles(std::uint32_t mlen) {
  Settings settings = settings_of(testing::kPlainFp32);
  settings.mlen = settings.vlen = mlen;
  settings.hlen = settings.blen = 4;
  settings.hbm_m_prefetch_amount = mlen;
  settings.matrix_sram_size = mlen * 64;
  return settings;
}

float largest_difference(std::span<const float> a, std::span<const float> b) {
  float worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    worst = std::isnan(difference) ? HUGE_VALF : std::max(worst, difference);
  }
  return worst;
}

struct Reference {
  Ids ids;
  std::vector<float> logits;  // [ids, vocab]

  [[nodiscard]] std::span<const float> row(std::size_t position) const {
    const std::size_t vocab = logits.size() / ids.size();
    return std::span(logits).subspan(position * vocab, vocab);
  }
};

Reference load_reference(const std::string& name) {
  const std::string folder = shared_data() + "/models/tiny/" + name;
  const auto json = nlohmann::json::parse(read_text(folder + "/reference.json").value());
  Reference reference{json.at("input_ids").get<Ids>(),
                      read_npy(folder + "/reference_logits.npy").value().values<float>()};
  if (json.contains("greedy_ids")) {
    const auto greedy = json.at("greedy_ids").get<Ids>();
    reference.ids.insert(reference.ids.end(), greedy.begin(), greedy.end());
  }
  return reference;
}

class RunningSoftmaxOf : public ::testing::TestWithParam<const char*> {};

TEST_P(RunningSoftmaxOf, DecodingGivesTheReferenceLogits) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(shared_data() + "/models/tiny/" + GetParam()).value();
  const Reference reference = load_reference(GetParam());
  for (const std::uint32_t mlen : {8U, 16U}) {
    const CompileOptions options{
        .settings = small_tiles(mlen), .context = 64, .block = 1, .running = RunningSoftmax::All};
    auto session = Session::create(compile_or_fail(model, options)).value();
    for (std::uint32_t i = 0; i < reference.ids.size(); ++i) {
      const auto logits = session.step(reference.ids[i], i).value();
      ASSERT_LT(largest_difference(logits, reference.row(i)), kFp32Tolerance) << mlen << ' ' << i;
    }
  }
}

TEST_P(RunningSoftmaxOf, SequencesSideBySideGiveTheReferenceLogits) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(shared_data() + "/models/tiny/" + GetParam()).value();
  const Reference reference = load_reference(GetParam());
  const CompileOptions options{.settings = small_tiles(8),
                               .dialect = Dialect::parse("plena+moe").value(),
                               .context = 64,
                               .block = 1,
                               .sequences = 2,
                               .running = RunningSoftmax::All};
  auto session = Session::create(compile_or_fail(model, options)).value();
  for (std::uint32_t i = 0; i < 20; ++i) {
    const std::uint32_t id = reference.ids[i];
    const auto logits = session.step_batch(Ids{id, id}, Ids{i, i}).value();
    const std::size_t vocab = logits.size() / 2;
    for (std::size_t sequence = 0; sequence < 2; ++sequence) {
      const auto own = std::span(logits).subspan(sequence * vocab, vocab);
      ASSERT_LT(largest_difference(own, reference.row(i)), kFp32Tolerance) << sequence << ' ' << i;
    }
  }
}

// Blocks take the scores of each tile twice and correct nothing: the logits of blocks whose scores
// are all there at once, bit for bit, from whole tiles and from parts of one.
TEST_P(RunningSoftmaxOf, BlocksGiveTheSameBits) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(shared_data() + "/models/tiny/" + GetParam()).value();
  const Reference reference = load_reference(GetParam());
  for (const std::uint32_t mlen : {16U, 64U}) {
    CompileOptions options{.settings = small_tiles(mlen), .context = 128};
    auto whole = Session::create(compile_or_fail(model, options)).value();
    options.running = RunningSoftmax::Blocks;
    auto running = Session::create(compile_or_fail(model, options)).value();
    const std::uint32_t tokens = running.block_tokens(0);
    ASSERT_EQ(tokens, whole.block_tokens(0));
    if (tokens == 0) continue;
    Ids ids = reference.ids;
    while (ids.size() < 96) ids.insert(ids.end(), reference.ids.begin(), reference.ids.end());
    for (std::uint32_t at = 0; at + tokens <= 96; at += tokens) {
      const auto block = std::span(ids).subspan(at, tokens);
      const auto expected = whole.run_block(block, at).value();
      const auto logits = running.run_block(block, at).value();
      ASSERT_TRUE(std::ranges::equal(logits, expected)) << mlen << ' ' << at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, RunningSoftmaxOf,
                         ::testing::Values("llama-gqa", "llama3-rope", "qwen2", "qwen3",
                                           "mistral-sliding", "mixtral", "qwen3-moe", "gemma2",
                                           "gemma3", "gpt-oss"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

// Where nothing but scores is too large, decoding and blocks of any length take a context.
class ScoresBeyondSram : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(ScoresBeyondSram, GiveTheSameTokens) {
  const auto model = open_model(std::string(PLENA_SOURCE_DIR) + "/models/stories260K").value();
  CompileOptions options{.settings = settings_of(testing::kPlainFp32)};
  auto roomy = Session::create(compile_or_fail(model, options)).value();
  options.settings.vector_sram_size = GetParam();
  const Image image = compile_or_fail(model, options);
  EXPECT_THAT(image.plan, HasSubstr("maxima of a block's scores"));
  auto tight = Session::create(image).value();
  ASSERT_EQ(tight.block_tokens(0), roomy.block_tokens(0));
  const Ids prompt(64, 3);
  ASSERT_TRUE(
      std::ranges::equal(tight.run_block(prompt, 0).value(), roomy.run_block(prompt, 0).value()));
  std::uint32_t token = 1;
  for (std::uint32_t i = 64; i < 140; ++i) {
    const auto expected = roomy.step(token, i).value();
    const auto logits = tight.step(token, i).value();
    ASSERT_LT(largest_difference(logits, expected), kFp32Tolerance) << i;
    token = static_cast<std::uint32_t>(std::ranges::max_element(expected) - expected.begin());
  }
}

// Rows that suffice for 64 tokens where buffers lie apart, and where they share rows.
INSTANTIATE_TEST_SUITE_P(Rows, ScoresBeyondSram, ::testing::Values(4000, 3400));

// 65,536 positions: 1,024 tiles of the 8 heads' scores alone take 8,192 rows.
TEST(RunningSoftmax, TakesAContextWhoseScoresFitNoOtherWay) {
  PLENA_NEEDS_SHARED();
  auto model = open_model(shared_data() + "/models/tiny/llama-gqa").value();
  model.config.context = 1U << 16U;
  CompileOptions options{.settings = settings_of(testing::kPlainFp32)};
  options.settings.vector_sram_size = 2048;
  const Image image = compile_or_fail(model, options);
  EXPECT_THAT(image.plan, HasSubstr("scores of a tile"));
  options.context = 128;
  options.settings.vector_sram_size = Settings{}.vector_sram_size;
  auto roomy = Session::create(compile_or_fail(model, options)).value();
  auto tight = Session::create(image).value();
  for (std::uint32_t i = 0; i < 70; ++i) {
    const auto expected = roomy.step(i % 7, i).value();
    ASSERT_LT(largest_difference(tight.step(i % 7, i).value(), expected), kFp32Tolerance) << i;
  }
}

}  // namespace
}  // namespace plena
