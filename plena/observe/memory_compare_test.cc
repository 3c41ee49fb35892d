// Bit patterns below are worked out by hand: bf16 1.0 = 0x3F80, 1.5 = 0x3FC0, 1.25 = 0x3FA0.
#include "plena/observe/memory_compare.h"

#include <limits>

#include <gmock/gmock.h>

#include "plena/observe/observe_fixture.h"

namespace plena {
namespace {

using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class MemoryCompareTest : public ObserveTest {
 protected:
  // Elements 32 … of Vector SRAM: 1.0, 1.25, NaN, +infinity, -0.
  void SetUp() override {
    ObserveTest::SetUp();
    ASSERT_TRUE(machine_.write_elements(
        MemoryKind::Vram, 32, Bytes{0x80, 0x3F, 0xA0, 0x3F, 0xC0, 0x7F, 0x80, 0x7F, 0x00, 0x80}));
  }
  Comparison compare(const std::string& file, const Tolerance& tolerance = {}) {
    const auto comparison =
        compare_memory(machine_, {MemoryKind::Vram, file, 32, std::nullopt}, tolerance);
    EXPECT_TRUE(comparison) << comparison.error().message;
    return comparison.value_or(Comparison{});
  }
};

TEST_F(MemoryCompareTest, EqualValuesMatch) {
  const auto file = write_array<float>("e.npy", {5}, {1.0F, 1.25F, kNan, kInfinity, 0.0F});

  const Comparison comparison = compare(file);

  EXPECT_EQ(comparison.mismatches, 0U);
  EXPECT_EQ(describe(comparison, machine_, MemoryKind::Vram), "5 elements match");
}

TEST_F(MemoryCompareTest, NamesTheWorstElement) {
  const auto file = write_array<float>("e.npy", {3}, {1.25F, 1.75F, kNan});

  EXPECT_EQ(
      describe(compare(file), machine_, MemoryKind::Vram),
      "2 of 3 elements differ; worst at 33 (row 2, lane 1): expected 1.75, got 1.25 (0x3FA0)");
}

TEST_F(MemoryCompareTest, TolerancesAddUp) {
  // |1.25 - 1.5| = 0.25 = 0.1 + 0.1 * 1.5, up to rounding.
  const auto file = write_array<float>("e.npy", {2}, {1.0F, 1.5F});

  EXPECT_EQ(compare(file, {0.1, 0.1001}).mismatches, 0U);
  EXPECT_EQ(compare(file, {0.1, 0.0999}).mismatches, 1U);
  EXPECT_EQ(compare(file, {0.25, 0}).mismatches, 0U);
}

TEST_F(MemoryCompareTest, NoToleranceReachesNanOrInfinity) {
  const auto file = write_array<float>("e.npy", {4}, {kNan, 1.25F, 0.0F, 1.0F});

  const Comparison comparison = compare(file, {1e30, 1e30});

  EXPECT_EQ(comparison.mismatches, 3U);
  EXPECT_EQ(comparison.worst->address, 32U);
  const auto infinite = write_array<float>("i.npy", {2}, {kInfinity, 1.25F});
  EXPECT_EQ(compare(infinite, {1e30, 1e30}).mismatches, 1U);
}

TEST_F(MemoryCompareTest, ExactRawFilesTellZerosApartButNotNans) {
  const auto same =
      write_raw("s.bin", {0x80, 0x3F, 0xA0, 0x3F, 0xC1, 0xFF, 0x80, 0x7F, 0x00, 0x80});
  const auto zero =
      write_raw("z.bin", {0x80, 0x3F, 0xA0, 0x3F, 0xC0, 0x7F, 0x80, 0x7F, 0x00, 0x00});

  EXPECT_EQ(compare(same).mismatches, 0U);
  EXPECT_EQ(describe(compare(zero), machine_, MemoryKind::Vram),
            "1 of 5 elements differ; worst at 36 (row 2, lane 4): expected 0 (0x0000), got -0 "
            "(0x8000)");
  EXPECT_EQ(compare(zero, {1e-9, 0}).mismatches, 0U);
}

TEST_F(MemoryCompareTest, ComparesIntegersOfEitherSign) {
  machine_.int_mem[3] = 0xFFFFFFFF;
  const MemorySpec spec = {MemoryKind::IntMem, write_array<std::int32_t>("i.npy", {1}, {-1}), 3,
                           std::nullopt};

  EXPECT_EQ(compare_memory(machine_, spec, {})->mismatches, 0U);
  machine_.int_mem[3] = 7;
  EXPECT_EQ(describe(*compare_memory(machine_, spec, {}), machine_, MemoryKind::IntMem),
            "1 of 1 elements differ; worst at 3: expected 4294967295, got 7 (0x00000007)");
}

TEST_F(MemoryCompareTest, RefusesFilesThatCompareNothing) {
  const MemorySpec spec = {MemoryKind::Vram, write_raw("empty.bin", {}), 0, std::nullopt};

  const auto comparison = compare_memory(machine_, spec, {});

  ASSERT_FALSE(comparison);
  EXPECT_THAT(comparison.error().message, HasSubstr("no elements"));
}

TEST_F(MemoryCompareTest, RefusesFilesThatDoNotFit) {
  const MemorySpec spec = {MemoryKind::FpMem, write_raw("long.bin", Bytes(130, 0)), 0,
                           std::nullopt};

  EXPECT_THAT(compare_memory(machine_, spec, {}).error().message, HasSubstr("do not fit"));
}

}  // namespace
}  // namespace plena
