// The controller against the public reference measurements.
#include "plena/dram/stream_run.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "plena/dram/testing/reference_data.h"

namespace plena::dram {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSlowBuild = true;
#else
constexpr bool kSlowBuild = false;
#endif

// The whole set takes half a minute and more under the sanitizers: there one case in `kEvery`.
constexpr std::size_t kEvery = kSlowBuild ? 12 : 1;

std::vector<const StreamCase*> cases_of_group(std::string_view group) {
  std::vector<const StreamCase*> chosen;
  for (const StreamCase& stream : testing::reference_cases())
    if (group.empty() || stream.group == group) chosen.push_back(&stream);
  return chosen;
}

Policy reference_policy(const StreamCase& stream) {
  return *stream_policy(stream, "reference");
}

// What a case gives to three decimals; a mean nobody gives fits anything.
void expect_mean(double ours, const std::optional<double>& theirs) {
  if (!theirs) return;
  EXPECT_NEAR(ours, *theirs, 0.0006);
}

TEST(ReferencePolicy, AcceptsAndFinishesEveryTracedRequestAtTheRecordedCycle) {
  PLENA_NEEDS_SHARED();
  int traced = 0;
  for (const StreamCase* stream : cases_of_group({})) {
    const auto rows = testing::read_trace(stream->id, "requests");
    if (rows.empty()) continue;
    ++traced;
    ASSERT_EQ(rows.size(), stream->requests) << stream->id;
    std::vector<RequestTimes> times;
    const auto result = run_stream(*stream, reference_policy(*stream), {.times = &times});
    ASSERT_TRUE(result.has_value()) << result.error().message;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      ASSERT_EQ(result->in_ck(static_cast<double>(times[k].accepted)),
                std::stod(rows[k].at("accepted")))
          << stream->id << ", request " << k;
      ASSERT_EQ(result->in_ck(static_cast<double>(times[k].finished)),
                std::stod(rows[k].at("finished")))
          << stream->id << ", request " << k;
    }
  }
  EXPECT_EQ(traced, 53);
}

TEST(ReferencePolicy, SendsTheRecordedCommands) {
  PLENA_NEEDS_SHARED();
  std::size_t compared = 0;
  for (const StreamCase* stream : cases_of_group({})) {
    const auto rows = testing::read_trace(stream->id, "commands");
    if (rows.empty()) continue;
    CommandLog log;
    ASSERT_TRUE(run_stream(*stream, reference_policy(*stream), {.log = &log}).has_value());
    ASSERT_GE(log.size(), rows.size()) << stream->id;
    const DramPreset& preset = stream->memory.preset;
    for (std::size_t i = 0; i < rows.size(); ++i, ++compared) {
      const BankCoordinates at = coordinates(preset.standard, log[i].bank);
      const std::string where = stream->id + ", command " + std::to_string(i);
      ASSERT_EQ(static_cast<double>(log[i].tick) / preset.ticks_per_ck,
                std::stod(rows[i].at("cycle")))
          << where;
      ASSERT_EQ(name(log[i].command), rows[i].at("command")) << where;
      ASSERT_EQ(at.pseudo_channel, std::stoul(rows[i].at("pseudo_channel"))) << where;
      if (log[i].command == Command::PrechargeAll || log[i].command == Command::RefreshAll)
        continue;
      ASSERT_EQ(at.group, std::stoul(rows[i].at("bank_group"))) << where;
      ASSERT_EQ(at.bank, std::stoul(rows[i].at("bank"))) << where;
    }
  }
  EXPECT_GT(compared, 40'000U);
}

TEST(ReferencePolicy, MeetsTotalsLatenciesAndRowCountsOfTheWholeSet) {
  PLENA_NEEDS_SHARED();
  const auto cases = cases_of_group({});
  for (std::size_t i = 0; i < cases.size(); i += kEvery) {
    const StreamCase& stream = *cases[i];
    SCOPED_TRACE(stream.id);
    const auto result = run_stream(stream, reference_policy(stream));
    ASSERT_TRUE(result.has_value()) << result.error().message;
    ASSERT_TRUE(stream.expected.has_value());
    EXPECT_EQ(result->total_ck(), stream.expected->total_ck);
    const ChannelStatistics& statistics = result->statistics;
    expect_mean(result->in_ck(statistics.reads().latency.mean()), stream.expected->mean_read_ck);
    expect_mean(result->in_ck(statistics.writes().latency.mean()), stream.expected->mean_write_ck);
    EXPECT_TRUE(compare(*result, *stream.expected, true, 0.5).passed);
  }
}

TEST(OpenPolicy, IsAtLeastAsFastAsTheReferenceOnEveryThroughputCase) {
  PLENA_NEEDS_SHARED();
  const auto cases = cases_of_group("throughput");
  ASSERT_EQ(cases.size(), 80U);
  for (std::size_t i = 0; i < cases.size(); i += kEvery) {
    const auto result = run_stream(*cases[i], kOpenPolicy);
    ASSERT_TRUE(result.has_value()) << result.error().message;
    EXPECT_LE(result->total_ck(), cases[i]->expected->total_ck) << cases[i]->id;
  }
}

TEST(RunStream, RefusesRequestsThatAreNotThoseOfTheChecksum) {
  StreamCase stream;
  stream.memory.preset = *find_dram_preset("hbm2-2000");
  stream.memory.channels = 1;
  stream.requests = 10;
  stream.trace.counters = {{1, 0, 32}};
  EXPECT_TRUE(run_stream(stream, kOpenPolicy).has_value());
  stream.checksum = 1;
  EXPECT_FALSE(run_stream(stream, kOpenPolicy).has_value());
}

TEST(RunStream, StopsWhenInterrupted) {
  StreamCase stream;
  stream.memory.preset = *find_dram_preset("hbm2-2000");
  stream.memory.channels = 1;
  stream.requests = 1'000'000'000;
  stream.trace.counters = {{1, 1024, 32}};
  const std::atomic<bool> interrupted = true;
  const auto result = run_stream(stream, kOpenPolicy, {.interrupted = &interrupted});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::Interrupted);
}

TEST(RunStream, ComparesBothSidesOrOnlyTheSlowOne) {
  StreamResult result{.first_accepted = 0, .last_finished = 990, .tck_ps = 1000};
  const StreamExpectation expected{.total_ck = 1000};
  EXPECT_FALSE(compare(result, expected, true, 0.5).passed);
  EXPECT_TRUE(compare(result, expected, false, 0.5).passed);
  result.last_finished = 1006;
  EXPECT_FALSE(compare(result, expected, false, 0.5).passed);
  EXPECT_TRUE(compare(result, expected, true, 0.7).passed);
}

TEST(RunStream, KnowsTwoPolicies) {
  StreamCase stream;
  EXPECT_EQ(*stream_policy(stream, "reference"), kReferencePolicy);
  stream.row_hit_scheduler = true;
  EXPECT_EQ(*stream_policy(stream, "reference"), kReferenceRowHitPolicy);
  EXPECT_EQ(*stream_policy(stream, "open"), kOpenPolicy);
  EXPECT_FALSE(stream_policy(stream, "closed").has_value());
}

}  // namespace
}  // namespace plena::dram
