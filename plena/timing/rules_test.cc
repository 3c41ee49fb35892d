// Small programs whose cycles were counted by hand from timing.md, a few for each of the rules of
// counting 1 to 5 and 7. Rule 6, transfers, is in transfer_rules_test.cc.
//
// The machine: BLEN 4, MLEN 64, HLEN 16, VLEN 64, H 4. Latency / interval: integer 3 / 1,
// S_LD_INT 4 / 1, scalar FP 8 / 1, S_LD_FP 7 / 1, S_MAP_V_FP 68 / 64, V_ADD 11 / 1, V_EXP 12 / 2,
// V_RED_SUM 16 / 1, M_MM 17 / 4, M_MM_WO 10 / 1, M_MV 29 / 16, M_MV_WO 70 / 1,
// M_BMM 1041 / 1024, M_BMM_WO 262 / 256, C_* 3 / 1.
#include <gtest/gtest.h>

#include "plena/timing/testing/timed_run.h"

namespace plena {
namespace {

using Cycles = std::vector<Cycle>;

TimedRun pipelined(std::string_view text) {
  return timed_run(text, run_with("pipelined"));
}

// ------------------------------------------------------------ rule 1: issue and completion

TEST(Rule1, NothingTakesNoTime) {
  EXPECT_EQ(pipelined("").total, 0U);
}

TEST(Rule1, OneIssuesACycle) {
  const TimedRun run = pipelined(R"(
      S_ADDI_INT gp1, gp0, 1   # 0
      S_ADDI_INT gp2, gp0, 2   # 1
      S_ADDI_INT gp3, gp0, 3   # 2, complete at 2 + 3
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 1, 2}));
  EXPECT_EQ(run.total, 5U);
}

TEST(Rule1, AResultIsUsableALatencyAfterItsIssue) {
  const TimedRun run = pipelined(R"(
      S_ADDI_INT gp1, gp0, 64       # 0
      S_ADD_INT  gp2, gp1, gp1      # gp1 at 0 + 3
      V_ADD_VF   gp2, gp1, f0, 0    # gp2 at 3 + 3; complete at 6 + 11
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 3, 6}));
  EXPECT_EQ(run.total, 17U);
}

TEST(Rule1, TheTotalIsTheLatestCompletionNotTheLastOne) {
  const TimedRun run = pipelined(R"(
      V_RED_SUM  f1, gp0       # 0, complete at 16
      S_ADDI_INT gp1, gp0, 1   # 1, complete at 4
  )");
  EXPECT_EQ(run.total, 16U);
}

// ------------------------------------------------------------ rule 2: what an issue waits for

TEST(Rule2, UnitsWorkSideBySide) {
  const TimedRun run = pipelined(R"(
      V_RED_SUM  f1, gp0       # vector, complete at 16
      S_ADD_FP   f2, f0, f0    # scalar fp
      S_ADDI_INT gp1, gp0, 1   # scalar integer
      M_MV       0, gp0, gp0   # matrix, complete at 3 + 29
      C_BREAK
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 1, 2, 3}));  // the breakpoint stops the run
  EXPECT_EQ(run.total, 32U);
}

TEST(Rule2, AUnitTakesTheNextOneAfterItsInterval) {
  const TimedRun run = pipelined(R"(
      S_ADDI_INT gp1, gp0, 64    # 0
      S_ADDI_INT gp2, gp0, 128   # 1
      V_EXP_V    gp1, gp0, 0     # 3: gp1
      V_EXP_V    gp2, gp0, 0     # 3 + 2: the unit; complete at 5 + 12
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 1, 3, 5}));
  EXPECT_EQ(run.causes[3], Cause::BusyUnit);
  EXPECT_EQ(run.total, 17U);
}

TEST(Rule2, AReadWaitsForTheRowItReads) {
  const TimedRun run = pipelined(R"(
      S_ADDI_INT gp1, gp0, 64       # 0
      V_ADD_VF   gp1, gp0, f0, 0    # 3, row 1 at 14
      V_ADD_VF   gp0, gp1, f0, 0    # 14, complete at 25
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 3, 14}));
  EXPECT_EQ(run.stalls[2], 10U);
  EXPECT_EQ(run.causes[2], Cause::SramRange);
  EXPECT_EQ(run.total, 25U);
}

TEST(Rule2, AWriteWaitsForTheWriteBeforeIt) {
  const TimedRun run = pipelined(R"(
      S_ADDI_INT gp1, gp0, 64       # 0
      V_EXP_V    gp0, gp1, 0        # 3, row 0 at 15
      V_ADD_VF   gp0, gp1, f0, 0    # 15, complete at 26
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 3, 15}));
  EXPECT_EQ(run.total, 26U);
}

