#include "plena/observe/statistics.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plena/observe/observe_fixture.h"

namespace plena {
namespace {

using testing::HasSubstr;

// Runs instructions on the small machine and counts them.
Statistics count(const std::vector<Instruction>& program, const Settings& settings) {
  std::vector<std::uint32_t> words;
  words.reserve(program.size());
  for (const auto& instruction : program) words.push_back(encode(instruction));
  const Dialect dialect;
  Machine machine = std::move(*Machine::create(settings, dialect));
  const auto prepared = prepare(words, settings, dialect);
  EXPECT_TRUE(prepared);
  Statistics statistics(settings, dialect);
  const Stop stop = run(machine, **prepared, {.observer = &statistics});
  EXPECT_EQ(stop.reason, StopReason::Halted);
  return statistics;
}

TEST(Statistics, CountsWhatALoopRunsByMnemonicAndClass) {
  const auto statistics = count({{.op = Op::C_LOOP_START, .rd = 1, .imm = 3},
                                 {.op = Op::S_ADDI_INT, .rd = 2, .rs1 = 2, .imm = 1},
                                 {.op = Op::C_LOOP_END, .rd = 1}},
                                small_settings());

  EXPECT_EQ(statistics.total(), 7U);
  EXPECT_EQ(statistics.count(Op::S_ADDI_INT), 3U);
  EXPECT_EQ(statistics.count(InstructionClass::Scalar), 3U);
  EXPECT_EQ(statistics.count(InstructionClass::Control), 4U);
  EXPECT_EQ(statistics.count(InstructionClass::Matrix), 0U);
}

TEST(Statistics, CountsTheWorkOfTheUnits) {
  // BLEN 4, MLEN 16: M_MM is 4 x 4 x 16 products, M_MV 16 x 16; a row has 16 lanes.
  const auto statistics = count({{.op = Op::M_MM},
                                 {.op = Op::M_MM},
                                 {.op = Op::M_MM_WO},
                                 {.op = Op::M_MV},
                                 {.op = Op::V_EXP_V},
                                 {.op = Op::V_RED_SUM, .rd = 1}},
                                small_settings());

  EXPECT_EQ(statistics.multiply_adds(), 2U * 256 + 256);
  EXPECT_EQ(statistics.lane_operations(), 32U);
}

TEST(Statistics, CountsTheLanesOfBothKindsOfTopk) {
  const Dialect dialect = *Dialect::parse("plena+moe");
  Machine machine = std::move(*Machine::create(small_settings(), dialect));
  Statistics statistics(small_settings(), dialect);

  statistics.retired(machine, 0, {.op = Op::V_TOPK, .select = 0});
  statistics.retired(machine, 1, {.op = Op::V_TOPK, .select = 1});
  statistics.retired(machine, 2, {.op = Op::V_EXP_V});

  EXPECT_EQ(statistics.lane_operations(), 32U + 128 + 16);
}

TEST(Statistics, CountsElementsAndScalesOfTransfers) {
  // Four rows of 16 one-byte elements with a scale for every 8; the store writes the same.
  const auto statistics = count({{.op = Op::S_LUI_INT, .rd = 1, .imm = 1},
                                 {.op = Op::C_SET_ADDR_REG, .rd = 0},
                                 {.op = Op::C_SET_SCALE_REG, .rd = 1},
                                 {.op = Op::H_PREFETCH_V},
                                 {.op = Op::H_PREFETCH_V},
                                 {.op = Op::H_STORE_V}},
                                small_settings());

  const HbmTraffic expected = {128, 16, 64, 8};
  EXPECT_EQ(statistics.traffic(), expected);
}

TEST(Statistics, CountsOnlyBytesThatHoldElements) {
  // MXFP4: two elements a byte. 16 rows of 16 elements from element 1 on, 17 apart, touch 9 bytes
  // from an odd element and 8 from an even one; blocks of 8 that are not aligned touch 3 scales,
  // aligned ones (element 136) 2.
  Settings settings = small_settings();
  settings.hbm_m_weight_type = DataType::mx(kE2M1, 8);
  const auto statistics = count({{.op = Op::S_LUI_INT, .rd = 1, .imm = 1},
                                 {.op = Op::S_ADDI_INT, .rd = 2, .imm = 17},
                                 {.op = Op::S_ADDI_INT, .rd = 3, .imm = 1},
                                 {.op = Op::C_SET_ADDR_REG, .rd = 0},
                                 {.op = Op::C_SET_SCALE_REG, .rd = 1},
                                 {.op = Op::C_SET_STRIDE_REG, .rd = 2},
                                 {.op = Op::H_PREFETCH_M, .rs1 = 3, .select = 1}},
                                settings);

  // Row r starts at element 1 + 17 r: even for odd r; a multiple of 8 for r = 7 and 15.
  const HbmTraffic expected = {8 * 9 + 8 * 8, 14 * 3 + 2 * 2, 0, 0};
  EXPECT_EQ(statistics.traffic(), expected);
}

TEST(Statistics, ShowsOnlyMnemonicsThatRan) {
  const auto statistics = count({{.op = Op::V_EXP_V}}, small_settings());

  EXPECT_THAT(to_text(statistics), HasSubstr("V_EXP_V"));
  EXPECT_THAT(to_text(statistics), testing::Not(HasSubstr("V_RECI_V")));
  const auto json = to_json(statistics);
  EXPECT_EQ(json["by_mnemonic"].dump(), R"({"V_EXP_V":1})");
  EXPECT_EQ(json["by_class"]["vector"], 1);
  EXPECT_EQ(json["vector_lanes"], 16);
}

}  // namespace
}  // namespace plena
