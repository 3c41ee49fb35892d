// rs-tile-address, rs-mv, rs-bmm-scale, rs-bmm-lanes, rs-accumulators and rs-sum-order, each alone
// (dialect-plena-rs.md 1). Products with one-hot rows make every result a single tile element.
#include "plena/sim/rs_fixture.h"

namespace plena {
namespace {

// Element (r, c) of the tile is 16r + c: exact in bf16.
float place(std::uint64_t r, std::uint64_t c) {
  return static_cast<float>(16 * r + c);
}

std::vector<float> one_hot(std::size_t lane, float value = 1) {
  std::vector<float> row(8, 0);
  row[lane] = value;
  return row;
}

// V has 1 in lane 3 of row 0 and in lane 5 of row 1.
RsBench two_rows(std::string_view isa) {
  RsBench bench(isa);
  bench.tile(place).row(0, one_hot(3)).row(8, one_hot(5)).gp(3, 128);
  return bench;
}

constexpr Instruction kMultiply{.op = Op::M_MM, .rs1 = 1, .rs2 = 2};
constexpr Instruction kMultiplyHeads{.op = Op::M_BMM, .rs1 = 1, .rs2 = 2};
constexpr Instruction kWriteOut{.op = Op::M_MM_WO, .rd = 3};
constexpr Instruction kWriteOutHeads{.op = Op::M_BMM_WO, .rd = 3};

// ------------------------------------------------------------ rs-tile-address

TEST(RsTileAddress, TheColumnOffsetOfMmCountsRows) {
  RsBench bench = two_rows("plena+rs-tile-address");
  bench.gp(1, 4 * 8);  // column 4

  ASSERT_EQ(bench.run({kMultiply, kWriteOut}).reason, StopReason::Halted);

  EXPECT_EQ(bench.lanes(128, 2), (std::vector<float>{place(3, 4), place(3, 5)}));
  EXPECT_EQ(bench.lanes(136, 2), (std::vector<float>{place(5, 4), place(5, 5)}));
}

TEST(RsTileAddress, AnOffsetInColumnsIsMisaligned) {
  RsBench bench = two_rows("plena+rs-tile-address");
  bench.gp(1, 4);

  expect_trap(bench.run({kMultiply}), TrapCause::MisalignedAddress, 0);
}

TEST(RsTileAddress, TheOffsetOfBmmIsTheRowItself) {
  RsBench bench("plena+rs-tile-address");
  bench.tile(place).row(0, one_hot(1)).gp(1, 4);  // rows 4 … 7; head 0 takes lane 1

  bench.gp(3, 128).run({kMultiplyHeads, kWriteOutHeads});

  EXPECT_EQ(bench.lane(128), place(5, 0));
  EXPECT_EQ(bench.lane(128 + 7), place(5, 7));
}

TEST(RsTileAddress, BmmOffsetsOfARowOrMoreAreMisaligned) {
  RsBench bench("plena+rs-tile-address");
  bench.gp(1, 8);

  expect_trap(bench.run({kMultiplyHeads}), TrapCause::MisalignedAddress, 0);
}

TEST(RsTileAddress, RowsOfVAreMlenApartWhateverVlenIs) {
  Settings settings = tiny_settings();
  settings.vlen = 16;
  RsBench bench("plena+rs-tile-address", settings);

  // The second row would start in the middle of a row of Vector SRAM.
  expect_trap(bench.run({kMultiply}), TrapCause::MisalignedAddress, 0);
  EXPECT_EQ(RsBench("plena", settings).run({kMultiply}).reason, StopReason::Halted);
}

// ------------------------------------------------------------ rs-mv

TEST(RsMv, MvTakesTheMatrixFirstAndGivesOneBlockOfColumns) {
  RsBench bench("plena+rs-mv");
  bench.tile(place).row(8, one_hot(3)).row(16, std::vector<float>(8, -1));
  bench.gp(1, 4).gp(2, 8).gp(3, 16 + 2);

  ASSERT_EQ(bench.run({{.op = Op::M_MV, .rs1 = 1, .rs2 = 2}, {.op = Op::M_MV_WO, .rd = 3}}).reason,
            StopReason::Halted);

  EXPECT_EQ(bench.lanes(16),
            (std::vector<float>{-1, -1, place(3, 4), place(3, 5), -1, -1, -1, -1}));
}

TEST(RsMv, TmvTakesTheFirstRowsOfAWholeTile) {
  RsBench bench("plena+rs-mv");
  bench.tile(place).row(8, one_hot(3)).gp(1, 0).gp(2, 8).gp(3, 16);

  ASSERT_EQ(bench.run({{.op = Op::M_TMV, .rs1 = 1, .rs2 = 2}, {.op = Op::M_MV_WO, .rd = 3}}).reason,
            StopReason::Halted);
  EXPECT_EQ(bench.lanes(16, 2), (std::vector<float>{place(0, 3), place(1, 3)}));

  bench.gp(1, 2);
  expect_trap(bench.run({{.op = Op::M_TMV, .rs1 = 1, .rs2 = 2}}), TrapCause::MisalignedAddress, 0);
}

TEST(RsMv, ItsAccumulatorsAreAShapeOfTheirOwn) {
  RsBench bench("plena+rs-mv");

  expect_trap(bench.run({kMultiply, {.op = Op::M_MV}}), TrapCause::ArrayShape, 1);
}

// ------------------------------------------------------------ rs-bmm-scale, rs-bmm-lanes

TEST(RsBmmScale, ProductsAreQuartered) {
  RsBench bench("plena+rs-bmm-scale");
  bench.tile(place).row(0, one_hot(1, 2)).gp(3, 128);

  bench.run({kMultiplyHeads, kMultiplyHeads, kWriteOutHeads});

  // Twice 2 * T[1][2] / 4.
  EXPECT_EQ(bench.lane(128 + 2), place(1, 2));
}

TEST(RsBmmScale, SoIsTheProductOfASingleRow) {
  RsBench bench("plena+bmv+rs-bmm-scale");
  bench.tile(place).row(0, one_hot(1, 2)).gp(3, 128);

  bench.run({{.op = Op::M_BTMV, .rd = 1, .rs1 = 1, .rs2 = 2}, {.op = Op::M_BMV_WO, .rd = 3}});

  EXPECT_EQ(bench.lane(128 + 2), place(2, 1) / 2);
}

TEST(RsBmmLanes, HeadHTakesEveryHthLane) {
  RsBench bench("plena+rs-bmm-lanes");
  bench.tile(place).row(0, one_hot(5)).gp(3, 128);  // lane 5 = 2·2 + 1: k = 2 of head 1

  bench.run({kMultiplyHeads, kWriteOutHeads});

  EXPECT_EQ(bench.lane(128), 0);                     // head 0
  EXPECT_EQ(bench.lane(128 + 64 + 3), place(2, 3));  // head 1
}

TEST(RsBmmLanes, TheTransposedProductKeepsItsLanes) {
  RsBench bench("plena+rs-bmm-lanes");
  bench.tile(place).row(0, one_hot(5)).gp(3, 128);  // k = 1 of head 1

  bench.run({{.op = Op::M_BTMM, .rs1 = 1, .rs2 = 2}, kWriteOutHeads});

  EXPECT_EQ(bench.lane(128 + 64 + 3), place(3, 1));
}

// ------------------------------------------------------------ rs-accumulators

TEST(RsAccumulators, EveryShapeHasItsOwn) {
  RsBench bench("plena+rs-accumulators");
  bench.tile(place).row(0, one_hot(1)).gp(3, 128).gp(4, 8);

  ASSERT_EQ(bench.run({kMultiply, kMultiplyHeads, kWriteOut, {.op = Op::M_BMM_WO, .rd = 4}}).reason,
            StopReason::Halted);

  EXPECT_EQ(bench.lane(8 + 2), place(1, 2));
}

TEST(RsAccumulators, AWriteOutFlushesOnlyItsOwn) {
  RsBench bench("plena+rs-accumulators");
  bench.tile(place).row(0, one_hot(1)).gp(3, 128).gp(4, 136);

  bench.run({kMultiply, {.op = Op::M_MV}, kWriteOut, kWriteOut, {.op = Op::M_MV_WO, .rd = 4}});

  EXPECT_EQ(bench.lane(128), 0);            // the second write-out found zeros
  EXPECT_EQ(bench.lane(136), place(1, 0));  // M_MV's sum was still there
}

TEST(RsAccumulators, BmvCannotRun) {
  RsBench bench("plena+bmv+rs-accumulators");

  expect_trap(bench.run({{.op = Op::M_BMV}}), TrapCause::ArrayShape, 0);
  EXPECT_EQ(bench.run({{.op = Op::M_BTMV}}).reason, StopReason::Halted);
}

// ------------------------------------------------------------ rs-sum-order

// 2^24 swallows a 1 that is added to it alone. In order: 2^24 six times, then 0. In blocks of 2 and
// a tree: (2^24 + 2) + (2 + (1 - 2^24)) = 5.
const std::vector<float> kCancelling = {0x1p24F, 1, 1, 1, 1, 1, 1, -0x1p24F};

TEST(RsSumOrder, DotProductsAreSequential) {
  for (const auto& [isa, sum] : {std::pair("plena", 5.0F), std::pair("plena+rs-sum-order", 0.0F)}) {
    RsBench bench(isa);
    bench.tile([](auto, auto) { return 1.0F; }).row(0, kCancelling).gp(3, 128);

    bench.run({kMultiply, kWriteOut});

    EXPECT_EQ(bench.lane(128), sum) << isa;
  }
}

TEST(RsSumOrder, EachCallsSumIsRoundedBeforeItMeetsTheAccumulator) {
  RsBench bench("plena+rs-sum-order");
  bench.tile([](auto, auto) { return 1.0F; }).gp(3, 128).gp(4, 16).gp(5, 32);
  bench.row(0, {0x1p24F}).row(16, std::vector<float>(8, 1)).row(32, {-0x1p24F});

  // (2^24 + 8) - 2^24; one running sum would have stayed at 2^24 and ended at 0.
  bench.run({kMultiply,
             {.op = Op::M_MM, .rs1 = 1, .rs2 = 4},
             {.op = Op::M_MM, .rs1 = 1, .rs2 = 5},
             kWriteOut});

  EXPECT_EQ(bench.lane(128), 8);
}

TEST(RsSumOrder, ARowIsSummedLaneByLane) {
  for (const auto& [isa, sum] : {std::pair("plena", 5.0F), std::pair("plena+rs-sum-order", 0.0F)}) {
    RsBench bench(isa);
    bench.row(0, kCancelling);

    bench.run({{.op = Op::V_RED_SUM, .rd = 1}});

    EXPECT_EQ(bench.f(1), sum) << isa;
  }
}

}  // namespace
}  // namespace plena
