// Rule 6 of timing.md, counted by hand: transfers in the background, delivered row by row.
//
// The ideal memory takes 8 bursts a nanosecond and delivers each 17 ns after it left (a write is
// done after 1). A row of 64 MXFP8 elements with blocks of 8 is 64 bytes of elements, 2 bursts, and
// 8 bytes of scales, 1 burst. A transfer that issues at t has burst k leave at t + 1 + floor(k / 8)
// and arrive 17 later; 3 cycles after a row's last burst the row is delivered.
//
// Every program begins with these four; the transfer behind them can issue at 6.
#include <gtest/gtest.h>

#include "plena/timing/testing/timed_run.h"

namespace plena {
namespace {

using Cycles = std::vector<Cycle>;

constexpr std::string_view kSetUp = R"(
      S_ADDI_INT      gp1, gp0, 65536   # 0
      C_SET_ADDR_REG  a1, gp0, gp0      # 1, a1 at 4
      S_ADDI_INT      gp2, gp0, 192     # 2: row 3
      C_SET_SCALE_REG gp1               # 3: gp1; SCALE_REG at 6
)";
constexpr std::size_t kFirst = 4;  // index of the first instruction behind them

TimedRun run_after_set_up(std::string_view text, TimedRunOptions options = run_with("pipelined")) {
  return timed_run(std::string(kSetUp) + std::string(text), options);
}

TEST(Rule6, ATileIsDeliveredWhenItsLastRowIs) {
  const TimedRun run = run_after_set_up(R"(
      H_PREFETCH_M gp0, gp0, a1, 0, 0   # 6: 64 rows of 3 bursts; the last one leaves at
                                        # 7 + floor(191 / 8) = 30: 30 + 17 + 3 = 50
      M_MM         0, gp0, gp0          # all rows of the tile: 50; complete at 67
  )");
  EXPECT_EQ(run.issues, (Cycles{0, 1, 2, 3, 6, 50}));
  EXPECT_EQ(run.completes[kFirst], 50U);
  EXPECT_EQ(run.causes[kFirst + 1], Cause::HbmData);
  EXPECT_EQ(run.stalls[kFirst + 1], 43U);
  EXPECT_EQ(run.total, 67U);
}

TEST(Rule6, AnInstructionThatReadsSomeRowsWaitsForThoseOnly) {
  const TimedRun run = run_after_set_up(R"(
      H_PREFETCH_M gp0, gp0, a1, 0, 0   # 6
      M_TMM        0, gp0, gp0          # rows 0 to 3: burst 11 leaves at 7 + 1: 8 + 17 + 3 = 28
  )");
  EXPECT_EQ(run.issues[kFirst + 1], 28U);
  EXPECT_EQ(run.total, 50U);  // of the transfer; the M_TMM is complete at 45
  // The cycles 29 to 49 go to the transfer.
  EXPECT_EQ(run.timing->model().accounts()[kFirst].causes[Cause::HbmData], 21U);
}

TEST(Rule6, TheLastRowsComeLast) {
  const TimedRun run = run_after_set_up(R"(
      H_PREFETCH_M gp0, gp0, a1, 0, 0   # 6
      S_ADDI_INT   gp3, gp0, 3840       # 7: row 60
      M_TMM        0, gp0, gp3          # rows 60 to 63: 50
  )");
  EXPECT_EQ(run.issues[kFirst + 2], 50U);
}

TEST(Rule6, RowsOfVectorSramAreDeliveredOneByOne) {
  const TimedRun run = run_after_set_up(R"(
      H_PREFETCH_V gp0, gp0, a1, 0, 0   # 6: rows 0 to 3, 12 bursts
      V_RED_SUM    f1, gp0              # row 0: burst 2 leaves at 7: 7 + 17 + 3 = 27
      V_RED_SUM    f2, gp2              # row 3: burst 11 leaves at 8: 28
  )");
  EXPECT_EQ(run.issues[kFirst + 1], 27U);
  EXPECT_EQ(run.issues[kFirst + 2], 28U);
}

TEST(Rule6, AWriteWaitsForARowThatIsStillToCome) {
  const TimedRun run = run_after_set_up(R"(
      H_PREFETCH_V gp0, gp0, a1, 0, 0   # 6: row 3 at 28
      S_ADDI_INT   gp3, gp0, 256        # 7: row 4
      V_ADD_VF     gp2, gp3, f0, 0      # 28
  )");
  EXPECT_EQ(run.issues[kFirst + 2], 28U);
  EXPECT_EQ(run.causes[kFirst + 2], Cause::HbmData);
}

TEST(Rule6, APrefetchWaitsUntilItsTileHasBeenRead) {
  const TimedRun run = run_after_set_up(R"(
      M_MV         0, gp0, gp0          # 4: reads the tile until 4 + 16
      H_PREFETCH_M gp0, gp0, a1, 0, 0   # 20
  )");
  EXPECT_EQ(run.issues[kFirst + 1], 20U);
  EXPECT_EQ(run.causes[kFirst + 1], Cause::SramRange);
}

TEST(Rule6, APrefetchIntoAnotherTileDoesNot) {
  const TimedRun run = run_after_set_up(R"(
      S_ADDI_INT   gp3, gp0, 4096       # 4: tile 1
      M_MV         0, gp0, gp0          # 5: tile 0
      H_PREFETCH_M gp3, gp0, a1, 0, 0   # 7: gp3
  )");
  EXPECT_EQ(run.issues[kFirst + 2], 7U);
}

TEST(Rule6, TransfersRunInTheBackgroundAndShareThePeak) {
  const TimedRun run = run_after_set_up(R"(
      H_PREFETCH_M gp0, gp0, a1, 0, 0   # 6: 192 bursts leave from 7 to 30
      H_PREFETCH_V gp0, gp0, a1, 0, 0   # 7: 12 bursts leave at 31 and 32: 32 + 17 + 3 = 52
      S_ADDI_INT   gp3, gp0, 1          # 8
  )");
  EXPECT_EQ(run.issues[kFirst + 1], 7U);
  EXPECT_EQ(run.issues[kFirst + 2], 8U);
  EXPECT_EQ(run.completes[kFirst + 1], 52U);
  EXPECT_EQ(run.total, 52U);
}

TEST(Rule6, AStoreReadsARowACycle) {
  const TimedRun run = run_after_set_up(R"(
      H_STORE_V gp0, gp0, a1, 0, 0   # 6: row 3 is read at 6 + 1 + 3; 12 bursts leave at 7 and 8,
                                     # the last one is written at 8 + 1: 9 + 3 = 12
      V_ADD_VF  gp2, gp0, f0, 0      # 10, complete at 21
  )");
  EXPECT_EQ(run.issues[kFirst + 1], 10U);
  EXPECT_EQ(run.completes[kFirst], 12U);
}

TEST(Rule6, AStoreWaitsForItsRows) {
  const TimedRun run = run_after_set_up(R"(
      V_ADD_VF  gp2, gp0, f0, 0      # gp2 at 5: 5, row 3 at 16
      H_STORE_V gp0, gp0, a1, 0, 0   # 16
  )");
  EXPECT_EQ(run.issues[kFirst + 1], 16U);
  EXPECT_EQ(run.causes[kFirst + 1], Cause::SramRange);
}

TEST(Rule6, ALoadWaitsUntilAnOverlappingStoreIsAccepted) {
  TimedRunOptions slow = run_with("pipelined");
  slow.hbm.tick_fs = 16'000'000;  // ticks at cycles 0, 16, 32, ...
  const TimedRun run = run_after_set_up(R"(
      S_ADDI_INT   gp3, gp0, 256        # 4: row 4
      H_STORE_V    gp0, gp0, a1, 0, 0   # 6: accepted at cycle 16
      H_PREFETCH_V gp3, gp0, a1, 0, 0   # 16: the same bytes into other rows
  )",
                                        slow);
  EXPECT_EQ(run.issues[kFirst + 2], 16U);
  EXPECT_EQ(run.causes[kFirst + 2], Cause::HbmData);
}

