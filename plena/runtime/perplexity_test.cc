// Windows and sums on paper, and two documents against sums of a public library in f32.
#include "plena/runtime/perplexity.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/base/shared_data.h"
#include "plena/compiler/compile.h"
#include "plena/compiler/testing/toy_image.h"
#include "plena/config/testing/typed_settings.h"
#include "plena/model/llama.h"

namespace plena {
namespace {

using ::testing::HasSubstr;
using testing::toy_image;
using testing::ToyTable;
using Ids = std::vector<std::uint32_t>;

constexpr ToyTable kEven = {{{0, 0, 1, 2}, {0, 0, 0, 5}, {1, 0, 0, 0}, {3, 0, 0, 1}}};
constexpr ToyTable kOdd = {{{1, 0, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}, {7, 0, 0, 0}}};

Session toy_session() {
  return Session::create(toy_image(kEven, kOdd)).value();
}

// -ln p of the logit `own` beside the three others.
double surprise(double own, double a, double b, double c) {
  return std::log(std::exp(own) + std::exp(a) + std::exp(b) + std::exp(c)) - own;
}

TEST(Perplexity, OneWindowScoresEveryTokenButTheFirst) {
  auto session = toy_session();
  const std::vector<Ids> documents = {{1, 3, 0, 3}};

  const auto report = score(session, documents).value();

  // 1 -> 3 at position 0, 3 -> 0 at 1, 0 -> 3 at 2.
  const double expected = surprise(5, 0, 0, 0) + surprise(7, 0, 0, 0) + surprise(2, 0, 0, 1);
  EXPECT_EQ(report.steps, 3U);
  EXPECT_EQ(report.scored, 3U);
  EXPECT_EQ(report.top1_hits, 3U);
  EXPECT_NEAR(report.negative_log_likelihood, expected, 1e-9);
  EXPECT_NEAR(report.perplexity(), std::exp(expected / 3), 1e-9);
}

TEST(Perplexity, LaterWindowsRestartAtPositionZeroAndScoreWhatIsNew) {
  auto session = toy_session();
  const std::vector<Ids> documents = {{1, 3, 0, 3, 0}};
  std::uint64_t steps = 0;

  const auto report =
      score(session, documents, {.length = 3, .stride = 1}, [&](std::uint64_t tokens) {
        steps += tokens;
      }).value();

  // Tokens 0-2: 1 -> 3 at 0, 3 -> 0 at 1. Tokens 1-3: only 0 -> 3, at 1. Tokens 2-4: 3 -> 0, at 1.
  EXPECT_NEAR(
      report.negative_log_likelihood,
      surprise(5, 0, 0, 0) + surprise(7, 0, 0, 0) + surprise(0, 1, 0, 0) + surprise(7, 0, 0, 0),
      1e-9);
  EXPECT_EQ(report.scored, 4U);
  EXPECT_EQ(report.steps, 6U);
  EXPECT_EQ(steps, 6U);
  EXPECT_EQ(count_tokens(documents, {.length = 3, .stride = 1}, 6), 6U);
}

TEST(Perplexity, DocumentsAreScoredOnTheirOwn) {
  auto session = toy_session();
  const std::vector<Ids> documents = {{1, 3}, {1}, {0, 2}, {}};

  const auto report = score(session, documents).value();

  EXPECT_EQ(report.documents, 4U);
  EXPECT_EQ(report.scored, 2U);
  EXPECT_NEAR(report.negative_log_likelihood, surprise(5, 0, 0, 0) + surprise(1, 0, 0, 2), 1e-9);
}

TEST(Perplexity, RefusesWindowsAndTokensThatDoNotFit) {
  auto session = toy_session();
  const auto refusal = [&](SlidingWindow window, Ids ids) {
    const auto report = score(session, std::vector<Ids>{std::move(ids)}, window);
    return report ? "accepted" : report.error().message + "; " + report.error().hint;
  };

  EXPECT_THAT(refusal({.length = 7}, {1, 3}), HasSubstr("context of 6"));
  EXPECT_THAT(refusal({.length = 1}, {1, 3}), HasSubstr("from 2"));
  EXPECT_THAT(refusal({.length = 3, .stride = 4}, {1, 3}), HasSubstr("leaves tokens between"));
  EXPECT_THAT(refusal({}, {1, 4}), HasSubstr("token 4"));
}

// Sums of -ln p over documents 1 and 2 of the evaluation text: transformers in f32, logits in f64
// before the log-softmax.
TEST(Perplexity, InFp32ItIsThatOfAPublicLibrary) {
  PLENA_NEEDS_SHARED();
  const std::string folder = shared_data() + "/models/stories260K-eval/";
  const auto ids = nlohmann::json::parse(read_text(folder + "token_ids.json").value())
                       .at("tinystories-5.txt")
                       .get<std::vector<Ids>>();
  const auto reference = nlohmann::json::parse(read_text(folder + "reference.json").value())
                             .at("/texts/tinystories-5.txt/sliding/documents"_json_pointer);
  const auto model =
      open_llama2c(std::string(PLENA_SOURCE_DIR) + "/models/stories260K/stories260K.bin").value();
  for (const bool blocks : {false, true}) {
    CompileOptions options;
    options.settings = testing::settings_of(testing::kPlainFp32);
    options.all_logits = blocks;
    auto session = Session::create(compile(describe(model), options).value()).value();
    for (const std::size_t document : {1, 2}) {
      std::uint64_t runs = 0;
      const auto report = score(session, std::span(ids).subspan(document, 1),
                                {.length = 256, .stride = 128}, [&](std::uint64_t) { ++runs; })
                              .value();
      const auto& expected = reference.at(document);
      EXPECT_EQ(report.scored, expected.at("scored").get<std::uint64_t>());
      EXPECT_NEAR(report.negative_log_likelihood, expected.at("nll_sum").get<double>(), 2e-3);
      EXPECT_EQ(runs < report.steps, blocks);
    }
  }
}

}  // namespace
}  // namespace plena
