// Sessions, sampling and the generation loop on an image that can be followed on paper.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plena/compiler/testing/toy_image.h"
#include "plena/model/tokenizer.h"
#include "plena/runtime/generation.h"
#include "plena/runtime/machine_time.h"
#include "plena/timing/hbm_choice.h"

namespace plena {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::toy_image;
using testing::ToyTable;
using Ids = std::vector<std::uint32_t>;

// Greedy: 1 → 3, 3 → 0, 0 → 3 at even positions; everything → 0 at odd ones.
constexpr ToyTable kEven = {{{0, 0, 1, 2}, {0, 0, 0, 5}, {1, 0, 0, 0}, {3, 0, 0, 1}}};
constexpr ToyTable kOdd = {{{1, 0, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}, {7, 0, 0, 0}}};

Session toy_session(const RunOptions& options = {}) {
  return Session::create(toy_image(kEven, kOdd), options).value();
}

Sampler greedy() {
  return Sampler({.temperature = 0});
}

TEST(Session, RunsTheProgramForATokenAtAPosition) {
  auto session = toy_session();

  EXPECT_THAT(session.step(1, 0).value(), ElementsAre(0, 0, 0, 5));
  EXPECT_THAT(session.step(3, 1).value(), ElementsAre(7, 0, 0, 0));
  EXPECT_THAT(session.step(0, 2).value(), ElementsAre(0, 0, 1, 2));
  EXPECT_EQ(session.machine().retired, 3U * 7);
}

// pipelined: the two loads issue at 0 and 1, S_MUL_INT when the second is there (1 + 4), the third
// load at 6, S_ADD_INT when that is there (6 + 4), S_ADDI_INT at 11, S_MAP_V_FP when its result is
// there (11 + 3), complete 4 + VLEN later.
TEST(Session, AClockGoesOnFromStepToStep) {
  auto session = toy_session();
  const auto profile = load_profile("pipelined").value();
  const auto clock = Timing::create(profile, make_hbm(profile).value(), session.instructions(),
                                    session.machine().settings, session.machine().dialect)
                         .value();
  session.set_clock(clock.get());

  ASSERT_TRUE(session.step(1, 0));
  ASSERT_TRUE(session.step(3, 1));
  ASSERT_TRUE(session.step(0, 2));

  const Cycle step = 14 + 4 + 64;
  ASSERT_EQ(session.step_ends().size(), 3U);
  EXPECT_EQ(session.step_ends()[0].cycles, step);
  EXPECT_EQ(session.step_ends()[2].cycles, 3 * step);
  EXPECT_EQ(session.step_ends()[2].hbm_bytes, 0U);
}

TEST(MachineTime, TheFirstTokenComesAfterThePromptAndTheOthersAfterIt) {
  const std::vector<StepEnd> steps = {{1000, 50}, {2500, 100}, {3000, 160}, {4000, 240}};

  const auto time = machine_time(steps, 2, 1000);

  EXPECT_EQ(time.total, 4000U);
  EXPECT_EQ(time.first_token, 2500U);
  EXPECT_EQ(time.tokens, 2U);
  EXPECT_EQ(*time.cycles_per_token(), 750);
  EXPECT_EQ(*time.bytes_per_token(), 70);
  EXPECT_DOUBLE_EQ(*time.tokens_per_second(), 2 / 1500e-9);
  EXPECT_FALSE(machine_time(steps, 4, 1000).cycles_per_token());
  EXPECT_EQ(machine_time({}, 1, 1000).total, 0U);
}

TEST(Session, RefusesWhatTheImageCannotTake) {
  auto session = toy_session();

  EXPECT_THAT(session.step(4, 0).error().message, HasSubstr("token 4"));
  EXPECT_THAT(session.step(0, 6).error().message, HasSubstr("position 6"));
}

TEST(Session, ATrapIsAnErrorThatSaysWhere) {
  Image image = toy_image(kEven, kOdd);
  image.fp_mem.clear();
  image.int_mem[2] = 4096;  // a row beyond FP_MEM
  auto session = Session::create(image).value();

  const auto logits = session.step(3, 0);

  ASSERT_FALSE(logits);
  EXPECT_EQ(logits.error().code, ErrorCode::Trap);
  EXPECT_THAT(logits.error().message, HasSubstr("pc 6"));
}

TEST(Session, AnIllegalProgramIsRefusedBeforeItRuns) {
  Image image = toy_image(kEven, kOdd);
  image.program.words[2] = 0xFFFFFFFF;

  EXPECT_EQ(Session::create(image).error().code, ErrorCode::Trap);
}

TEST(Session, AnImageWhoseAddressesLeaveItsMemoriesIsRefused) {
  const auto refusal = [](auto&& spoil) {
    Image image = toy_image(kEven, kOdd);
    spoil(image);
    const auto session = Session::create(image);
    return session ? "accepted" : session.error().message;
  };

  EXPECT_THAT(refusal([](Image& i) { i.manifest.token_address = 1024; }), HasSubstr("INT_MEM"));
  EXPECT_THAT(refusal([](Image& i) { i.manifest.position_inputs[0].address = 5000; }),
              HasSubstr("table"));
  EXPECT_THAT(refusal([](Image& i) { i.manifest.position_inputs[0].divide = 0; }),
              HasSubstr("divides by 0"));
  EXPECT_THAT(refusal([](Image& i) { i.manifest.logits_address = UINT64_MAX; }),
              HasSubstr("Vector SRAM"));
  EXPECT_THAT(refusal([](Image& i) { i.manifest.logit_pieces = {0, 3}; }), HasSubstr("pieces"));
  EXPECT_THAT(refusal([](Image& i) { i.manifest.logit_pieces = {65, 3}; }), HasSubstr("pieces"));
  EXPECT_THAT(refusal([](Image& i) { i.manifest.logit_pieces = {64, 5000}; }), HasSubstr("pieces"));
  EXPECT_THAT(refusal([](Image& i) { i.hbm[1].address = UINT64_MAX; }), HasSubstr("second"));
  EXPECT_THAT(refusal([](Image& i) { i.fp_mem.resize(5000); }), HasSubstr("FP_MEM"));
  EXPECT_THAT(refusal([](Image& i) { i.int_mem.resize(5000); }), HasSubstr("INT_MEM"));
  EXPECT_THAT(refusal([](Image& i) { i.program.words.clear(); }), HasSubstr("empty"));
  EXPECT_THAT(refusal([](Image& i) { i.manifest.vocab = 0; }), HasSubstr("vocabulary"));
  EXPECT_THAT(refusal([](Image& i) { i.manifest.context = 0; }), HasSubstr("context"));
}

TEST(Generate, FeedsThePromptThenWhatItSampled) {
  auto session = toy_session();
  auto sampler = greedy();

  const auto generation = generate(session, sampler, Ids{1, 3}, {3, {1, 2}}).value();

  // Positions 0 and 1 take the prompt, then 0 (odd) → 3, at position 2 (even).
  EXPECT_EQ(generation.ids, (Ids{1, 3, 0, 3}));
  EXPECT_EQ(generation.sampled, (Ids{0, 3, 0}));
  EXPECT_EQ(generation.end, GenerationEnd::TokenLimit);
}

TEST(Generate, ShowsEveryTokenOnceAndEveryStep) {
  auto session = toy_session();
  auto sampler = greedy();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> shown;
  Ids stepped;
  GenerationHooks hooks;
  hooks.token = [&](std::uint32_t previous, std::uint32_t id) { shown.emplace_back(previous, id); };
  hooks.step = [&](std::uint32_t id, std::span<const float> logits) {
    EXPECT_EQ(logits.size(), 4U);
    stepped.push_back(id);
  };

  ASSERT_TRUE(generate(session, sampler, Ids{1, 3}, {1, {1, 2}}, hooks));

  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_THAT(shown, ElementsAre(Pair{kNoToken, 1}, Pair{1, 3}, Pair{3, 0}));
  EXPECT_EQ(stepped, (Ids{1, 3}));
}

TEST(Generate, StopsAtTheEndOfTheContext) {
  auto session = toy_session();
  auto sampler = greedy();

  const auto generation = generate(session, sampler, Ids{1}, {100, {1, 2}}).value();

  EXPECT_EQ(generation.ids.size(), 6U);
  EXPECT_EQ(generation.sampled.size(), 6U);
  EXPECT_EQ(generation.end, GenerationEnd::ContextEnd);
}

TEST(Generate, StopsAtAnEndToken) {
  ToyTable to_end = kEven;
  to_end[3] = {0, 0, 9, 0};
  auto session = Session::create(toy_image(to_end, to_end)).value();
  auto sampler = greedy();

  const auto generation = generate(session, sampler, Ids{1}, {100, {1, 2}}).value();

  EXPECT_EQ(generation.ids, (Ids{1, 3}));
  EXPECT_EQ(generation.sampled, (Ids{3, 2}));
  EXPECT_EQ(generation.end, GenerationEnd::EndToken);
}

TEST(Generate, RefusesAPromptThatDoesNotFit) {
  auto session = toy_session();
  auto sampler = greedy();

  EXPECT_THAT(generate(session, sampler, Ids(7, 1), {1, {1, 2}}).error().message,
              HasSubstr("context of 6"));
  EXPECT_TRUE(generate(session, sampler, Ids(6, 1), {1, {1, 2}}));
}

TEST(Generate, AnInterruptedRunSaysSo) {
  const std::atomic<bool> interrupted = true;
  auto session = toy_session({.interrupted = &interrupted});
  auto sampler = greedy();

  EXPECT_EQ(generate(session, sampler, Ids{1}, {1, {1, 2}}).error().code, ErrorCode::Interrupted);
}

TEST(Feed, JudgesTheModelByWhatItWasFed) {
  auto session = toy_session();

  const auto report = feed(session, Ids{1, 3, 0, 2}).value();

  EXPECT_EQ(report.steps, 4U);
  EXPECT_EQ(report.scored, 3U);
  EXPECT_EQ(report.top1_hits, 2U);  // 3 after 1, 0 after 3; not 2 after 0
  // -ln softmax of the rows (0 0 0 5) at 3, (7 0 0 0) at 0 and (0 0 1 2) at 2
  const double nll = std::log(3 * std::exp(-5.0) + 1) + std::log(3 * std::exp(-7.0) + 1) +
                     std::log(2 * std::exp(-1.0) + 1 + std::exp(1.0));
  EXPECT_NEAR(report.negative_log_likelihood, nll, 1e-12);
  EXPECT_NEAR(report.perplexity(), std::exp(nll / 3), 1e-12);
}

TEST(Feed, RefusesIdsOutsideTheVocabulary) {
  auto session = toy_session();

  EXPECT_THAT(feed(session, Ids{1, 4}).error().message, HasSubstr("token 4"));
  EXPECT_THAT(feed(session, Ids{}).error().message, HasSubstr("no token ids"));
}

TEST(Sampler, TemperatureZeroTakesTheFirstOfTheLikeliest) {
  EXPECT_EQ(greedy().pick(std::vector<float>{-1, 2, 2, 0}).value(), 1U);
}

TEST(Sampler, RefusesLogitsWithoutASensibleChoice) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(greedy().pick(std::vector<float>{0, NAN}));
  EXPECT_FALSE(greedy().pick(std::vector<float>{0, kInfinity}));
  EXPECT_FALSE(greedy().pick(std::vector<float>{-kInfinity, -kInfinity}));
  EXPECT_EQ(greedy().pick(std::vector<float>{-kInfinity, 0}).value(), 1U);
}

