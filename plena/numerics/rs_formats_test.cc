// Numbers of the public Rust emulator against dialect-plena-rs.md 2 and 5, by arithmetic on paper.
#include "plena/numerics/rs_formats.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace plena {
namespace {

constexpr DataType kMxfp8 = DataType::mx(kE4M3, 8);
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Encoded {
  std::vector<std::uint8_t> elements;
  std::vector<std::uint8_t> scales;
};

Encoded encode(DataType type, const std::vector<float>& values) {
  Encoded out{std::vector<std::uint8_t>(values.size() * type.width() / 8),
              std::vector<std::uint8_t>(type.is_mx() ? values.size() / type.block : 0)};
  rs_encode_row(type, values.data(), values.size(), out.elements.data(), out.scales.data());
  return out;
}

std::vector<float> decode(DataType type, const std::vector<std::uint8_t>& elements,
                          const std::vector<std::uint8_t>& scales, std::size_t n,
                          std::uint64_t first = 0) {
  std::vector<float> out(n);
  RsDecoder(type).decode(elements.data(), scales.data(), first, n, out.data());
  return out;
}

// ------------------------------------------------------------ decoding

TEST(RsDecoderTest, EveryCodeOfE4M3) {
  std::vector<std::uint8_t> codes(256);
  for (std::size_t code = 0; code < codes.size(); ++code)
    codes[code] = static_cast<std::uint8_t>(code);
  const auto values = decode(kMxfp8, codes, std::vector<std::uint8_t>(32, 127), 256);

  for (std::size_t code = 0; code < codes.size(); ++code) {
    const int exponent = static_cast<int>(code >> 3 & 15);
    const int mantissa = static_cast<int>(code & 7);
    const float sign = code >= 128 ? -1.0F : 1.0F;
    if (exponent == 15 && mantissa != 0) {
      EXPECT_TRUE(std::isnan(values[code])) << code;
    } else if (exponent == 15) {
      EXPECT_EQ(values[code], sign * kInfinity) << code;
    } else if (exponent == 0) {
      EXPECT_EQ(values[code], sign * static_cast<float>(mantissa) * 0x1p-10F) << code;
    } else {
      EXPECT_EQ(values[code], sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 7 - 3))
          << code;
    }
  }
}

TEST(RsDecoderTest, EveryScaleByte) {
  for (int byte = 0; byte < 256; ++byte) {
    const float two =
        decode(kMxfp8, std::vector<std::uint8_t>(8, 0x40), {static_cast<std::uint8_t>(byte)}, 1)[0];
    const float expected = byte == 0     ? 0.0F
                           : byte == 255 ? kInfinity
                                         : std::ldexp(2.0F, byte - 127);
    EXPECT_EQ(two, expected) << byte;
  }
}

TEST(RsDecoderTest, ZeroTimesAnInfiniteScaleIsANan) {
  EXPECT_TRUE(std::isnan(decode(kMxfp8, {0}, {255}, 1)[0]));
}

TEST(RsDecoderTest, FindsTheScaleOfAnElementInsideItsBlock) {
  const std::vector<std::uint8_t> ones(8, 0x38);
  // Elements 6 … 9 of blocks of 8: two of the first, two of the second.
  EXPECT_EQ(decode(kMxfp8, ones, {127, 129}, 4, 6), (std::vector<float>{1, 1, 4, 4}));
}

TEST(RsDecoderTest, PlainTypesWithEightExponentBitsAreIeee) {
  EXPECT_EQ(decode(DataType::plain(kBf16), {0x80, 0x3F, 0x01, 0x00}, {}, 2),
            (std::vector<float>{1, 0x1p-133F}));
}

// ------------------------------------------------------------ encoding

TEST(RsEncodeRow, TheSharedExponentIsThatOfTheLargest) {
  const Encoded row = encode(kMxfp8, {8, 4, 2, 1, 0.5F, -8, 12, 0});

  EXPECT_EQ(row.scales, std::vector<std::uint8_t>{127 + 3});
  EXPECT_EQ(row.elements, (std::vector<std::uint8_t>{0x38, 0x30, 0x28, 0x20, 0x18, 0xB8, 0x3C, 0}));
}

TEST(RsEncodeRow, RoundsQuartersOfAStepToEven) {
  // Steps of 1/8: 0.5 and 1.5 steps are ties, 0.7 of a step is cut to 0.5 first.
  const Encoded row =
      encode(kMxfp8, {1 + 0.5F / 8, 1 + 1.5F / 8, 1 + 0.7F / 8, 1 + 0.75F / 8, 1, 1, 1, 1});

  EXPECT_EQ(row.elements[0], 0x38);
  EXPECT_EQ(row.elements[1], 0x3A);
  EXPECT_EQ(row.elements[2], 0x38);
  EXPECT_EQ(row.elements[3], 0x39);
}

TEST(RsEncodeRow, AMantissaThatRoundsOverDoesNotCarry) {
  const Encoded row = encode(kMxfp8, {1.97F, 1.9375F, 1, 1, 1, 1, 1, 1});

  EXPECT_EQ(row.elements[0], 0x3F);  // 1.875
  EXPECT_EQ(row.elements[1], 0x3F);
}

TEST(RsEncodeRow, CountsTheMantissasThatDidNotCarry) {
  const std::vector<float> values = {1.97F, 1.9375F, 1.875F, 1, -1.99F, 0, 0x1p-7F, 0x1p-9F};

  // 1.97, 1.9375 and -1.99 round up to 2; 2^-7 is 8/8 of the subnormal code.
  EXPECT_EQ(rs_lost_carries(kMxfp8, values.data(), values.size()), 4U);
}

