// Reports: sums over loops and regions, the most expensive first, lower bounds by hand.
#include "plena/timing/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/asm/assembler.h"
#include "plena/timing/report_text.h"
#include "plena/timing/testing/random_program.h"
#include "plena/timing/testing/timed_run.h"

namespace plena {
namespace {

using testing::HasSubstr;

struct Reported {
  Program program;
  TimedRun run;
  TimingReport report;
};

Reported report_on(std::string_view text, const TimedRunOptions& options = run_with("pipelined")) {
  Reported out;
  out.program = assemble(text, {.source_name = "test.asm",
                                .dialect = options.dialect,
                                .symbols = integer_symbols(options.settings)})
                    .program;
  out.run = timed_run(out.program.words, options);
  out.report = make_report(*out.run.timing, options.settings, options.dialect, out.program.regions);
  return out;
}

constexpr std::string_view kLoops = R"(
.region outside
      S_ADDI_INT   gp1, gp0, 64      ; 0
      C_LOOP_START gp2, 2            ; 1
.region inside
      C_LOOP_START gp3, 3            ; 2
      V_EXP_V      gp1, gp1, 0       ; 3
      C_LOOP_END   gp3               ; 4
.endregion
      S_ADDI_INT   gp4, gp4, 1       ; 5
      C_LOOP_END   gp2               ; 6
.endregion
      V_RED_SUM    f1, gp1           ; 7
)";

// A tile is 64 rows of 64 bytes, 2 bursts, and of 8 bytes of scales, 1 burst.
TEST(Report, EveryProfileCountsTheBytesOfTransfers) {
  for (const char* profile : {"serial", "pipelined", "ideal"}) {
    const auto [program, run, report] = report_on(
        "S_ADDI_INT      gp1, gp0, 65536\n"
        "C_SET_ADDR_REG  a1, gp0, gp0\n"
        "C_SET_SCALE_REG gp1\n"
        "H_PREFETCH_M    gp0, gp0, a1, 0, 0\n",
        run_with(profile));
    EXPECT_EQ(report.hbm_bytes(), 64U * 3U * 32U) << profile;
  }
}

TEST(Report, LoopsAndRegionsAreSumsOfTheirInstructions) {
  const auto [program, run, report] = report_on(kLoops);
  ASSERT_EQ(report.loops.size(), 2U);
  EXPECT_EQ(report.loops[0].start, 1U);
  EXPECT_EQ(report.loops[0].end, 6U);
  EXPECT_EQ(report.loops[0].iterations, 2U);
  EXPECT_EQ(report.loops[1].start, 2U);
  EXPECT_EQ(report.loops[1].depth, 1U);
  EXPECT_EQ(report.loops[1].entries, 2U);
  EXPECT_EQ(report.loops[1].iterations, 6U);
  EXPECT_EQ(report.loops[1].causes, causes_of(report, 2, 5));
  EXPECT_EQ(report.loops[0].causes, causes_of(report, 1, 7));

  ASSERT_EQ(report.regions.size(), 2U);
  EXPECT_EQ(report.regions[0].region.name, "outside");
  EXPECT_EQ(report.regions[0].causes, causes_of(report, 0, 7));
  EXPECT_EQ(report.regions[1].causes, report.loops[1].causes);
  EXPECT_EQ(report.regions[1].instructions, 2U + 6U + 6U);
  EXPECT_EQ(report.causes.total(), report.total);
}

// Each V_EXP_V waits for the row of the one before it: 12 cycles apart.
TEST(Report, TheMostExpensiveComeFirst) {
  const auto [program, run, report] = report_on(kLoops);
  const auto instructions = top_instructions(report, 10);
  ASSERT_FALSE(instructions.empty());
  EXPECT_EQ(instructions[0], 3U);
  EXPECT_EQ(report.instructions[3].executions, 6U);
  EXPECT_EQ(top_instructions(report, 2).size(), 2U);
  EXPECT_EQ(top_loops(report, 10), (std::vector<std::size_t>{0, 1}));
}

TEST(Report, BoundsFollowFromTheWork) {
  const auto [program, run, report] = report_on(R"(
      S_ADDI_INT      gp1, gp0, 4096
      C_SET_ADDR_REG  a1, gp0, gp0
      C_SET_SCALE_REG gp1
      H_PREFETCH_M    gp0, gp0, a1, 0, 0   ; 192 bursts of 32 bytes, 8 a cycle: 24 cycles
      M_MV            0, gp0, gp0          ; 64 · 64 products, 4 · 64 a cycle: 16 cycles
      M_MV_WO         gp0, 0
      V_EXP_V         gp0, gp0, 0          ; 1 row
  )");
  const Roofline& roofline = report.roofline;
  EXPECT_EQ(roofline.work.hbm_bytes, 192U * 32U);
  EXPECT_EQ(roofline[Bound::Hbm], 24U);
  EXPECT_EQ(roofline.work.multiply_adds, 4096U);
  EXPECT_EQ(roofline[Bound::Array], 16U);
  EXPECT_EQ(roofline[Bound::Vector], 1U);
  EXPECT_EQ(roofline[Bound::Issue], 7U);
  EXPECT_EQ(roofline.binding(), Bound::Hbm);
  EXPECT_DOUBLE_EQ(roofline.achieved(report.total), 24.0 / static_cast<double>(report.total));
  EXPECT_DOUBLE_EQ(report.peak_bytes_per_cycle, 256.0);
}

TEST(Report, NoProfileIsFasterThanTheBounds) {
  for (const char* profile : {"serial", "pipelined", "ideal"}) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      TimedRunOptions options = run_with(profile);
      options.settings = random_program_settings(false);
      options.dialect = *Dialect::parse("plena+moe+bmv+minmax");
      const TimedRun run = timed_run(random_program(seed, options.settings), options);
      const auto report = make_report(*run.timing, options.settings, options.dialect);
      for (const Cycle bound : report.roofline.cycles)
        EXPECT_GE(report.total, bound) << profile << " " << seed;
    }
  }
}

