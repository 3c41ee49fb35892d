// Formats, rounding, max and min, the balanced tree; exp, reciprocal and square root against the
// shared tables of all 65,536 bf16 inputs.
#include "plena/numerics/float_format.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "plena/base/files.h"
#include "plena/base/shared_data.h"
#include "plena/numerics/vector_kernels.h"

namespace plena {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

constexpr ElementType kFormats[] = {kBf16,
                                    kFp16,
                                    kFp32,
                                    kE4M3,
                                    kE5M2,
                                    ElementType::fp(2, 1),
                                    ElementType::fp(2, 23),
                                    ElementType::fp(6, 9),
                                    ElementType::fp(8, 1),
                                    ElementType::fp(8, 10),
                                    ElementType::fp(3, 12)};

// IEEE 754's definition of a value, with no bit tricks.
double value_by_definition(ElementType format, std::uint32_t magnitude) {
  const int bias = (1 << (format.exponent - 1)) - 1;
  const int exponent = static_cast<int>(magnitude >> format.mantissa);
  const double fraction = (magnitude & ((1U << format.mantissa) - 1)) / std::exp2(format.mantissa);
  return exponent == 0 ? fraction * std::exp2(1 - bias)
                       : (1 + fraction) * std::exp2(exponent - bias);
}

std::uint32_t infinity_of(ElementType format) {
  return ((1U << format.exponent) - 1) << format.mantissa;
}

std::vector<std::uint32_t> sample_magnitudes(ElementType format) {
  std::vector<std::uint32_t> magnitudes;
  const std::uint32_t infinity = infinity_of(format);
  const std::uint32_t step = infinity < 70000 ? 1 : infinity / 40009;
  for (std::uint32_t bits = 0; bits < infinity; bits += step) magnitudes.push_back(bits);
  magnitudes.push_back(infinity - 1);
  return magnitudes;
}

TEST(FloatFormat, DecodesEveryFiniteCodeToTheValueOfItsDefinition) {
  for (const ElementType format : kFormats) {
    const std::uint32_t sign = 1U << (format.exponent + format.mantissa);
    for (const std::uint32_t bits : sample_magnitudes(format)) {
      const double value = value_by_definition(format, bits);
      ASSERT_EQ(decode_fp(format, bits), value) << bits;
      ASSERT_EQ(decode_fp(format, sign | bits), -value) << bits;
      ASSERT_TRUE(std::signbit(decode_fp(format, sign | bits))) << bits;
    }
  }
}

TEST(FloatFormat, DecodesInfinityAndNan) {
  for (const ElementType format : kFormats) {
    const std::uint32_t sign = 1U << (format.exponent + format.mantissa);
    EXPECT_EQ(decode_fp(format, infinity_of(format)), kInf);
    EXPECT_EQ(decode_fp(format, sign | infinity_of(format)), -kInf);
    EXPECT_TRUE(std::isnan(decode_fp(format, infinity_of(format) + 1)));
    EXPECT_TRUE(std::isnan(decode_fp(format, sign | (sign - 1))));
  }
}

// Between neighbours a < b the halves of the interval and its middle go where IEEE 754 says.
TEST(FloatFormat, RoundsToNearestWithTiesToEvenBetweenAnyTwoNeighbours) {
  for (const ElementType format : kFormats) {
    const std::uint32_t sign = 1U << (format.exponent + format.mantissa);
    for (const std::uint32_t bits : sample_magnitudes(format)) {
      const double below = value_by_definition(format, bits);
      // The value a wider exponent would give the next code; for the last one, where overflow
      // starts.
      const double above = value_by_definition(format, bits + 1);
      const double middle = (below + above) / 2;  // exact in double
      const std::uint32_t even = (bits & 1) == 0 ? bits : bits + 1;
      ASSERT_EQ(encode_fp(format, below), bits);
      ASSERT_EQ(encode_fp(format, middle), even);
      ASSERT_EQ(encode_fp(format, std::nextafter(middle, 0)), bits);
      ASSERT_EQ(encode_fp(format, std::nextafter(middle, HUGE_VAL)), bits + 1);
      ASSERT_EQ(encode_fp(format, -middle), sign | even);
      if (format != kFp32) {
        ASSERT_EQ(encode_fp(format, static_cast<float>(middle)),
                  encode_fp(format, static_cast<double>(static_cast<float>(middle))));
      }
    }
  }
}

TEST(FloatFormat, KeepsTheSignOfZeroAndOverflowsToInfinity) {
  for (const ElementType format : kFormats) {
    const std::uint32_t sign = 1U << (format.exponent + format.mantissa);
    EXPECT_EQ(encode_fp(format, 0.0F), 0U);
    EXPECT_EQ(encode_fp(format, -0.0F), sign);
    EXPECT_EQ(encode_fp(format, -1e-300), sign);
    EXPECT_EQ(encode_fp(format, 5e-324), 0U);
    EXPECT_EQ(encode_fp(format, 1e300), infinity_of(format));
    EXPECT_EQ(encode_fp(format, -1e300), sign | infinity_of(format));
    EXPECT_EQ(encode_fp(format, kInf), infinity_of(format));
    EXPECT_EQ(encode_fp(format, -kInf), sign | infinity_of(format));
  }
}

TEST(FloatFormat, WritesEveryNanAsTheCanonicalOne) {
  EXPECT_EQ(canonical_nan(kBf16), 0x7FC0U);
  EXPECT_EQ(canonical_nan(kFp16), 0x7E00U);
  EXPECT_EQ(canonical_nan(kFp32), 0x7FC00000U);
  for (const ElementType format : kFormats) {
    for (const std::uint32_t pattern : {0x7F800001U, 0x7FFFFFFFU, 0xFFC00000U, 0xFF800001U}) {
      EXPECT_EQ(encode_fp(format, std::bit_cast<float>(pattern)), canonical_nan(format));
    }
    EXPECT_EQ(encode_fp(format, -std::numeric_limits<double>::quiet_NaN()), canonical_nan(format));
  }
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0xFF800001U)), 0x7FC0);
}

