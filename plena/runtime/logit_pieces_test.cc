// Logits that come piece by piece are those that come at once, bit for bit.
#include <fstream>

#include <gtest/gtest.h>

#include "plena/base/shared_data.h"
#include "plena/compiler/compile.h"
#include "plena/config/testing/typed_settings.h"
#include "plena/model/open_model.h"
#include "plena/runtime/session.h"

namespace plena {
namespace {

using testing::settings_of;
using Ids = std::vector<std::uint32_t>;

Model tiny_model(const char* name) {
  return open_model(shared_data() + "/models/tiny/" + name).value();
}

Image make_image(const Model& model, const CompileOptions& options) {
  auto image = compile(model, options);
  EXPECT_TRUE(image) << (image ? "" : image.error().render());
  return *std::move(image);
}

void append(std::vector<float>& all, std::span<const float> logits) {
  all.insert(all.end(), logits.begin(), logits.end());
}

// After a block, if the model takes one, and after each of three tokens behind it.
std::vector<float> logits_of(const Image& image) {
  auto session = Session::create(image).value();
  std::vector<float> all;
  std::uint32_t position = std::min(session.block_tokens(0), 9U);
  if (position != 0) append(all, session.run_block(Ids(position, 3), 0).value());
  for (std::uint32_t i = 0; i < 3 && session.manifest().causal; ++i, ++position) {
    append(all, session.step(7 + i, position).value());
  }
  return all;
}

// 320 logits of MLEN 64: pieces of two tiles, two and one.
void expect_same_logits(const Model& model, CompileOptions options) {
  const Image whole = make_image(model, options);
  options.logits_at_once = 128;
  const Image pieces = make_image(model, options);
  EXPECT_FALSE(whole.manifest.logit_pieces);
  ASSERT_TRUE(pieces.manifest.logit_pieces);
  EXPECT_EQ(pieces.manifest.logit_pieces->logits, 128U);
  EXPECT_EQ(logits_of(pieces), logits_of(whole));
}

class LogitPieces : public ::testing::TestWithParam<const char*> {};

TEST_P(LogitPieces, AreTheLogitsThatComeAtOnce) {
  PLENA_NEEDS_SHARED();
  const Model model = tiny_model(GetParam());
  expect_same_logits(model, {.settings = {}, .context = 64});
  expect_same_logits(model, {.settings = settings_of(testing::kPlainFp32), .context = 64});
}

// Soft caps; experts that the host picks, at breakpoints of their own; whole texts.
INSTANTIATE_TEST_SUITE_P(Tiny, LogitPieces,
                         ::testing::Values("llama-gqa", "gemma2", "mixtral", "llada"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

// The logits of a LayerNorm model have a bias, which comes in pieces as well.
TEST(LogitPieces, HaveTheirPartOfTheBias) {
  const std::string path = ::testing::TempDir() + "/logit_pieces_gpt2.json";
  std::ofstream(path) << R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
    "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 64, "n_ctx": 64, "vocab_size": 320,
    "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"})";
  const auto model = open_model(path, {.random_weights = 7});
  ASSERT_TRUE(model) << model.error().render();
  expect_same_logits(*model, {.settings = {}});
  expect_same_logits(*model, {.settings = settings_of(testing::kPlainFp32)});
}

TEST(LogitPieces, ComeFromSequencesSideBySide) {
  PLENA_NEEDS_SHARED();
  const Model model = tiny_model("llama-gqa");
  CompileOptions options{.settings = {}, .context = 64, .sequences = 3};
  const Image whole = make_image(model, options);
  options.logits_at_once = 64;
  const Image pieces = make_image(model, options);
  auto at_once = Session::create(whole).value();
  auto in_pieces = Session::create(pieces).value();
  const Ids positions{0, 0, 0};
  for (const Ids& tokens : {Ids{1, 2, 3}, Ids{4, 5, 6}}) {
    const auto expected = at_once.step_batch(tokens, positions).value();
    const auto logits = in_pieces.step_batch(tokens, positions).value();
    EXPECT_TRUE(std::ranges::equal(logits, expected));
  }
}

TEST(LogitPieces, ComeFromAnImageThatWasSaved) {
  PLENA_NEEDS_SHARED();
  const std::string folder = ::testing::TempDir() + "/logit_pieces_image";
  const Image image =
      make_image(tiny_model("llama-gqa"), {.settings = {}, .context = 64, .logits_at_once = 64});
  ASSERT_TRUE(save_image(image, folder));
  const auto loaded = load_image(folder);
  ASSERT_TRUE(loaded) << loaded.error().render();
  EXPECT_EQ(loaded->manifest.logit_pieces->logits, 64U);
  EXPECT_EQ(logits_of(*loaded), logits_of(image));
}

// A program that says nothing of pieces leaves logits unread.
TEST(LogitPieces, ThatDoNotComeAreAnError) {
  PLENA_NEEDS_SHARED();
  Image image = make_image(tiny_model("llama-gqa"), {.settings = {}, .context = 64});
  image.manifest.logit_pieces = {.logits = 64, .so_far_address = 1000};
  auto session = Session::create(image).value();
  const auto logits = session.step(1, 0);
  ASSERT_FALSE(logits);
  EXPECT_EQ(logits.error().code, ErrorCode::Format);
}

// The largest Vector SRAM that does not hold everything at once, to within a few rows.
TEST(LogitPieces, ComeWhereVectorSramIsSmall) {
  PLENA_NEEDS_SHARED();
  const Model model = tiny_model("llama-gqa");
  CompileOptions options{.settings = {}, .context = 64, .block = 1};
  const Image whole = make_image(model, options);
  options.settings.vector_sram_size = 256;
  Image pieces = make_image(model, options);
  for (; !pieces.manifest.logit_pieces && options.settings.vector_sram_size > 3;) {
    options.settings.vector_sram_size -= 3;
    pieces = make_image(model, options);
  }
  EXPECT_LT(pieces.manifest.logits_at_once(), 320U);
  EXPECT_EQ(logits_of(pieces), logits_of(whole));
}

}  // namespace
}  // namespace plena