TEST(Rule6, ALoadOfOtherBytesDoesNot) {
  TimedRunOptions slow = run_with("pipelined");
  slow.hbm.tick_fs = 16'000'000;
  const TimedRun run = run_after_set_up(R"(
      S_ADDI_INT   gp3, gp0, 256        # 4: row 4, and behind the 256 bytes that are stored
      H_STORE_V    gp0, gp0, a1, 0, 0   # 6: accepted at cycle 16
      H_PREFETCH_V gp3, gp3, a1, 0, 0   # 7: gp3
  )",
                                        slow);
  EXPECT_EQ(run.issues[kFirst + 2], 7U);
}

TEST(Rule6, AFullQueueHoldsUpItsUnit) {
  TimedRunOptions two_places = run_with("pipelined");
  two_places.profile.queue_depth = 2;
  const TimedRun run = run_after_set_up(R"(
      S_ADDI_INT   gp3, gp0, 256        # 4: row 4
      S_ADDI_INT   gp4, gp0, 512        # 5: row 8
      H_PREFETCH_V gp0, gp0, a1, 0, 0   # 6: 12 bursts leave at 7 and 8: 8 + 17 + 3 = 28
      H_PREFETCH_V gp3, gp0, a1, 0, 0   # 7
      H_PREFETCH_V gp4, gp0, a1, 0, 0   # 28
  )",
                                        two_places);
  EXPECT_EQ(run.issues[kFirst + 3], 7U);
  EXPECT_EQ(run.issues[kFirst + 4], 28U);
  EXPECT_EQ(run.stalls[kFirst + 4], 20U);
  EXPECT_EQ(run.causes[kFirst + 4], Cause::FullQueue);
}