TEST(FloatFormat, RoundsF32ToBf16AsAnyOtherFormatDoes) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    ASSERT_EQ(f32_to_bf16(value), encode_fp(kBf16, static_cast<double>(value)));
  }
}

TEST(FloatFormat, ConvertsWithOneRoundingAndCopiesBetweenEqualFormats) {
  EXPECT_EQ(convert_fp(kBf16, kBf16, 0xFF81), 0xFF81U);  // a NaN keeps its payload
  EXPECT_EQ(convert_fp(kBf16, kFp32, 0xFF81), 0x7FC00000U);
  EXPECT_EQ(convert_fp(kFp32, kBf16, 0x3F808000), 0x3F80U);  // 1 + 2^-8, a tie
  EXPECT_EQ(convert_fp(kFp32, kBf16, 0x3F808001), 0x3F81U);
  EXPECT_EQ(convert_fp(kBf16, kFp16, 0x4780), 0x7C00U);  // 65536
  EXPECT_EQ(convert_fp(kFp16, kBf16, 0x0001), 0x3380U);  // 2^-24
}

TEST(MaximumNumber, PrefersNumbersToNansAndPlusZeroToMinusZero) {
  EXPECT_EQ(maximum_number(kNan, -5), -5);
  EXPECT_EQ(maximum_number(-5, kNan), -5);
  EXPECT_EQ(maximum_number(2, 3), 3);
  EXPECT_EQ(maximum_number(-kInf, kNan), -kInf);
  EXPECT_FALSE(std::signbit(maximum_number(-0.0F, 0.0F)));
  EXPECT_FALSE(std::signbit(maximum_number(0.0F, -0.0F)));
  EXPECT_TRUE(std::signbit(maximum_number(-0.0F, -0.0F)));
  EXPECT_EQ(std::bit_cast<std::uint32_t>(maximum_number(-kNan, -kNan)), 0x7FC00000U);
}

TEST(MinimumNumber, PrefersNumbersToNansAndMinusZeroToPlusZero) {
  EXPECT_EQ(minimum_number(kNan, 5), 5);
  EXPECT_EQ(minimum_number(5, kNan), 5);
  EXPECT_EQ(minimum_number(2, 3), 2);
  EXPECT_TRUE(std::signbit(minimum_number(-0.0F, 0.0F)));
  EXPECT_TRUE(std::signbit(minimum_number(0.0F, -0.0F)));
  EXPECT_FALSE(std::signbit(minimum_number(0.0F, 0.0F)));
  EXPECT_EQ(std::bit_cast<std::uint32_t>(minimum_number(-kNan, -kNan)), 0x7FC00000U);
}

float tree_of(std::vector<float> values) {
  return tree_sum(values.data(), values.size());
}

