// Traces as a viewer sees them: slices where the rules of timing.md put their instructions, sums
// that are those of the report. Read back by libprotobuf over the public schema.
#include "plena/observe/timeline_trace.h"

#include <numeric>

#include <gmock/gmock.h>

#include "plena/asm/assembler.h"
#include "plena/base/scratch_folder.h"
#include "plena/observe/testing/decoded_trace.h"
#include "plena/timing/hbm_choice.h"
#include "plena/timing/report.h"
#include "plena/timing/testing/random_program.h"

namespace plena {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

struct TracedRun {
  DecodedTrace trace;
  TimingReport report;
};

struct TraceSetup {
  std::string profile = "pipelined";
  std::string memory = "ideal";
  Settings settings;
  Dialect dialect;
};

TracedRun traced_run(const Program& program, const TraceSetup& setup) {
  const ScratchFolder folder;
  const std::string path = folder.path() / "run.pftrace";
  auto profile = load_profile(setup.profile);
  EXPECT_TRUE(choose_hbm_preset(*profile, setup.memory));
  const auto prepared = prepare(program.words, setup.settings, setup.dialect);
  auto clock = Timing::create(*profile, std::move(*make_hbm(*profile)), instructions(**prepared),
                              setup.settings, setup.dialect);
  auto trace = TimelineTrace::create({.path = path, .title = "test"}, program, **clock,
                                     setup.settings, setup.dialect);
  EXPECT_TRUE(trace) << trace.error().render();
  (*clock)->set_listener(trace->get());
  auto machine = Machine::create(setup.settings, setup.dialect);
  run(*machine, **prepared, {.observer = clock->get()});
  EXPECT_TRUE((*clock)->drain());
  (*clock)->set_listener(nullptr);
  EXPECT_TRUE((*trace)->finish());
  return {decode_trace(path), make_report(**clock, setup.settings, setup.dialect, program.regions)};
}

TracedRun traced_run(std::string_view text, const TraceSetup& setup = {}) {
  const Assembly assembly = assemble(text, {.symbols = integer_symbols(setup.settings)});
  EXPECT_TRUE(assembly.ok()) << first_error(assembly).render();
  return traced_run(assembly.program, setup);
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> times(
    const std::vector<DecodedSlice>& slices) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
  for (const DecodedSlice& slice : slices) all.emplace_back(slice.from, slice.to);
  return all;
}

// The example of the rules of counting: issues at 0, 3 and 6, since S_*_INT takes 3 cycles.
constexpr std::string_view kChain =
    "S_ADDI_INT gp1, gp0, 64\n"
    "S_ADD_INT  gp2, gp1, gp1\n"
    "V_ADD_VF   gp2, gp1, f0, 0\n";

TEST(TimelineTrace, InstructionsStandOnTheirUnitsTracksWithTextAndLine) {
  const DecodedTrace trace = traced_run(kChain).trace;
  const auto scalars = trace.on("scalar int");
  EXPECT_THAT(times(scalars), ElementsAre(Pair(0, 1), Pair(3, 4)));
  EXPECT_EQ(scalars[1].name, "S_ADD_INT gp2, gp1, gp1");
  EXPECT_EQ(scalars[1].line, 2U);
  EXPECT_THAT(times(trace.on("vector")), ElementsAre(Pair(6, 7)));
}

TEST(TimelineTrace, StallsAreSlicesOfTheirOwnAndStandBesideTheInstruction) {
  const DecodedTrace trace = traced_run(kChain).trace;
  const auto waits = trace.on("next instruction waits for");
  EXPECT_THAT(times(waits), ElementsAre(Pair(1, 3), Pair(4, 6)));
  EXPECT_EQ(waits[0].name, "register");
  const auto vector = trace.on("vector");
  EXPECT_THAT(vector[0].texts, ElementsAre(Pair("waited for", "register")));
  EXPECT_THAT(vector[0].numbers, ElementsAre(Pair("waited cycles", 2)));
}

TEST(TimelineTrace, SerialRunsShowTheWholeLatency) {
  const DecodedTrace trace = traced_run(kChain, {.profile = "serial"}).trace;
  EXPECT_THAT(times(trace.on("scalar int")), ElementsAre(Pair(0, 3), Pair(3, 6)));
  EXPECT_THAT(times(trace.on("vector")), ElementsAre(Pair(6, 17)));
}

// 8, 12 and 20 cycles at BLEN 4, 8 and 16, behind BLEN + 5 that fetch the operands (timing.md).
TEST(TimelineTrace, AnMmmsTimeInTheArrayIsASliceOfItsOwn) {
  for (const auto& [blen, in_array] :
       {std::pair(4U, 8U), std::pair(8U, 12U), std::pair(16U, 20U)}) {
    TraceSetup setup;
    setup.settings.blen = blen;
    const auto slices = traced_run("M_MM 0, gp0, gp0\n", setup).trace.on("array");
    EXPECT_THAT(times(slices), ElementsAre(Pair(blen + 5, blen + 5 + in_array)));
  }
}

// BLEN 4: every 4 cycles a compute enters for 8, so that two are in the array at once.
TEST(TimelineTrace, ComputesOverlapInTheArrayOnLanesOfOneName) {
  const DecodedTrace trace =
      traced_run("M_MM 0, gp0, gp0\nM_MM 0, gp0, gp0\nM_MM 0, gp0, gp0\n").trace;
  EXPECT_THAT(times(trace.on("array")), ElementsAre(Pair(9, 17), Pair(13, 21), Pair(17, 25)));
  EXPECT_EQ(std::ranges::count(trace.tracks, "array"), 2);
}

TEST(TimelineTrace, RegionsNest) {
  const DecodedTrace trace = traced_run(
                                 ".region outer\n"
                                 "S_ADDI_INT gp1, gp0, 1\n"  // issues at 0
                                 ".region inner\n"
                                 "S_ADDI_INT gp2, gp0, 1\n"  // at 1
                                 ".endregion\n"
                                 "S_ADDI_INT gp3, gp0, 1\n"  // at 2
                                 ".endregion\n"
                                 "S_ADDI_INT gp4, gp0, 1\n")  // at 3
                                 .trace;
  const auto regions = trace.on("regions");
  ASSERT_EQ(regions.size(), 2U);
  EXPECT_EQ(regions[0].name, "inner");
  EXPECT_EQ(regions[0].depth, 1U);
  EXPECT_EQ(regions[1].name, "outer");
  EXPECT_THAT(times(regions), ElementsAre(Pair(1, 2), Pair(0, 3)));
}

// A tile: 64 rows of 64 bytes, 2 bursts, and of 8 bytes of scales, 1 burst.
constexpr std::string_view kPrefetch =
    "S_ADDI_INT      gp1, gp0, 65536\n"
    "C_SET_ADDR_REG  a1, gp0, gp0\n"
    "S_ADDI_INT      gp2, gp0, 192\n"
    "C_SET_SCALE_REG gp1\n"
    "H_PREFETCH_M    gp0, gp0, a1, 0, 0\n";

TEST(TimelineTrace, TransfersLastFromIssueToCompletion) {
  const DecodedTrace trace = traced_run(kPrefetch).trace;
  const auto loads = trace.on("load M");
  ASSERT_EQ(loads.size(), 1U);
  EXPECT_EQ(loads[0].numbers.at("bytes"), 64U * 3U * 32U);
  // SCALE_REG, set at 3, is ready at 6; 192 bursts from cycle 7 on, eight a nanosecond, the last
  // one 17 ns under way, delivered 3 later: 7 + 23 + 17 + 3.
  EXPECT_THAT(times(loads), ElementsAre(Pair(6, 50)));
  EXPECT_EQ(loads[0].texts.at("waited for"), "register");
}

TEST(TimelineTrace, ChannelsShowEveryBurst) {
  const DecodedTrace trace = traced_run(kPrefetch, {.memory = "hbm2-2000"}).trace;
  std::uint64_t bursts = 0;
  for (const DecodedSlice& slice : trace.slices) {
    if (!slice.track.starts_with("channel")) continue;
    EXPECT_EQ(slice.name, "read");
    bursts += slice.numbers.at("bursts");
  }
  EXPECT_EQ(bursts, 64U * 3U);
  EXPECT_EQ(
      std::ranges::count_if(trace.tracks, [](const auto& t) { return t.starts_with("channel"); }),
      16);  // 8 channels of 2 pseudo-channels
}

// A bandwidth of b bytes a cycle over a window of 256 cycles is 8 b bursts, whole bytes a cycle.
TEST(TimelineTrace, CountersComeBackToNothing) {
  const DecodedTrace trace = traced_run(kPrefetch, {.memory = "hbm2-2000"}).trace;
  std::vector<std::int64_t> bandwidth, queue;
  for (const DecodedCount& count : trace.counts) {
    if (count.track == "HBM bandwidth") bandwidth.push_back(count.value);
    if (count.track == "HBM queues") queue.push_back(count.value);
  }
  EXPECT_THAT(bandwidth, ElementsAre(64 * 3 * 32 / 256, 0));
  ASSERT_FALSE(queue.empty());
  EXPECT_EQ(queue.back(), 0);
}

std::uint64_t duration(const std::vector<DecodedSlice>& slices) {
  return std::accumulate(slices.begin(), slices.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& s) { return sum + s.to - s.from; });
}