TEST(RsEncodeRow, ABlockOfZerosIsAllZeroBytes) {
  const Encoded row = encode(kMxfp8, {0, -0.0F, 0, 0, 0, 0, 0, 0});

  EXPECT_EQ(row.scales, std::vector<std::uint8_t>{0});
  EXPECT_EQ(row.elements, std::vector<std::uint8_t>(8, 0));
}

TEST(RsEncodeRow, AVerySmallBlockGetsTheExponentOfTheGuard) {
  // log2(1e-30 + 1e-9) = -29.9; every element is far below the smallest code.
  const Encoded row = encode(kMxfp8, {1e-30F, -1e-30F, 0, 0, 0, 0, 0, 0});

  EXPECT_EQ(row.scales, std::vector<std::uint8_t>{127 - 30});
  EXPECT_EQ(row.elements, (std::vector<std::uint8_t>{0, 0x80, 0, 0, 0, 0, 0, 0}));
}

TEST(RsEncodeRow, ANanIsOneAndDoesNotCountForTheLargest) {
  const Encoded row = encode(kMxfp8, {kNan, 4, -kNan, 0, 0, 0, 0, 0});

  EXPECT_EQ(row.scales, std::vector<std::uint8_t>{127 + 2});
  EXPECT_EQ(row.elements, (std::vector<std::uint8_t>{0x38, 0x38, 0x38, 0, 0, 0, 0, 0}));
}

TEST(RsEncodeRow, AnInfinityTakesTheLargestScaleAndCode) {
  const Encoded row = encode(kMxfp8, {kInfinity, -kInfinity, 0, 0, 0, 0, 0, 0});

  EXPECT_EQ(row.scales, std::vector<std::uint8_t>{254});
  EXPECT_EQ(row.elements[0], 0x77);
  EXPECT_EQ(row.elements[1], 0xF7);
}

TEST(RsEncodeRow, NarrowCodesTakeAByteAndSpillIntoTheNextBlock) {
  // E2M1 codes of 1.0 are 2, of 1.5 are 3. A block of 4 has room for 2 bytes, its 4 codes take 4:
  // the next block overwrites the last two, and those of the last block do not fit.
  const DataType mxfp4 = DataType::mx(kE2M1, 4);

  EXPECT_EQ(encode(mxfp4, {1, 1.5F, 1, 1, 1.5F, 1, 1, 1}).elements,
            (std::vector<std::uint8_t>{2, 3, 3, 2}));
  // A block of zeros writes nothing: what spilled into it stays.
  EXPECT_EQ(encode(mxfp4, {1, 1.5F, 1.5F, 1, 0, 0, 0, 0}).elements,
            (std::vector<std::uint8_t>{2, 3, 3, 2}));
}

TEST(RsEncodeRow, APlainNanMayRoundToInfinity) {
  const float over = std::bit_cast<float>(0x7FFF8000U);
  const float under = std::bit_cast<float>(0xFFC00000U);

  EXPECT_EQ(encode(DataType::plain(kBf16), {over, under, 1}).elements,
            (std::vector<std::uint8_t>{0x80, 0x7F, 0xC0, 0xFF, 0x80, 0x3F}));
}

// ------------------------------------------------------------ sums

// A row of n zeros with some values; 2^24 swallows a 1 that is added to it.
float sum_of(std::size_t n, const std::vector<std::pair<std::size_t, float>>& values) {
  std::vector<float> row(n, 0);
  for (const auto& [lane, value] : values) row[lane] = value;
  return rs_row_sum(row.data(), n);
}

TEST(RsRowSum, LanesMeetInOrder) {
  EXPECT_EQ(sum_of(8, {{0, 0x1p24F}, {1, 1}, {2, -0x1p24F}}), 0);
  EXPECT_EQ(sum_of(8, {{0, 0x1p24F}, {1, -0x1p24F}, {2, 1}}), 1);
}

TEST(RsRowSum, ChunkJMeetsChunkJPlusFour) {
  // Lane 0 of chunks 0, 1, 4, 5: (2^24 + 1) + (-2^24 + 1) = 0 + 1.
  EXPECT_EQ(sum_of(64, {{0, 0x1p24F}, {32, 1}, {8, -0x1p24F}, {40, 1}}), 1);
}

TEST(RsRowSum, LeftOverChunksJoinTheFirstAccumulator) {
  // Five chunks: the fifth joins chunk 0 before chunk 1 does.
  EXPECT_EQ(sum_of(40, {{0, 0x1p24F}, {32, 1}, {8, -0x1p24F}}), 0);
}

TEST(RsRowSum, TheFourAccumulatorsFoldFromTheLeft) {
  // ((A0 + A1) + A2) + A3 with A0 = 2^24, A1 = 1, A2 = 1, A3 = -2^24.
  EXPECT_EQ(sum_of(32, {{0, 0x1p24F}, {8, 1}, {16, 1}, {24, -0x1p24F}}), 0);
}

TEST(RsRowSum, FewerThanEightLanesUseFourScalars) {
  // Lanes 4 and 5 join lane 0 before lane 1 does.
  EXPECT_EQ(sum_of(6, {{0, 0x1p24F}, {4, 1}, {1, -0x1p24F}}), 0);
  EXPECT_EQ(sum_of(6, {{1, 0x1p24F}, {4, 1}, {2, -0x1p24F}}), 0);
  EXPECT_EQ(sum_of(4, {{1, 0x1p24F}, {2, -0x1p24F}, {3, 1}}), 1);
}

}  // namespace
}  // namespace plena