// 2^24 + 1 is a tie in f32 and goes to 2^24, 2^24 + 2 is exact: sums tell who met whom.
TEST(TreeSum, PairsNeighboursAndLetsAnOddOneMoveUp) {
  constexpr float kBig = 0x1p24F;
  EXPECT_EQ(tree_of({kBig}), kBig);
  EXPECT_EQ(tree_of({kBig, 1}), kBig);
  EXPECT_EQ(tree_of({kBig, 1, 1}), kBig);               // (big + 1) + 1
  EXPECT_EQ(tree_of({1, 1, kBig}), kBig + 2);           // (1 + 1) + big
  EXPECT_EQ(tree_of({kBig, 0, 1, 1}), kBig + 2);        // (big + 0) + (1 + 1)
  EXPECT_EQ(tree_of({kBig, 1, 1, 1, 1}), kBig + 4);     // (big + 2) + 1, a tie
  EXPECT_EQ(tree_of({kBig, 0, 0, 0, 1, 1}), kBig + 2);  // (big + 0) + (1 + 1)
  EXPECT_EQ(tree_of({1, 0, 0, 0, 1, 0, kBig}), kBig);   // 1 + ((1 + 0) + big)
  EXPECT_TRUE(std::signbit(tree_of({-0.0F, -0.0F, -0.0F})));
}

class Elementary : public ::testing::Test {
 protected:
  static void expect_table(const char* file,
                           std::uint32_t (*function)(ElementType, std::uint32_t)) {
    const auto bytes = read_file(shared_data() + "/vectors/" + file);
    ASSERT_TRUE(bytes.has_value()) << file;
    ASSERT_EQ(bytes->size(), 2U << 16);
    for (std::uint32_t bits = 0; bits < 1U << 16; ++bits) {
      const std::uint32_t expected = (*bytes)[2 * bits] | (*bytes)[2 * bits + 1] << 8;
      ASSERT_EQ(function(kBf16, bits), expected) << file << " of " << bits;
    }
  }
  // The same of rows, which every target computes in its own way.
  static void expect_table(const char* file, VectorKernels::Unary VectorKernels::* function) {
    const auto bytes = read_file(shared_data() + "/vectors/" + file);
    ASSERT_TRUE(bytes.has_value()) << file;
    std::vector<std::uint16_t> all(1U << 16), out(all.size()), expected(all.size());
    std::iota(all.begin(), all.end(), std::uint16_t{0});
    ASSERT_EQ(bytes->size(), sizeof(std::uint16_t) * expected.size());
    std::memcpy(expected.data(), bytes->data(), bytes->size());
    for (const SimdTarget simd : supported_simd_targets()) {
      (vector_kernels(kBf16, simd).*function)(all.data(), out.data(), all.size());
      ASSERT_EQ(out, expected) << file << ", " << simd_target_name(simd);
    }
  }
};

TEST_F(Elementary, ExpOfEveryBf16EqualsTheSharedTable) {
  PLENA_NEEDS_SHARED();
  expect_table("exp_bf16.bin", exp_fp);
  expect_table("exp_bf16.bin", &VectorKernels::exp);
}

TEST_F(Elementary, ReciprocalOfEveryBf16EqualsTheSharedTable) {
  PLENA_NEEDS_SHARED();
  expect_table("reci_bf16.bin", reciprocal_fp);
  expect_table("reci_bf16.bin", &VectorKernels::reciprocal);
}

TEST_F(Elementary, SquareRootOfEveryBf16EqualsTheSharedTable) {
  PLENA_NEEDS_SHARED();
  expect_table("sqrt_bf16.bin", sqrt_fp);
}

TEST_F(Elementary, SpecialValuesFollowSemantics43InEveryFormat) {
  for (const ElementType format : kFormats) {
    const std::uint32_t sign = 1U << (format.exponent + format.mantissa);
    const std::uint32_t infinity = infinity_of(format);
    const std::uint32_t one = encode_fp(format, 1.0F);
    EXPECT_EQ(exp_fp(format, infinity), infinity);
    EXPECT_EQ(exp_fp(format, sign | infinity), 0U);
    EXPECT_EQ(exp_fp(format, 0), one);
    EXPECT_EQ(exp_fp(format, sign), one);
    EXPECT_EQ(reciprocal_fp(format, 0), infinity);
    EXPECT_EQ(reciprocal_fp(format, sign), sign | infinity);
    EXPECT_EQ(reciprocal_fp(format, sign | infinity), sign);
    EXPECT_EQ(sqrt_fp(format, sign), sign);
    EXPECT_EQ(sqrt_fp(format, sign | one), canonical_nan(format));
    EXPECT_EQ(sqrt_fp(format, infinity), infinity);
    for (const auto function : {exp_fp, reciprocal_fp, sqrt_fp}) {
      EXPECT_EQ(function(format, sign | (infinity + 1)), canonical_nan(format));
    }
  }
}

}  // namespace
}  // namespace plena
