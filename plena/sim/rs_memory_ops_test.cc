// rs-hbm-bytes, rs-mx and rs-memories, each alone and where they meet (dialect-plena-rs.md 5 and
// 6). Rows have 8 elements; in E4M3 0x38 is 1.0 and 0x40 is 2.0, as a scale byte 127 is 1.0.
#include <limits>

#include "plena/sim/rs_fixture.h"

namespace plena {
namespace {

constexpr std::uint8_t kOne = 0x38;
constexpr std::uint8_t kTwo = 0x40;
constexpr std::uint8_t kScaleOne = 127;
constexpr std::uint8_t kScaleTwo = 128;

constexpr Instruction kLoad{.op = Op::H_PREFETCH_V, .rd = 1, .rs1 = 2};
constexpr Instruction kLoadStrided{.op = Op::H_PREFETCH_V, .rd = 1, .rs1 = 2, .select = 1};
constexpr Instruction kLoadTile{.op = Op::H_PREFETCH_M, .rd = 1, .rs1 = 2};
constexpr Instruction kStore{.op = Op::H_STORE_V, .rd = 1, .rs1 = 2};

std::vector<std::uint8_t> bytes(std::size_t count, std::uint8_t value) {
  return std::vector<std::uint8_t>(count, value);
}

// Registers set as a program would: a0 = 0, SCALE_REG and STRIDE_REG as given.
RsBench transfer(std::string_view isa, std::uint32_t scale, std::uint32_t stride = 8,
                 const Settings& settings = tiny_settings()) {
  RsBench bench(isa, settings);
  bench.machine.a_set = 1;
  bench.machine.scale_set = bench.machine.stride_set = true;
  bench.machine.scale = scale;
  bench.machine.stride = stride;
  return bench;
}

Settings with_plain_activations() {
  Settings settings = tiny_settings();
  settings.hbm_v_act_type = DataType::plain(kBf16);
  return settings;
}

// ------------------------------------------------------------ rs-hbm-bytes

TEST(RsHbmBytes, OffsetsAreBytes) {
  // bf16 1.0, 2.0, 3.0, … from byte 0; offset 4 is the third value, not the fifth.
  RsBench bench = transfer("plena+rs-hbm-bytes", 0, 8, with_plain_activations());
  for (std::uint8_t k = 0; k < 16; ++k) {
    const auto value = f32_to_bf16(static_cast<float>(k + 1));
    bench.hbm(2U * k, {static_cast<std::uint8_t>(value), static_cast<std::uint8_t>(value >> 8)});
  }
  bench.gp(2, 4);

  ASSERT_EQ(bench.run({kLoad}).reason, StopReason::Halted);

  EXPECT_EQ(bench.lane(0), 3);
  // Dense rows of a 16-bit type overlap by half: row 1 begins 8 bytes later.
  EXPECT_EQ(bench.lane(8), 7);
}

TEST(RsHbmBytes, StridesAreBytes) {
  RsBench bench = transfer("plena+rs-hbm-bytes", 0, 16, with_plain_activations());
  bench.hbm(16, {0x80, 0x3F});

  bench.run({kLoadStrided});

  EXPECT_EQ(bench.lane(8), 1);
}

TEST(RsHbmBytes, TheScaleIndexIsTheSumOfTwoFloors) {
  // Offset 4 and stride 4 with blocks of 8: row 1 starts at byte 8, but its scale is
  // floor(4/8) + floor(4/8) = 0, not floor(8/8).
  RsBench bench = transfer("plena+rs-hbm-bytes", 1024, 4);
  bench.hbm(0, bytes(32, kOne)).hbm(1024, {kScaleTwo, kScaleOne}).gp(2, 4);

  bench.run({kLoadStrided});

  EXPECT_EQ(bench.lanes(8), std::vector<float>(8, 2));
  RsBench elements = transfer("plena", 1024, 4);
  elements.hbm(0, bytes(32, kOne)).hbm(1024, {kScaleTwo, kScaleOne}).gp(2, 4);
  elements.run({kLoadStrided});
  EXPECT_EQ(elements.lanes(8), std::vector<float>(8, 1));
}

TEST(RsHbmBytes, ScalesBeyondTheirBlockOf64BytesAreZero) {
  Settings settings = tiny_settings();
  settings.hbm_v_act_type = DataType::mx(kE4M3, 4);  // two scales a row
  RsBench bench = transfer("plena+rs-hbm-bytes+rs-mx", 1024 + 63, 8, settings);
  bench.hbm(0, bytes(16, kOne)).hbm(1024, bytes(128, kScaleOne));

  bench.run({kLoad});

  // Scales of row 0: bytes 1087 and 1088, the second in the next block. Row 1: 1089 and 1090.
  EXPECT_EQ(bench.lanes(0), (std::vector<float>{1, 1, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(bench.lanes(8), std::vector<float>(8, 1));
}

TEST(RsHbmBytes, StoredScalesCrossIt) {
  Settings settings = tiny_settings();
  settings.hbm_v_act_type = DataType::mx(kE4M3, 4);
  RsBench bench = transfer("plena+rs-hbm-bytes+rs-mx", 1024 + 63, 8, settings);
  bench.row(0, std::vector<float>(8, 2));

  bench.run({kStore});

  EXPECT_EQ(bench.machine.hbm.data()[1024 + 63], kScaleTwo);
  EXPECT_EQ(bench.machine.hbm.data()[1024 + 64], kScaleTwo);
}

TEST(RsHbmBytes, WhatLiesPastTheEndReadsZero) {
  RsBench bench = transfer("plena+rs-hbm-bytes", 1024);
  bench.hbm(1024 + 511, {kScaleOne}).hbm(4088, bytes(8, kTwo)).gp(2, 4088);

  ASSERT_EQ(bench.run({kLoad}).reason, StopReason::Halted);

  EXPECT_EQ(bench.lanes(0), std::vector<float>(8, 2));
  EXPECT_EQ(bench.lanes(8), std::vector<float>(8, 0));
  expect_trap(transfer("plena", 1024).gp(2, 4088).run({kLoad}), TrapCause::HbmOutOfRange, 0);
}

TEST(RsHbmBytes, WritingPastTheEndIsAFault) {
  RsBench bench = transfer("plena+rs-hbm-bytes", 1024);
  bench.gp(2, 4088);

  expect_trap(bench.run({kStore}), TrapCause::HbmOutOfRange, 0);
}

TEST(RsHbmBytes, RowsPastTheEndOfVectorSramAreDropped) {
  RsBench bench = transfer("plena+rs-hbm-bytes", 1024);
  bench.hbm(0, bytes(16, kTwo)).hbm(1024, bytes(2, kScaleOne)).gp(1, 248);  // the last row

  ASSERT_EQ(bench.run({kLoad}).reason, StopReason::Halted);
  EXPECT_EQ(bench.lane(248), 2);

  bench.gp(1, 256);  // but the first has to be there
  expect_trap(bench.run({kLoad}), TrapCause::AddressOutOfRange, 0);
}

TEST(RsHbmBytes, TheMatrixAmountIsRoundedUpToTiles) {
  const auto rows = [](std::uint32_t amount, std::string_view isa) {
    Settings settings = tiny_settings();
    settings.hbm_m_prefetch_amount = amount;
    return settings_for(settings, *Dialect::parse(isa)).hbm_m_prefetch_amount;
  };

  EXPECT_EQ(rows(1, "plena+rs-hbm-bytes"), 8U);
  EXPECT_EQ(rows(8, "plena+rs-hbm-bytes"), 8U);
  EXPECT_EQ(rows(9, "plena+rs-hbm-bytes"), 16U);
  EXPECT_EQ(rows(9, "plena"), 9U);
}

TEST(RsHbmBytes, ARoundedAmountFillsTiles) {
  Settings settings = tiny_settings();
  settings.hbm_m_prefetch_amount = 9;
  RsBench bench = transfer("plena+rs-hbm-bytes", 1024, 8, settings);
  bench.hbm(0, bytes(128, kTwo)).hbm(1024, bytes(16, kScaleOne));

  ASSERT_EQ(bench.run({kLoadTile}).reason, StopReason::Halted);

  EXPECT_EQ(bench.matrix(2 * kTile - 1), 2);
}

TEST(RsHbmBytes, StoresNeedNoWholeBlocks) {
  RsBench bench = transfer("plena+rs-hbm-bytes", 1024);
  bench.row(0, std::vector<float>(8, 1)).gp(2, 3);

  ASSERT_EQ(bench.run({kStore}).reason, StopReason::Halted);

  EXPECT_NE(bench.machine.hbm.data()[3], 0);
  expect_trap(transfer("plena", 1024).gp(2, 3).run({kStore}), TrapCause::MxBlockMisaligned, 0);
}

TEST(RsHbmBytes, WhereStoredRegionsOverlapTheScalesStand) {
  // Row 0: elements at 0 … 7, scale at 4.
  RsBench bytewise = transfer("plena+rs-hbm-bytes+rs-mx", 4);
  bytewise.row(0, std::vector<float>(8, 1));
  bytewise.run({kStore});
  EXPECT_EQ(bytewise.machine.hbm.data()[4], kScaleOne);

  RsBench elements = transfer("plena+rs-mx", 4);
  elements.row(0, std::vector<float>(8, 1));
  elements.run({kStore});
  EXPECT_EQ(elements.machine.hbm.data()[4], kOne);
}

// ------------------------------------------------------------ rs-mx

TEST(RsMx, CodesOfAllOnesAreInfinityAndNan) {
  RsBench bench = transfer("plena+rs-mx", 1024);
  bench.hbm(0, {0x78, 0xF8, 0x79, 0x7E, 0x01, 0x07, 0x08, 0x77}).hbm(1024, {kScaleOne});

  bench.run({kLoad});

  EXPECT_EQ(bench.lane(0), std::numeric_limits<float>::infinity());
  EXPECT_EQ(bench.lane(1), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(bench.lane(2)));
  EXPECT_TRUE(std::isnan(bench.lane(3)));
  EXPECT_EQ(bench.lane(4), 0x1p-10F);  // (1/8) · 2^-7
  EXPECT_EQ(bench.lane(5), 7 * 0x1p-10F);
  EXPECT_EQ(bench.lane(6), 0x1p-6F);
  EXPECT_EQ(bench.lane(7), 240);  // 1.875 · 2^7
}

TEST(RsMx, ScaleByte0IsZeroAnd255Infinity) {
  RsBench bench = transfer("plena+rs-mx", 1024);
  bench.hbm(0, bytes(16, kTwo)).hbm(1024, {0, 255});

  bench.run({kLoad});

  EXPECT_EQ(bench.lane(0), 0);
  EXPECT_EQ(bench.lane(8), std::numeric_limits<float>::infinity());
}

TEST(RsMx, MatrixSramKeepsF32) {
  // 2^-10 · 2^-126 = 2^-136: a subnormal of f32, below the smallest of bf16, 2^-133.
  RsBench bench = transfer("plena+rs-mx", 1024);
  bench.hbm(0, bytes(64, 0x01)).hbm(1024, bytes(8, 1));

  bench.run({kLoadTile, kLoad});

  EXPECT_EQ(bench.matrix(0), 0x1p-136F);
  EXPECT_EQ(bench.lane(0), 0);
}

TEST(RsMx, LoadsMayStartInsideABlock) {
  RsBench bench = transfer("plena+rs-mx", 1024);
  bench.hbm(0, bytes(16, kOne)).hbm(1024, {kScaleOne, kScaleTwo}).gp(2, 3);

  bench.run({kLoad});

  EXPECT_EQ(bench.lanes(0), (std::vector<float>{1, 1, 1, 1, 1, 2, 2, 2}));
}

TEST(RsMx, StoresDoNotSubtractEmaxAndDoNotCarry) {
  RsBench bench = transfer("plena+rs-mx", 1024);
  bench.row(0, {1.97F, 1, -0.5F, 0, -1.9375F, 0x1p-7F, 0x1p-9F, 1});

  bench.run({kStore});

  // 1.97 and 1.9375 round up to 2 but stay 1.875; 2^-7 is 1.0·2^-7, the subnormal code of 8/8,
  // which does not fit and stays 7/8; 2^-9 is 2/8.
  const std::vector<std::uint8_t> expected = {0x3F, kOne, 0xB0, 0, 0xBF, 0x07, 0x02, kOne};
  EXPECT_EQ(std::vector<std::uint8_t>(bench.machine.hbm.data(), bench.machine.hbm.data() + 8),
            expected);
  EXPECT_EQ(bench.machine.hbm.data()[1024], kScaleOne);
}

TEST(RsMx, RefusesTheTypesTheEmulatorCannotComputeWith) {
  const auto accepts = [](auto set) {
    Settings settings = tiny_settings();
    set(settings);
    return Machine::create(settings, *Dialect::parse("plena+rs-mx")).has_value();
  };

  EXPECT_TRUE(accepts([](Settings& s) { s.vector_sram_type = DataType::plain(kBf16); }));
  EXPECT_TRUE(
      accepts([](Settings& s) { s.vector_sram_type = DataType::plain(ElementType::fp(8, 15)); }));
  EXPECT_FALSE(accepts([](Settings& s) { s.vector_sram_type = DataType::plain(kFp16); }));
  EXPECT_FALSE(accepts([](Settings& s) { s.matrix_sram_type = DataType::plain(kFp32); }));
  EXPECT_FALSE(accepts([](Settings& s) { s.hbm_v_act_type = DataType::plain(kE4M3); }));
  EXPECT_FALSE(
      accepts([](Settings& s) { s.hbm_m_kv_type = DataType::mx(ElementType::integer(8), 8); }));
}

TEST(RsMx, ElementsNarrowerThanAByteCannotBeLoaded) {
  Settings settings = tiny_settings();
  settings.hbm_v_act_type = DataType::mx(kE2M1, 8);
  RsBench bench = transfer("plena+rs-mx", 1024, 8, settings);

  expect_trap(bench.run({kLoad}), TrapCause::IllegalInstruction, 0);
  EXPECT_EQ(bench.run({kStore}).reason, StopReason::Halted);
}

// ------------------------------------------------------------ rs-memories

TEST(RsMemories, FixesTheDepthOfTheScalarMemories) {
  RsBench bench("plena+rs-memories");

  EXPECT_EQ(bench.machine.int_mem.size(), 1024U);
  EXPECT_EQ(bench.machine.fp_mem.size(), 1024U);
}

TEST(RsMemories, ScalarsAreAlwaysBf16) {
  Settings settings = tiny_settings();
  settings.scalar_fp = DataType::plain(kFp32);
  RsBench bench("plena+rs-memories", settings);
  bench.f(1, 1).f(2, 0x1p-9F);

  bench.run({{.op = Op::S_ADD_FP, .rd = 3, .rs1 = 1, .rs2 = 2}});

  EXPECT_EQ(bench.f(3), 1);  // 1 + 2^-9 needs more than 8 bits
}

}  // namespace
}  // namespace plena