TEST(Rule2, AWriteToAnotherRowDoesNot) {
  const TimedRun run = pipelined(R"(
      S_ADDI_INT gp1, gp0, 64       # 0
      S_ADDI_INT gp2, gp0, 128      # 1
      V_EXP_V    gp0, gp1, 0        # 3
      V_ADD_VF   gp2, gp1, f0, 0    # 5: the unit's interval of 2; complete at 16
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 1, 3, 5}));
  EXPECT_EQ(run.total, 16U);
}

// ------------------------------------------------------------ rule 3: reads, and parts of rows

TEST(Rule3, ARangeIsBeingReadUntilTheIntervalIsOver) {
  const TimedRun run = pipelined(R"(
      S_ADDI_INT gp1, gp0, 64       # 0
      S_ADDI_INT gp2, gp0, 256      # 1
      M_MM       0, gp0, gp0        # 2: reads rows 0 to 3 until 2 + 4
      V_ADD_VF   gp1, gp2, f0, 0    # gp2 at 4, row 1 at 6; complete at 17
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 1, 2, 6}));
  EXPECT_EQ(run.causes[3], Cause::SramRange);
  EXPECT_EQ(run.total, 19U);  // of the M_MM
}

TEST(Rule3, RangesAreElementsNotRows) {
  const TimedRun run = pipelined(R"(
      M_MM    0, gp0, gp0      # 0, complete at 17
      M_MM_WO gp0, 0, 256      # 4: lanes 0 to 3 of rows 4 to 7; max(4, 17) + 10 = 27
      M_MM    0, gp0, gp0      # 5, complete at 22
      M_MM_WO gp0, 0, 260      # 9: lanes 4 to 7 of the same rows; max(9, 22) + 10 = 32
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 4, 5, 9}));
  EXPECT_EQ(run.total, 32U);
}

TEST(Rule3, TheSameLanesWait) {
  const TimedRun run = pipelined(R"(
      M_MM    0, gp0, gp0      # 0
      M_MM_WO gp0, 0, 256      # 4, complete at 27
      M_MM    0, gp0, gp0      # 5
      M_MM_WO gp0, 0, 256      # 27: the write before; 27 + 10
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 4, 5, 27}));
  EXPECT_EQ(run.total, 37U);
}

TEST(Rule3, AReadOfARowWaitsForAnyOfItsParts) {
  const TimedRun run = pipelined(R"(
      S_ADDI_INT gp1, gp0, 320      # 0: row 5
      M_MM       0, gp0, gp0        # 1, complete at 18
      M_MM_WO    gp0, 0, 256        # 5: rows 4 to 7 at max(5, 18) + 10 = 28
      V_ADD_VF   gp1, gp1, f0, 0    # 28, complete at 39
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 1, 5, 28}));
  EXPECT_EQ(run.total, 39U);
}

TEST(Rule3, ALaterWriteToARegisterCompletesAfterTheEarlierOne) {
  const TimedRun run = pipelined(R"(
      V_RED_SUM f1, gp0        # 0, f1 at 16
      S_ADD_FP  f1, f0, f0     # 1: alone at 9, so at 17
      S_ADD_FP  f2, f1, f1     # 17, complete at 25
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 1, 17}));
  EXPECT_EQ(run.completes, (Cycles{16, 17, 25}));
}

TEST(Rule3, SpecialRegistersAreTrackedLikeRanges) {
  const TimedRun run = pipelined(R"(
      S_ADDI_INT       gp1, gp0, 3    # 0
      C_SET_V_MASK_REG gp1            # 3, V_MASK at 6
      V_EXP_V          gp0, gp0, 1    # 6: reads V_MASK until 6 + 2; complete at 18
      C_SET_V_MASK_REG gp0            # 8, complete at 11
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 3, 6, 8}));
  EXPECT_EQ(run.causes[3], Cause::Register);
  EXPECT_EQ(run.total, 18U);
}

TEST(Rule3, EntriesOfIntMemAreRanges) {
  const TimedRun run = pipelined(R"(
      S_ST_INT gp0, gp0, 5     # 0, entry 5 at 4
      S_LD_INT gp1, gp0, 6     # 1: another entry
      S_LD_INT gp2, gp0, 5     # 4, complete at 8
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 1, 4}));
  EXPECT_EQ(run.causes[2], Cause::SramRange);
  EXPECT_EQ(run.total, 8U);
}

TEST(Rule3, ALoadThatOverwritesItsAddressReadTheOldOne) {
  const TimedRun run = pipelined(R"(
      S_ADDI_INT gp1, gp0, 5     # 0
      S_ST_INT   gp1, gp0, 5     # 3: INT_MEM[5] = 5, at 7
      S_LD_INT   gp1, gp1, 0     # 7: entry 5; gp1 is 5 again
      S_LD_INT   gp1, gp1, 900   # gp1 at 11; entry 905; complete at 15
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 3, 7, 11}));
  EXPECT_EQ(run.total, 15U);
}

