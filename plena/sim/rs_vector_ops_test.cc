// rs-mask-merge, rs-sub-order, rs-exp-clamp, rs-max and rs-topk, each alone (dialect-plena-rs.md 2
// and 3). HLEN is 4: mask bit 0 selects lanes 0 … 3, bit 1 lanes 4 … 7.
#include <limits>

#include "plena/sim/rs_fixture.h"

namespace plena {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// exp at the two ends of the clamp, as measured on the emulator.
constexpr std::uint16_t kExpOf88 = 0x7EF9;
constexpr std::uint16_t kExpOfMinus88 = 0x0042;

std::vector<float> halves(float first, float second) {
  return {first, first, first, first, second, second, second, second};
}

// ------------------------------------------------------------ rs-mask-merge

TEST(RsMaskMerge, UnselectedLanesKeepTheFirstSource) {
  RsBench bench("plena+rs-mask-merge");
  bench.row(0, halves(5, 5)).row(8, halves(2, 2)).row(16, halves(9, 9));
  bench.gp(1, 0).gp(2, 8).gp(3, 16).mask(0b10);

  bench.run({{.op = Op::V_MUL_VV, .rd = 3, .rs1 = 1, .rs2 = 2, .select = 1}});

  EXPECT_EQ(bench.lanes(16), halves(5, 10));
}

TEST(RsMaskMerge, WithoutItTheyBecomeZero) {
  RsBench bench("plena");
  bench.row(0, halves(5, 5)).gp(3, 16).mask(0b10).f(1, 1);

  bench.run({{.op = Op::V_ADD_VF, .rd = 3, .rs2 = 1, .select = 1}});

  EXPECT_EQ(bench.lanes(16), halves(0, 6));
}

TEST(RsMaskMerge, EveryLaneWiseInstructionMerges) {
  const auto merged = [](Op op) {
    RsBench bench("plena+minmax+rs-mask-merge");
    bench.row(0, halves(4, 4)).row(8, halves(8, 8)).gp(2, 8).gp(3, 16).f(2, 8).mask(0b01);
    const auto rs2 = static_cast<std::uint8_t>(op == Op::V_RECI_V ? 0 : 2);
    bench.run({{.op = op, .rd = 3, .rs2 = rs2, .select = 7}});
    return bench.lanes(16);
  };

  EXPECT_EQ(merged(Op::V_ADD_VV), halves(12, 4));
  EXPECT_EQ(merged(Op::V_SUB_VV), halves(4, 4));  // rs2 - rs1: rs-sub-order is off
  EXPECT_EQ(merged(Op::V_MUL_VF), halves(32, 4));
  EXPECT_EQ(merged(Op::V_SUB_VF), halves(-4, 4));
  EXPECT_EQ(merged(Op::V_MAX_VF), halves(8, 4));
  EXPECT_EQ(merged(Op::V_RECI_V), halves(0.25, 4));
}

TEST(RsMaskMerge, ExpKeepsItsSourceClampedOnlyUnderRsExpClamp) {
  const auto kept = [](std::string_view isa) {
    RsBench bench(isa);
    bench.row(0, halves(0, 100)).gp(3, 16).mask(0b01);
    bench.run({{.op = Op::V_EXP_V, .rd = 3, .select = 1}});
    return bench.lanes(16);
  };

  EXPECT_EQ(kept("plena+rs-mask-merge"), halves(1, 100));
  EXPECT_EQ(kept("plena+rs-mask-merge+rs-exp-clamp"), halves(1, 88));
}

TEST(RsMaskMerge, ASelectedGroupCountsHlenTimes) {
  // Group 0: 1 + 2 + 3 + 4 in each of 4 lanes; group 1 as it is: 4 * 10 + 4.
  RsBench bench("plena+rs-decode+rs-mask-merge");
  bench.row(0, {1, 2, 3, 4, 1, 1, 1, 1}).f(1, 0.5F).mask(0b01);
  // rmask of V_RED_SUM exists under rs-decode only; its words carry it where the others do.
  bench.run({{.op = Op::V_RED_SUM, .rd = 1, .select = 1}});

  EXPECT_EQ(bench.f(1), 44.5);
  EXPECT_EQ(bench.lanes(0), (std::vector<float>{1, 2, 3, 4, 1, 1, 1, 1}));
}

TEST(RsMaskMerge, TheMaskOfAMaximumHasNoEffect) {
  RsBench merged("plena+rs-mask-merge");
  RsBench masked("plena");
  for (RsBench* bench : {&merged, &masked}) {
    bench->row(0, halves(2, 7)).f(1, 1).mask(0b01);
    bench->run({{.op = Op::V_RED_MAX, .rd = 1, .select = 1}});
  }

  EXPECT_EQ(merged.f(1), 7);
  EXPECT_EQ(masked.f(1), 2);
}

// ------------------------------------------------------------ rs-sub-order

TEST(RsSubOrder, SubtractsTheSecondFromTheFirst) {
  for (const auto& [isa, difference] :
       {std::pair("plena", -3.0F), std::pair("plena+rs-sub-order", 3.0F)}) {
    RsBench bench(isa);
    bench.row(0, halves(5, 5)).row(8, halves(2, 2)).gp(2, 8).gp(3, 16);

    bench.run({{.op = Op::V_SUB_VV, .rd = 3, .rs1 = 1, .rs2 = 2}});

    EXPECT_EQ(bench.lane(16), difference) << isa;
  }
}

// ------------------------------------------------------------ rs-exp-clamp

TEST(RsExpClamp, ExpOfARowIsThatOfTheClampedLane) {
  RsBench bench("plena+rs-exp-clamp");
  bench.row(0, {0, 100, -100, kInfinity, -kInfinity, kNan, 88, -88}).gp(3, 16);

  bench.run({{.op = Op::V_EXP_V, .rd = 3}});

  EXPECT_EQ(bench.lane(16), 1);
  EXPECT_EQ(bench.bits(17), kExpOf88);
  EXPECT_EQ(bench.bits(18), kExpOfMinus88);
  EXPECT_EQ(bench.bits(19), kExpOf88);
  EXPECT_EQ(bench.bits(20), kExpOfMinus88);
  EXPECT_EQ(bench.bits(21), 0x7FC0);
  EXPECT_EQ(bench.bits(22), kExpOf88);
  EXPECT_EQ(bench.bits(23), kExpOfMinus88);
}

TEST(RsExpClamp, SoIsThatOfAScalar) {
  RsBench bench("plena+rs-exp-clamp");
  bench.f(1, 100).f(2, -kInfinity);

  bench.run({{.op = Op::S_EXP_FP, .rd = 3, .rs1 = 1}, {.op = Op::S_EXP_FP, .rd = 4, .rs1 = 2}});

  EXPECT_EQ(bench.machine.f[3], kExpOf88);
  EXPECT_EQ(bench.machine.f[4], kExpOfMinus88);
}

// ------------------------------------------------------------ rs-max

TEST(RsMax, TheSecondScalarWinsOnlyWhereItIsGreater) {
  const auto maximum = [](float a, float b) {
    RsBench bench("plena+rs-max");
    bench.f(1, a).f(2, b);
    bench.run({{.op = Op::S_MAX_FP, .rd = 3, .rs1 = 1, .rs2 = 2}});
    return bench.f(3);
  };

  EXPECT_EQ(maximum(1, 2), 2);
  EXPECT_EQ(maximum(2, 1), 2);
  EXPECT_TRUE(std::isnan(maximum(kNan, 3)));
  EXPECT_EQ(maximum(3, kNan), 3);
  EXPECT_TRUE(std::signbit(maximum(-0.0F, 0.0F)));
  EXPECT_FALSE(std::signbit(maximum(0.0F, -0.0F)));
}

TEST(RsMax, ANanLaneStaysANan) {
  RsBench bench("plena+minmax+rs-max");
  bench.row(0, {kNan, 1, 9, -0.0F}).gp(3, 16).gp(4, 24).f(1, 5).f(2, 0);

  bench.run({{.op = Op::V_MAX_VF, .rd = 3, .rs2 = 1}, {.op = Op::V_MIN_VF, .rd = 4, .rs2 = 1}});

  EXPECT_TRUE(std::isnan(bench.lane(16)));
  EXPECT_EQ(bench.lane(17), 5);
  EXPECT_EQ(bench.lane(18), 9);
  EXPECT_TRUE(std::isnan(bench.lane(24)));
  EXPECT_EQ(bench.lane(25), 1);
  EXPECT_EQ(bench.lane(26), 5);
}

TEST(RsMax, ARowWithANanLeavesTheRegister) {
  RsBench bench("plena+rs-max");
  bench.row(0, {1, kNan, 9}).row(8, {1, 2, 9}).gp(2, 8).f(1, 3).f(2, 3).f(3, kNan);

  bench.run({{.op = Op::V_RED_MAX, .rd = 1},
             {.op = Op::V_RED_MAX, .rd = 2, .rs1 = 2},
             {.op = Op::V_RED_MAX, .rd = 3, .rs1 = 2}});

  EXPECT_EQ(bench.f(1), 3);
  EXPECT_EQ(bench.f(2), 9);
  EXPECT_EQ(bench.f(3), 9);
}

// ------------------------------------------------------------ rs-topk

// 32 lanes in four rows of 8, all -8 but the ones named.
RsBench router(std::string_view isa, const std::vector<std::pair<int, float>>& logits) {
  RsBench bench(isa);
  std::vector<float> row(32, -8);
  for (const auto& [lane, value] : logits) row[static_cast<std::size_t>(lane)] = value;
  bench.row(0, row).gp(1, 0).gp(2, 10).gp(3, 20);
  bench.run({{.op = Op::V_TOPK, .rd = 3, .rs1 = 1, .rs2 = 2}});
  return bench;
}

std::vector<std::uint32_t> chosen(const RsBench& bench) {
  return {bench.machine.int_mem.begin() + 10, bench.machine.int_mem.begin() + 14};
}

std::vector<float> weights(const RsBench& bench) {
  std::vector<float> out;
  for (std::size_t k = 20; k < 24; ++k) {
    out.push_back(decode_fp(bench.machine.scalar_element(), bench.machine.fp_mem[k]));
  }
  return out;
}

TEST(RsTopk, PlusZeroRanksAboveMinusZero) {
  const std::vector<std::pair<int, float>> logits = {{3, -0.0F}, {5, 0.0F}, {9, 2}, {11, 1}};

  EXPECT_EQ(chosen(router("plena+moe+rs-topk", logits)), (std::vector<std::uint32_t>{9, 11, 5, 3}));
  EXPECT_EQ(chosen(router("plena+moe", logits)), (std::vector<std::uint32_t>{9, 11, 3, 5}));
}

TEST(RsTopk, ANanRanksAsMinusInfinityByItsIndex) {
  std::vector<std::pair<int, float>> logits;
  for (int lane = 0; lane < 32; ++lane) logits.emplace_back(lane, -kInfinity);
  logits[7].second = 4;
  logits[1].second = kNan;

  const RsBench bench = router("plena+moe+rs-topk", logits);

  // Ties of -infinity and the NaN go by index; exp of -infinity is 0.
  EXPECT_EQ(chosen(bench), (std::vector<std::uint32_t>{7, 0, 1, 2}));
  EXPECT_EQ(weights(bench), (std::vector<float>{1, 0, 0, 0}));
}

TEST(RsTopk, EqualLogitsShareEvenly) {
  const RsBench bench = router("plena+moe+rs-topk", {{30, 2}, {4, 2}, {6, 2}, {5, 2}});

  EXPECT_EQ(chosen(bench), (std::vector<std::uint32_t>{4, 5, 6, 30}));
  EXPECT_EQ(weights(bench), std::vector<float>(4, 0.25F));
}

TEST(RsTopk, AllWeightsAreZeroUnlessTheirSumIsFinite) {
  // infinity - infinity is a NaN, so that the sum is one too.
  EXPECT_EQ(weights(router("plena+moe+rs-topk", {{3, kInfinity}, {4, 1}})),
            std::vector<float>(4, 0));
}

}  // namespace
}  // namespace plena