// The report counts by itself; the trace must come to the same.
TEST(TimelineTrace, SlicesOfRandomProgramsSumToTheReport) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    TraceSetup setup;
    setup.memory = seed % 2 == 0 ? "hbm2-2000" : "ideal";
    setup.settings = random_program_settings(seed % 3 == 0);
    setup.dialect = *Dialect::parse("plena+moe+bmv+minmax");
    Program program;
    program.words = random_program(seed, setup.settings);
    const TracedRun run = traced_run(program, setup);

    CauseCycles waits;
    for (const DecodedSlice& slice : run.trace.on("next instruction waits for")) {
      for (std::size_t c = 0; c < kStallCauseCount; ++c)
        if (slice.name == cause_name(static_cast<Cause>(c)))
          waits.cycles[c] += slice.to - slice.from;
    }
    for (std::size_t c = 1; c < kStallCauseCount; ++c)
      EXPECT_EQ(waits.cycles[c], run.report.causes.cycles[c]) << cause_name(static_cast<Cause>(c));
    // Its cycles behind the last issue are nobody's wait.
    EXPECT_LE(waits[Cause::HbmData], run.report.causes[Cause::HbmData]);

    std::uint64_t bytes = 0;
    for (std::size_t u = 0; u < kUnitCount; ++u) {
      const auto slices = run.trace.on(std::string(unit_name(static_cast<Unit>(u))));
      if (is_transfer_unit(static_cast<Unit>(u))) {
        for (const auto& slice : slices) bytes += slice.numbers.at("bytes");
      } else {
        EXPECT_EQ(duration(slices), (*run.report.units)[u].busy);
      }
    }
    EXPECT_EQ(bytes, run.report.hbm_bytes());
  }
}