TEST(Rule3, FpMemIsBeingReadByAMapUntilItsIntervalIsOver) {
  TimedRunOptions options = run_with("pipelined");
  options.dialect = *Dialect::parse("plena+moe");
  const TimedRun run = timed_run(R"(
      S_ADDI_INT gp1, gp0, 64            # 0
      S_MAP_V_FP gp1, gp0, 0             # 3: reads FP_MEM[0 .. 63] until 3 + 64; complete at 71
      V_TOPK     gp0, gp0, gp0, 0        # writes FP_MEM[0 .. 3]: 67; 10 + 32 lanes: 109
  )",
                                 options);
  EXPECT_EQ(run.issues, (Cycles{0, 3, 67}));
  EXPECT_EQ(run.causes[2], Cause::SramRange);
  EXPECT_EQ(run.total, 109U);
}

TEST(Rule3, Gp0AndF0AreAlwaysReady) {
  const TimedRun run = pipelined(R"(
      S_ADDI_INT gp0, gp0, 5     # 0
      S_ADD_INT  gp1, gp0, gp0   # 1
      S_ADD_FP   f0, f1, f1      # 2
      S_ADD_FP   f2, f0, f0      # 3, complete at 11
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 1, 2, 3}));
  EXPECT_EQ(run.total, 11U);
}

// ------------------------------------------------------------ rule 4: the array

TEST(Rule4, ComputeAndWriteOutTakeTurns) {
  const TimedRun run = pipelined(R"(
      M_MM    0, gp0, gp0      # 0, complete at 17
      M_MM_WO gp0, 0, 256      # 4: the unit; max(4, 17) + 10 = 27
      M_MM    0, gp0, gp0      # 5: the write-out's interval is over; complete at 22
      M_MM_WO gp0, 0, 512      # 9; max(9, 22) + 10 = 32
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 4, 5, 9}));
  EXPECT_EQ(run.total, 32U);
}

TEST(Rule4, ComputesIntoOneAccumulatorDoNotWaitForEachOther) {
  const TimedRun run = pipelined(R"(
      M_MM    0, gp0, gp0      # 0
      M_MM    0, gp0, gp0      # 4
      M_MM    0, gp0, gp0      # 8, complete at 25
      M_MM_WO gp0, 0, 256      # 12; max(12, 25) + 10
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 4, 8, 12}));
  EXPECT_EQ(run.causes[1], Cause::BusyUnit);
  EXPECT_EQ(run.total, 35U);
}

TEST(Rule4, AMatrixVectorProductKeepsTheArrayForMlenOverBlen) {
  const TimedRun run = pipelined(R"(
      M_MV    0, gp0, gp0      # 0, complete at 29
      M_MV_WO gp0, 64          # 16; max(16, 29) + 70 = 99
      M_MV    0, gp0, gp0      # 17
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 16, 17}));
  EXPECT_EQ(run.total, 99U);
}

TEST(Rule4, ABatchedProductKeepsItForItsThousandCycles) {
  const TimedRun run = pipelined(R"(
      M_BMM    0, gp0, gp0     # 0, complete at 1041
      M_BMM_WO gp0, 4096       # 1024; max(1024, 1041) + 262 = 1303
      M_MM     0, gp0, gp0     # 1024 + 256, complete at 1297
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 1024, 1280}));
  EXPECT_EQ(run.total, 1303U);
}

TEST(Rule4, TheWriteOutOfAClearArrayWaitsForNothing) {
  EXPECT_EQ(pipelined("M_MM_WO gp0, 0, 0").total, 10U);
}

TEST(Rule4, TheRtlsCyclesAreTheArrayPartOfAnMmm) {
  const std::pair<std::uint32_t, std::uint32_t> measured[] = {{4, 8}, {8, 12}, {16, 20}};
  const auto profile = load_profile("pipelined");
  for (const auto& [blen, cycles] : measured) {
    Settings settings;
    settings.blen = blen;
    EXPECT_EQ(array_cycles(settings), cycles);
    // The rest of its latency fetches operands: BLEN + 5.
    EXPECT_EQ(instruction_cost(*profile, settings, {.op = Op::M_MM})->latency,
              blen + 5 + array_cycles(settings));
  }
}

// ------------------------------------------------------------ rule 5: loops

TEST(Rule5, ALoopCostsItsInstructionsAndNoBubble) {
  const TimedRun run = pipelined(R"(
      C_LOOP_START gp1, 3        # 0
      S_ADDI_INT   gp2, gp0, 1   # 1 3 5
      C_LOOP_END   gp1, 0        # 2 4 6, complete at 9
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(run.total, 9U);
}

TEST(Rule5, AnInductionVariableIsAnOrdinaryRegister) {
  const TimedRun run = pipelined(R"(
      C_LOOP_START gp1, 3        # 0
      S_ADDI_INT   gp2, gp2, 1   # 1, then 1 + 3, then 4 + 3
      C_LOOP_END   gp1, 0        # 2 5 8, complete at 11
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 1, 2, 4, 5, 7, 8}));
  EXPECT_EQ(run.total, 11U);
}