std::vector<double> frequencies(const SamplingOptions& options, const std::vector<float>& logits) {
  constexpr int kDraws = 40'000;
  Sampler sampler(options);
  std::vector<double> shares(logits.size());
  for (int i = 0; i < kDraws; ++i) shares[sampler.pick(logits).value()] += 1.0 / kDraws;
  return shares;
}

TEST(Sampler, DrawsInProportionToTheSoftmaxAtTheTemperature) {
  // Weights 1 : 3 : 0 at temperature 1; with temperature 2, 1 : sqrt(3).
  const std::vector<float> logits{0, std::log(3.0F), -1000};
  const double root = std::sqrt(3.0);

  const auto warm = frequencies({.temperature = 1, .top_p = 1, .seed = 1}, logits);
  const auto hot = frequencies({.temperature = 2, .top_p = 1, .seed = 2}, logits);

  // Five standard deviations of a share of 40,000 draws are at most 0.0125.
  EXPECT_NEAR(warm[1], 0.75, 0.0125);
  EXPECT_EQ(warm[2], 0);
  EXPECT_NEAR(hot[1], root / (1 + root), 0.0125);
}

TEST(Sampler, TheNucleusIsTheFewestTokensThatReachTheShare) {
  // Probabilities 0.1, 0.4, 0.2, 0.3.
  const std::vector<float> logits{std::log(1.0F), std::log(4.0F), std::log(2.0F), std::log(3.0F)};

  const auto shares = frequencies({.temperature = 1, .top_p = 0.6F, .seed = 3}, logits);

  EXPECT_EQ(shares[0], 0);
  EXPECT_EQ(shares[2], 0);
  EXPECT_NEAR(shares[1], 4.0 / 7, 0.0125);
}

TEST(Sampler, TheSameSeedDrawsTheSameTokens) {
  const std::vector<float> logits(50, 0.0F);
  const auto draws = [&](std::uint64_t seed) {
    Sampler sampler({.temperature = 1, .top_p = 1, .seed = seed});
    Ids ids;
    for (int i = 0; i < 20; ++i) ids.push_back(sampler.pick(logits).value());
    return ids;
  };

  EXPECT_EQ(draws(7), draws(7));
  EXPECT_NE(draws(7), draws(8));
}

TEST(Xorshift, GivesTheNumbersOfItsDefinition) {
  // splitmix64 of 0 is 0xE220A8397B1DCDAF, the first output of its published test vector;
  // xorshift64* of that state by hand: x ^= x >> 12, x ^= x << 25, x ^= x >> 27, then the product.
  std::uint64_t x = 0xE220A8397B1DCDAF;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;

  EXPECT_EQ(Xorshift(0).next(), x * 0x2545F4914F6CDD1D);
}

}  // namespace
}  // namespace plena