class FailingTrace : public testing::Test {
 protected:
  // A trace of a program of one instruction that runs `times` times.
  Status trace_to(const std::string& path, std::uint64_t times) {
    const Settings settings;
    const auto profile = load_profile("pipelined");
    const auto prepared = prepare(program_.words, settings, {});
    auto clock = Timing::create(*profile, std::move(*make_hbm(*profile)), instructions(**prepared),
                                settings, {});
    auto trace =
        TimelineTrace::create({.path = path, .title = "test", .failed = [this] { ++failures_; }},
                              program_, **clock, settings, {});
    if (!trace) return forward_error(trace);
    for (std::uint64_t t = 0; t < times; ++t)
      (*trace)->issued({.unit = Unit::ScalarInt, .issue = t, .complete = t + 3});
    return (*trace)->finish();
  }

  Program program_ = assemble("S_ADDI_INT gp1, gp0, 1\n", {}).program;
  int failures_ = 0;
};

TEST_F(FailingTrace, AFullDiskIsToldOnceAndAnError) {
  const Status status = trace_to("/dev/full", 100'000);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("/dev/full"));
  EXPECT_EQ(failures_, 1);
}

TEST_F(FailingTrace, AFolderThatIsNotThereIsAnErrorBeforeTheRun) {
  EXPECT_FALSE(trace_to("/nowhere/run.pftrace", 1));
}

TEST(TimelineTraceOfIdeal, UnitsWithoutNumberHaveNoTracks) {
  const Program program = assemble("S_ADDI_INT gp1, gp0, 1\n", {}).program;
  const auto profile = load_profile("ideal");
  const auto prepared = prepare(program.words, {}, {});
  const auto clock =
      Timing::create(*profile, std::move(*make_hbm(*profile)), instructions(**prepared), {}, {});
  const auto trace = TimelineTrace::create({.path = "/dev/null"}, program, **clock, {}, {});
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().code, ErrorCode::Usage);
}

}  // namespace
}  // namespace plena
