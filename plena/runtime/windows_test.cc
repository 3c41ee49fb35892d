// Weights and KV cache cut into windows, and an image beyond 4 GiB, give the logits of the program
// whose tensors lie whole behind one address each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

Image compile_or_fail(const Model& model, const CompileOptions& options) {
  auto image = compile(model, options);
  EXPECT_TRUE(image) << (image ? "" : image.error().render());
  return *std::move(image);
}

// With the smallest windows that hold a layer, to within an eighth.
Image compile_in_windows(const Model& model, CompileOptions options) {
  for (options.window_elements = 1U << 16;;
       options.window_elements += options.window_elements / 8) {
    if (auto image = compile(model, options)) return *std::move(image);
  }
}

// The logits after a block, if the model takes one, and after each of three tokens behind it.
std::vector<float> logits_of(const Image& image) {
  auto session = Session::create(image).value();
  std::vector<float> all;
  std::uint32_t position = std::min(session.block_tokens(0), 9U);
  if (position != 0) {
    const auto block = session.run_block(Ids(position, 3), 0).value();
    all.assign(block.begin(), block.end());
  }
  for (std::uint32_t i = 0; i < 3 && session.manifest().causal; ++i, ++position) {
    const auto logits = session.step(7 + i, position).value();
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

class Windows : public ::testing::TestWithParam<const char*> {};

TEST_P(Windows, GiveTheBitsOfWholeTensors) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(shared_data() + "/models/tiny/" + GetParam()).value();
  for (const Settings& settings : {Settings{}, settings_of(testing::kPlainFp32)}) {
    const CompileOptions options{.settings = settings, .context = 64};
    const Image cut = compile_in_windows(model, options);
    EXPECT_THAT(cut.plan, HasSubstr("weights, part 2 of"));
    EXPECT_EQ(logits_of(cut), logits_of(compile_or_fail(model, options)));
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, Windows,
                         ::testing::Values("llama-gqa", "qwen2", "mixtral", "gemma2", "gpt-oss",
                                           "llada"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

// Context enough that the cache of a layer takes more than its weights, so that it is what is cut.
TEST(Windows, OfTheCacheGiveTheBitsOfAWholeOne) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(shared_data() + "/models/tiny/llama-gqa").value();
  const CompileOptions options{.settings = {}, .context = 0};
  const Image cut = compile_in_windows(model, options);
  EXPECT_THAT(cut.plan, HasSubstr("KV cache, part 2 of"));
  EXPECT_EQ(logits_of(cut), logits_of(compile_or_fail(model, options)));
}

// Sequences lie one behind the other in each layer's part, wherever its window is.
TEST(Windows, OfTheCacheGiveTheBitsOfAWholeOneToEverySequence) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(shared_data() + "/models/tiny/llama-gqa").value();
  const CompileOptions options{.settings = {}, .context = 0, .sequences = 2};
  const Image cut = compile_in_windows(model, options);
  EXPECT_THAT(cut.plan, HasSubstr("KV cache, part 2 of"));
  const auto logits_of_both = [](const Image& image) {
    auto session = Session::create(image).value();
    std::vector<float> all;
    const auto append = [&](std::span<const float> logits) {
      all.insert(all.end(), logits.begin(), logits.end());
    };
    for (const std::uint32_t sequence : {0U, 1U}) {
      session.select_sequence(sequence);
      append(session.run_block(Ids(9, 3 + sequence), 0).value());
      append(session.step(8 + sequence, 9).value());
    }
    append(session.step_batch(Ids{5, 6}, Ids{10, 10}).value());
    append(session.step(7, 11).value());  // of the second one
    return all;
  };
  EXPECT_EQ(logits_of_both(cut), logits_of_both(compile_or_fail(model, options)));
}

// Addresses of tensors and of windows have a high word.
TEST(Windows, BeyondFourGibibytesGiveTheSameBits) {
  PLENA_NEEDS_SHARED();
  constexpr std::uint64_t kStart = 9'000'000'000;
  const auto model = open_model(shared_data() + "/models/tiny/llama-gqa").value();
  const CompileOptions near{.settings = {}, .context = 64};
  CompileOptions far = near;
  far.hbm_start = kStart;
  const Image whole = compile_or_fail(model, far);
  const Image cut = compile_in_windows(model, far);
  for (const HbmSegment& segment : cut.hbm) EXPECT_GE(segment.address, kStart);
  const std::vector<float> expected = logits_of(compile_or_fail(model, near));
  EXPECT_EQ(logits_of(whole), expected);
  EXPECT_EQ(logits_of(cut), expected);
}

}  // namespace
}  // namespace plena
