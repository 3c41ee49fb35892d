// Profiles as data: the published figures, the settings' overrides, and what a bad file says.
#include "plena/timing/profile.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plena/base/files.h"
#include "plena/base/scratch_folder.h"

namespace plena {
namespace {

using testing::HasSubstr;

InstructionCost cost(std::string_view profile, Op op, const Settings& settings = {},
                     std::uint8_t select = 0) {
  const auto loaded = load_profile(std::string(profile));
  EXPECT_TRUE(loaded) << loaded.error().render();
  const Instruction instruction{.op = op, .rd = 1, .select = select};
  const auto result = instruction_cost(*loaded, settings, instruction);
  EXPECT_TRUE(result) << result.error().render();
  return *result;
}

struct Figure {
  Op op;
  std::uint32_t latency;
  std::uint32_t interval;
};

// timing.md, "Figures for the published machine", at MLEN 64, BLEN 4, HLEN 16, VLEN 64: H = 4.
TEST(Profile, PipelinedHasTheFiguresOfThePublishedMachine) {
  const Figure figures[] = {
      {Op::M_MM, 17, 4},  // 9 + 2·4
      {Op::M_TMM, 17, 4},
      {Op::M_BMM, 17 + 1024, 1024},  // (64/4)²·4 = 1024
      {Op::M_BTMM, 17 + 1024, 1024},
      {Op::M_MM_WO, 10, 1},
      {Op::M_BMM_WO, 6 + 256, 256},
      {Op::M_MV, 29, 16},  // 9 + 4 + 16
      {Op::M_TMV, 29, 16},
      {Op::M_BMV, 29, 16},
      {Op::M_BTMV, 29, 16},
      {Op::M_MV_WO, 70, 1},
      {Op::M_BMV_WO, 262, 4},
      {Op::V_ADD_VV, 11, 1},
      {Op::V_SUB_VF, 11, 1},
      {Op::V_MUL_VV, 11, 1},
      {Op::V_EXP_V, 12, 2},
      {Op::V_RECI_V, 12, 2},
      {Op::V_RED_MAX, 12, 2},
      {Op::V_RED_SUM, 16, 1},  // 10 + log2 64
      {Op::V_SHFT_V, 11, 1},
      {Op::V_MAX_VF, 11, 1},
      {Op::V_TOPK, 42, 32},
      {Op::S_ADD_FP, 8, 1},
      {Op::S_MAX_FP, 8, 1},
      {Op::S_EXP_FP, 9, 1},
      {Op::S_RECI_FP, 9, 1},
      {Op::S_SQRT_FP, 9, 1},
      {Op::S_ADD_INT, 3, 1},
      {Op::S_LUI_INT, 3, 1},
      {Op::S_LD_FP, 7, 1},
      {Op::S_ST_FP, 7, 1},
      {Op::S_LD_INT, 4, 1},
      {Op::S_ST_INT, 4, 1},
      {Op::S_MAP_V_FP, 68, 64},
      {Op::H_PREFETCH_M, 4, 1},
      {Op::H_STORE_V, 4, 1},
      {Op::C_SET_ADDR_REG, 3, 1},
      {Op::C_LOOP_END, 3, 1},
      {Op::C_BREAK, 3, 1},
  };
  for (const Figure& figure : figures) {
    const InstructionCost got = cost("pipelined", figure.op);
    EXPECT_EQ(got.latency, figure.latency) << row_of(figure.op).mnemonic;
    EXPECT_EQ(got.interval, figure.interval) << row_of(figure.op).mnemonic;
  }
  EXPECT_EQ(cost("pipelined", Op::V_TOPK, {}, 1).latency, 138U);  // 10 + 128
}

TEST(Profile, SerialAndIdealHaveTheSameFigures) {
  for (const InstructionRow& row : instruction_table()) {
    EXPECT_EQ(cost("serial", row.op).latency, cost("pipelined", row.op).latency) << row.mnemonic;
    EXPECT_EQ(cost("ideal", row.op).latency, cost("pipelined", row.op).latency) << row.mnemonic;
  }
}

// timing.md: they replace the second term of the latency where present and not 0.
TEST(Profile, LatencyEntriesOfTheSettingsReplaceTheSecondTerm) {
  Settings settings;
  settings.latency = {{"VECTOR_ADD_CYCLES", 5},       {"VECTOR_MUL_CYCLES", 6},
                      {"VECTOR_EXP_CYCLES", 0},       {"VECTOR_SUM_CYCLES", 8},
                      {"VECTOR_MAX_CYCLES", 4},       {"SCALAR_FP_SQRT_CYCLES", 3},
                      {"SCALAR_INT_BASIC_CYCLES", 2}, {"SYSTOLIC_PROCESSING_OVERHEAD", 50}};
  EXPECT_EQ(cost("pipelined", Op::V_ADD_VV, settings).latency, 15U);
  EXPECT_EQ(cost("pipelined", Op::V_SUB_VV, settings).latency, 15U);
  EXPECT_EQ(cost("pipelined", Op::V_MUL_VF, settings).latency, 16U);
  EXPECT_EQ(cost("pipelined", Op::V_EXP_V, settings).latency, 12U);   // 0 does not count
  EXPECT_EQ(cost("pipelined", Op::V_RECI_V, settings).latency, 12U);  // absent
  EXPECT_EQ(cost("pipelined", Op::V_RED_SUM, settings).latency, 18U);
  EXPECT_EQ(cost("pipelined", Op::V_RED_MAX, settings).latency, 14U);
  EXPECT_EQ(cost("pipelined", Op::S_SQRT_FP, settings).latency, 10U);
  EXPECT_EQ(cost("pipelined", Op::S_ADD_INT, settings).latency, 4U);  // 2 + value
  EXPECT_EQ(cost("pipelined", Op::M_MM, settings).latency, 17U);      // the rest has no effect
}

// dialect-plena-rs 7.
TEST(Profile, PlenaRsChargesWhatTheEmulatorCharges) {
  Settings settings;
  settings.latency = {{"SYSTOLIC_PROCESSING_OVERHEAD", 2},
                      {"VECTOR_MAX_CYCLES", 4},
                      {"VECTOR_SUM_CYCLES", 8},
                      {"SCALAR_FP_BASIC_CYCLES", 1}};
  EXPECT_EQ(cost("plena-rs", Op::M_MM, settings).latency, 66U);
  EXPECT_EQ(cost("plena-rs", Op::M_BTMV, settings).latency, 3U);
  EXPECT_EQ(cost("plena-rs", Op::M_MV, settings).latency, 64U);
  EXPECT_EQ(cost("plena-rs", Op::M_BMM_WO, settings).latency, 1U);
  EXPECT_EQ(cost("plena-rs", Op::V_TOPK, settings, 1).latency, 512U);
  EXPECT_EQ(cost("plena-rs", Op::S_MAP_V_FP, settings).latency, 128U);
  EXPECT_EQ(cost("plena-rs", Op::H_PREFETCH_V, settings).latency, 0U);

  const auto profile = load_profile("plena-rs");
  const Instruction into_f0{.op = Op::V_RED_SUM, .rd = 0};
  EXPECT_EQ(instruction_cost(*profile, settings, into_f0)->latency, 0U);
  EXPECT_EQ(profile->overlap, Overlap::Serial);
  EXPECT_EQ(profile->memory, MemoryRules::PlenaRs);
}

TEST(Profile, AFileMayTakeTheRestFromABuiltInOne) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("fast.toml");
  constexpr std::string_view kText = R"toml(base = "pipelined"
queue_depth = 2
picojoules_per_byte = 3.5
[[class]]
instructions = ["M_MM"]
latency = "max(2, ceil_div(MLEN, 3*BLEN) - 1)"
picojoules = 12
)toml";
  ASSERT_TRUE(write_text(path, kText));
  const auto profile = load_profile(path);
  ASSERT_TRUE(profile) << profile.error().render();
  EXPECT_EQ(profile->queue_depth, 2U);
  EXPECT_TRUE(profile->has_energy());
  const auto got = instruction_cost(*profile, {}, {.op = Op::M_MM});
  EXPECT_EQ(got->latency, 5U);  // ceil(64 / 12) - 1
  EXPECT_EQ(got->interval, 1U);
  EXPECT_EQ(got->picojoules, 12.0);
  EXPECT_EQ(instruction_cost(*profile, {}, {.op = Op::M_TMM})->latency, 17U);
}