std::uint64_t bursts_read(const TimedRun& run) {
  return run.timing->hbm().traffic().read;
}

TEST(Rule6, RowsAreWidenedToBursts) {
  // Elements 8 to 71 lie in 3 bursts, and so do those of the other rows, 64 further each. Scales
  // are bytes 1 to 8, 9 to 16, 17 to 24 of their region, 1 burst each, and 25 to 32, which is 2.
  const TimedRun run = run_after_set_up(R"(
      S_ADDI_INT   gp3, gp0, 8
      H_PREFETCH_V gp0, gp3, a1, 0, 0
  )");
  EXPECT_EQ(bursts_read(run), 4U * 3U + 3U + 2U);
}

TEST(Rule6, ABurstJustAskedForIsNotRepeated) {
  TimedRunOptions small = run_with("pipelined");
  small.settings.mlen = small.settings.vlen = small.settings.hlen = 16;
  small.settings.hbm_m_prefetch_amount = 16;
  small.settings.hbm_v_act_type = DataType::plain(kE4M3);
  const std::string_view prefetch = "H_PREFETCH_V gp0, gp0, a1, 0, 0";
  // 4 rows of 16 bytes one after another: 2 bursts.
  EXPECT_EQ(bursts_read(run_after_set_up(prefetch, small)), 2U);
  // With scales between them, elements and scales alternate: 4 times 1 + 1.
  small.settings.hbm_v_act_type = DataType::mx(kE4M3, 8);
  EXPECT_EQ(bursts_read(run_after_set_up(prefetch, small)), 8U);
}

TEST(Rule6, TheClocksOfMachineAndMemoryAreDifferentClocks) {
  TimedRunOptions fast = run_with("pipelined");
  fast.profile.clock_mhz = 500;  // 2 ns a cycle
  const TimedRun run = run_after_set_up(R"(
      H_PREFETCH_V gp0, gp0, a1, 0, 0   # 6: offered at cycle 7 = 14 ns; burst 11 leaves at 15 ns
                                        # and arrives at 32 ns = cycle 16; 16 + 3 = 19
      V_RED_SUM    f1, gp2              # row 3
  )",
                                        fast);
  EXPECT_EQ(run.issues[kFirst + 1], 19U);
}

TEST(Rule6, SeveralTilesOfOnePrefetchFollowEachOther) {
  TimedRunOptions two_tiles = run_with("pipelined");
  two_tiles.settings.hbm_m_prefetch_amount = 128;
  const TimedRun run = run_after_set_up(R"(
      H_PREFETCH_M gp0, gp0, a1, 0, 0   # 6: tile 0 is rows 0 to 63, tile 1 rows 64 to 127
      S_ADDI_INT   gp3, gp0, 4096
      M_MM         0, gp0, gp0          # 50, as for one tile
      M_MM         0, gp3, gp0          # burst 383 leaves at 7 + 47: 54 + 17 + 3 = 74
  )",
                                        two_tiles);
  EXPECT_EQ(run.issues[kFirst + 2], 50U);
  EXPECT_EQ(run.issues[kFirst + 3], 74U);
}

}  // namespace
}  // namespace plena