TEST(Report, EnergyIsOperationsAndBytes) {
  TimedRunOptions options = run_with("pipelined");
  options.profile = *parse_profile(R"(base = "pipelined"
picojoules_per_byte = 2.0
[[class]]
instructions = ["V_EXP_V"]
latency = 12
interval = 2
picojoules = 5.5
)",
                                   "energy.toml");
  const auto [program, run, report] = report_on(R"(
      C_LOOP_START    gp2, 4
      V_EXP_V         gp0, gp0, 0          ; 4 times 5.5 pJ
      C_LOOP_END      gp2
      C_SET_ADDR_REG  a1, gp0, gp0
      C_SET_SCALE_REG gp0
      H_PREFETCH_V    gp0, gp0, a1, 0, 0
  )",
                                                options);
  ASSERT_TRUE(report.picojoules);
  EXPECT_DOUBLE_EQ(*report.picojoules, 4 * 5.5 + 2.0 * static_cast<double>(report.hbm_bytes()));
}

TEST(Report, TextNamesLinesCausesAndBounds) {
  const auto [program, run, report] = report_on(kLoops);
  const std::string text = to_text(report, program, {});
  EXPECT_THAT(text, HasSubstr("profile pipelined"));
  EXPECT_THAT(text, HasSubstr("V_EXP_V gp1, gp1, 0"));
  EXPECT_THAT(text, HasSubstr("line 6"));
  EXPECT_THAT(text, HasSubstr("SRAM range"));
  EXPECT_THAT(text, HasSubstr("the binding one"));
  EXPECT_THAT(text, HasSubstr("inside"));
}

TEST(Report, JsonCarriesSumsThatAddUp) {
  const auto [program, run, report] = report_on(kLoops);
  const auto json = to_json(report, program, {});
  std::uint64_t sum = 0;
  for (const auto& instruction : json["instructions"])
    sum += instruction["cycles"].get<std::uint64_t>();
  EXPECT_EQ(sum, json["cycles"].get<std::uint64_t>());
  EXPECT_EQ(json["regions"][1]["name"], "inside");
}

}  // namespace
}  // namespace plena