std::string error_of(std::string_view text) {
  const auto profile = parse_profile(text, "mine.toml");
  return profile ? "no error" : profile.error().render();
}

TEST(Profile, ABadFileSaysWhereAndWhatWouldBeRight) {
  EXPECT_THAT(error_of("overlap = \"pipelined\"\nqueue_dept = 3\n"),
              HasSubstr("mine.toml:2:14: error: a timing profile has no key `queue_dept`"));
  EXPECT_THAT(error_of("overlap = \"pipelned\"\n"),
              HasSubstr("mine.toml:1:11: error: unknown way"));
  EXPECT_THAT(error_of("base = \"pipelined\"\nqueue_depth = 0\n"),
              HasSubstr("mine.toml:2:15: error: queue_depth is a whole number from 1"));
  EXPECT_THAT(error_of("base = \"pipelined\"\n[[class]]\ninstructions = [\"M_MN\"]\nlatency = 3\n"),
              HasSubstr("mine.toml:3:17: error: unknown instruction `M_MN`"));
  EXPECT_THAT(error_of("base = \"pipelined\"\n[[class]]\ninstructions = [\"M_MM\", \"M_MM\"]\n"
                       "latency = 3\n"),
              HasSubstr("M_MM is in a class already"));
  EXPECT_THAT(
      error_of(
          "base = \"pipelined\"\n[[class]]\ninstructions = [\"M_MM\"]\nlatency = \"9 + 2*BLN\"\n"),
      HasSubstr("mine.toml:4:18: error: unknown name `BLN`"));
  EXPECT_THAT(error_of("base = \"pipelined\"\n[[class]]\ninstructions = [\"M_MM\"]\n"
                       "latency = \"9 + setting(VECTOR_AD_CYCLES, 1)\"\n"),
              HasSubstr("did you mean VECTOR_ADD_CYCLES?"));
  EXPECT_THAT(error_of("overlap = \"serial\"\n"), HasSubstr("no class names M_MM, M_TMM"));
  EXPECT_THAT(error_of("overlap = "), HasSubstr("mine.toml:1:"));
}