TEST(Rule5, OtherReadersOfACounterWaitForIt) {
  const TimedRun run = pipelined(R"(
      C_LOOP_START gp1, 1         # 0, gp1 at 3
      S_ADD_INT    gp2, gp1, gp1  # 3
      C_LOOP_END   gp1, 0         # 4, gp1 at 7
      S_ADD_INT    gp3, gp1, gp1  # 7, complete at 10
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 3, 4, 7}));
  EXPECT_EQ(run.total, 10U);
}

TEST(Rule5, ACounterThatTheBodyWroteIsNotForwarded) {
  const TimedRun run = pipelined(R"(
      C_LOOP_START gp1, 1         # 0, gp1 at 3
      S_ADDI_INT   gp1, gp0, 1    # 1, gp1 at 4
      C_LOOP_END   gp1, 0         # 4, complete at 7
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 1, 4}));
  EXPECT_EQ(run.causes[2], Cause::Register);
  EXPECT_EQ(run.total, 7U);
}

// ------------------------------------------------------------ rule 7: causes

CauseCycles account(const TimedRun& run, std::size_t pc) {
  return run.timing->model().accounts()[pc].causes;
}

TEST(Rule7, AStallIsChargedToTheConditionThatHeldLast) {
  const TimedRun run = pipelined(R"(
      S_ADDI_INT gp1, gp0, 64       # 0
      V_ADD_VF   gp1, gp0, f0, 0    # 3: gp1, 2 cycles
      V_RED_SUM  f1, gp1            # 14: row 1, 10 cycles
      S_ADD_FP   f2, f1, f1         # 30: f1, 15 cycles; complete at 38
  )");
  EXPECT_EQ(run.total, 38U);
  EXPECT_EQ(account(run, 1)[Cause::Register], 2U);
  EXPECT_EQ(account(run, 2)[Cause::SramRange], 10U);
  EXPECT_EQ(account(run, 3)[Cause::Register], 15U);
  EXPECT_EQ(account(run, 3)[Cause::Completion], 7U);  // 31 to 37
  EXPECT_EQ(account(run, 3)[Cause::Issue], 1U);
  EXPECT_EQ(1U + 3U + 11U + 23U, run.total);
}

TEST(Rule7, OfEqualConditionsTheFirstInTheListIsCharged) {
  const TimedRun run = pipelined(R"(
      S_ADDI_INT gp1, gp0, 64       # 0
      S_ADDI_INT gp2, gp0, 128      # 1
      V_EXP_V    gp1, gp0, 0        # 3, the unit until 5
      S_ADDI_INT gp2, gp0, 128      # 4: hides in the interval
      V_EXP_V    gp2, gp0, 0        # gp2 at 7 beats the unit at 5
  )");
  EXPECT_EQ(run.issues.back(), 7U);
  EXPECT_EQ(run.causes.back(), Cause::Register);
}

TEST(Rule7, CyclesAfterTheLastIssueGoToWhatCompletesLast) {
  const TimedRun run = pipelined(R"(
      V_RED_SUM  f1, gp0       # 0, complete at 16
      S_ADDI_INT gp1, gp0, 1   # 1, complete at 4
  )");
  EXPECT_EQ(account(run, 0)[Cause::Completion], 14U);  // 2 to 15
  EXPECT_EQ(account(run, 1).total(), 1U);
}

TEST(Rule7, AUnitIsBusyWaitsOrHasNothingToDo) {
  const TimedRun run = pipelined(R"(
      S_ADDI_INT gp1, gp0, 64       # 0
      V_ADD_VF   gp1, gp0, f0, 0    # 3: waits 2 for gp1; complete at 14
      V_EXP_V    gp0, gp1, 0        # 14: waits 10 for row 1; complete at 26
  )");
  const auto units = *run.timing->model().unit_accounts();
  const UnitAccount& vector = units[static_cast<std::size_t>(Unit::Vector)];
  EXPECT_EQ(vector.busy, 1U + 2U);  // intervals
  EXPECT_EQ(vector.waiting[Cause::Register], 2U);
  EXPECT_EQ(vector.waiting[Cause::SramRange], 10U);
  EXPECT_EQ(vector.nothing_to_do, 26U - 3U - 12U);
  const UnitAccount& matrix = units[static_cast<std::size_t>(Unit::Matrix)];
  EXPECT_EQ(matrix.nothing_to_do, 26U);
}

}  // namespace
}  // namespace plena
