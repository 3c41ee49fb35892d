// Each of the emulator's faults is reported where a program meets it, and not where it does not.
#include "plena/check/dialect_warnings.h"

#include <gmock/gmock.h>

#include "plena/sim/rs_fixture.h"

namespace plena {

bool operator==(const DialectWarning& a, const DialectWarning& b) {
  return a.pc == b.pc && a.fault == b.fault && a.count == b.count;
}
void PrintTo(const DialectWarning& w, std::ostream* out) {
  *out << w.count << " times " << rs_fault_name(w.fault) << " at " << w.pc;
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Runs words on a plena-rs machine whose SCALE_REG is 1024 and whose memory is all zero.
std::vector<DialectWarning> warn_words(const std::vector<std::uint32_t>& words,
                                       const Settings& settings = tiny_settings(),
                                       std::uint32_t scale = 1024) {
  RsBench bench("plena-rs", settings);
  bench.machine.scale = scale;
  bench.row(0, {1.97F, 1});
  const auto program = prepare(words, settings, bench.machine.dialect);
  EXPECT_TRUE(program.has_value());
  DialectWarnings warnings(words);
  run(bench.machine, **program, {.observer = &warnings});
  return warnings.warnings();
}

std::vector<DialectWarning> warn(const std::vector<Instruction>& program,
                                 const Settings& settings = tiny_settings(),
                                 std::uint32_t scale = 1024) {
  std::vector<std::uint32_t> words;
  for (const Instruction& instruction : program) words.push_back(encode(instruction));
  return warn_words(words, settings, scale);
}

constexpr Instruction kLoad{.op = Op::H_PREFETCH_V, .rd = 1, .rs1 = 2};

TEST(DialectWarnings, SaysNothingOfAnOrdinaryProgram) {
  EXPECT_THAT(warn({kLoad, {.op = Op::V_EXP_V}, {.op = Op::M_BMM_WO}}), IsEmpty());
}

TEST(DialectWarnings, CountsExecutionsByInstruction) {
  EXPECT_THAT(warn({addi(2, 0, 4), loop_start(3, 5), kLoad, loop_end(3)}),
              ElementsAre(DialectWarning{2, RsFault::ScaleFloors, 5}));
}

TEST(DialectWarnings, RowsThatOverlap) {
  Settings settings = tiny_settings();
  settings.hbm_v_act_type = DataType::plain(kBf16);
  EXPECT_THAT(warn({kLoad}, settings), ElementsAre(DialectWarning{0, RsFault::RowsOverlap, 1}));
}

TEST(DialectWarnings, ScalesAcrossA64ByteBoundary) {
  Settings settings = tiny_settings();
  settings.hbm_v_act_type = DataType::mx(kE4M3, 4);
  EXPECT_THAT(warn({kLoad}, settings, 1024 + 63),
              ElementsAre(DialectWarning{0, RsFault::ScaleCut, 1}));
}

TEST(DialectWarnings, RowsOutsideTheMemories) {
  EXPECT_THAT(warn({addi(2, 0, 4088), kLoad}), ElementsAre(DialectWarning{1, RsFault::PastHbm, 1}));
  EXPECT_THAT(warn({addi(1, 0, 248), kLoad}),
              ElementsAre(DialectWarning{1, RsFault::PastVectorSram, 1}));
}

TEST(DialectWarnings, StoresThatLoseACarryOrTheirCodes) {
  constexpr Instruction kStore{.op = Op::H_STORE_V};
  Settings narrow = tiny_settings();
  narrow.hbm_v_act_type = DataType::mx(kE2M1, 8);

  EXPECT_THAT(warn({kStore}), ElementsAre(DialectWarning{0, RsFault::LostCarry, 1}));
  EXPECT_THAT(warn({addi(1, 0, 64), {.op = Op::H_STORE_V, .rd = 1}}), IsEmpty());
  EXPECT_THAT(warn({addi(1, 0, 64), {.op = Op::H_STORE_V, .rd = 1}}, narrow),
              ElementsAre(DialectWarning{1, RsFault::NarrowStore, 1}));
}

TEST(DialectWarnings, WhatThePublicAssemblerPutsElsewhere) {
  const std::uint32_t masked_exp = encode({.op = Op::V_EXP_V, .rd = 1}) | 1U << 14;
  const std::uint32_t write_out = encode({.op = Op::M_MV_WO, .rd = 1, .imm = 16});

  EXPECT_THAT(warn_words({masked_exp}), ElementsAre(DialectWarning{0, RsFault::LostMask, 1}));
  EXPECT_THAT(warn_words({write_out}),
              ElementsAre(DialectWarning{0, RsFault::WriteOutImmediate, 1}));
}

TEST(DialectWarnings, MaskedSumsAndBreaks) {
  EXPECT_THAT(warn({{.op = Op::V_RED_SUM, .rd = 1, .select = 1}}),
              ElementsAre(DialectWarning{0, RsFault::MaskedSum, 1}));
  EXPECT_THAT(warn({loop_start(1, 2), {.op = Op::C_BREAK}}),
              ElementsAre(DialectWarning{1, RsFault::BreakGoesOn, 1}));
}

}  // namespace
}  // namespace plena