TEST(Profile, AnUnknownNameSuggestsTheNearOne) {
  EXPECT_THAT(load_profile("pipelned").error().render(), HasSubstr("did you mean pipelined?"));
  EXPECT_THAT(load_profile("nowhere/x.toml").error().render(), HasSubstr("nowhere/x.toml"));
}

TEST(Profile, ALatencyThatMakesNoSenseIsAnErrorAtItsExpression) {
  const auto evaluate = [](std::string_view latency, std::string_view interval = "1") {
    const auto profile =
        parse_profile(fmt::format("base = \"pipelined\"\n[[class]]\ninstructions = [\"M_MM\"]\n"
                                  "latency = \"{}\"\ninterval = \"{}\"\n",
                                  latency, interval),
                      "mine.toml");
    const auto got = instruction_cost(*profile, {}, {.op = Op::M_MM});
    return got ? fmt::format("{}/{}", got->latency, got->interval) : got.error().render();
  };
  EXPECT_EQ(evaluate("-(-3) * 2 % 4"), "2/1");
  EXPECT_THAT(evaluate("0"),
              HasSubstr("mine.toml:4:12: error: the latency of M_MM comes out as 0"));
  EXPECT_THAT(evaluate("3 - BLEN"), HasSubstr("comes out as -1"));
  EXPECT_THAT(evaluate("3", "4"), HasSubstr("the interval of M_MM comes out as 4"));
  EXPECT_THAT(evaluate("3 / (BLEN - 4)"), HasSubstr("division by 0"));
  EXPECT_THAT(evaluate("9223372036854775807 + 1"), HasSubstr("does not fit"));
  EXPECT_THAT(evaluate("ceil_log2(0)"), HasSubstr("the logarithm of 0"));
}

TEST(Profile, DeepNestingIsAnErrorAndNotACrash) {
  const std::string deep(100'000, '(');
  EXPECT_THAT(error_of("base = \"pipelined\"\n[[class]]\ninstructions = [\"M_MM\"]\nlatency = \"" +
                       deep + "\"\n"),
              HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace plena
