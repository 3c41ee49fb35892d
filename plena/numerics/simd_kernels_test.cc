// Every SIMD target this CPU has against the portable kernels, bit for bit: random and special
// values, every length and shape that takes another path. A NaN in an accumulator or a sum may be
// any NaN (only write-outs make them canonical); everything else must agree to the sign of zero.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plena/numerics/float_format.h"
#include "plena/numerics/hbm_codec.h"
#include "plena/numerics/matrix_kernels.h"
#include "plena/numerics/packed_bits.h"
#include "plena/numerics/simd_target.h"
#include "plena/numerics/vector_kernels.h"

namespace plena {
namespace {

constexpr std::array kFormats = {kBf16, kFp32, kFp16, ElementType::fp(8, 15)};

// Elements that kernels know, and two that none does.
constexpr std::array kElements = {kE4M3,
                                  kE5M2,
                                  kE3M2,
                                  kE2M3,
                                  kE2M1,
                                  ElementType::integer(8),
                                  ElementType::integer(4),
                                  ElementType::integer(6),
                                  ElementType::fp(3, 4)};

std::uint32_t f32_identity(float value) {
  return encode_fp(kFp32, value);
}  // NaNs made equal

// How often a value is drawn from the special ones.
enum class Draw { Ordinary, SomeSpecial, AnyBits };

class Values {
 public:
  Values(unsigned seed, Draw draw) : random_(seed), draw_(draw) {}

  float operator()(ElementType format) {
    const std::uint32_t any = static_cast<std::uint32_t>(random_()) >> (32 - format.width());
    if (draw_ == Draw::AnyBits) return decode_fp(format, any);
    if (draw_ == Draw::SomeSpecial && random_() % 16 == 0) return special(format);
    return decode_fp(format, encode_fp(format, normal_(random_)));
  }

 private:
  float special(ElementType format) {
    const std::uint32_t infinity = ((1U << format.exponent) - 1) << format.mantissa;
    const std::uint32_t sign = random_() % 2 == 0 ? 0 : 1U << (format.width() - 1);
    const std::array magnitudes = {0U,           1U,           1U << format.mantissa,
                                   infinity - 1, infinity,     infinity + 1,
                                   3U,           infinity / 2, (1U << format.mantissa) - 1};
    return decode_fp(format, sign | magnitudes[random_() % magnitudes.size()]);
  }

  std::mt19937 random_;
  std::normal_distribution<float> normal_{0, 1};
  Draw draw_;
};

// Rows of `format` in the machine's storage.
struct Row {
  ElementType format;
  std::vector<std::uint16_t> narrow;
  std::vector<std::uint32_t> wide;

  Row(ElementType f, std::size_t n)
      : format(f), narrow(storage_bytes(f) == 2 ? n : 0), wide(storage_bytes(f) == 4 ? n : 0) {}
  [[nodiscard]] const void* bytes() const {
    return narrow.empty() ? static_cast<const void*>(wide.data()) : narrow.data();
  }
  void* bytes() { return narrow.empty() ? static_cast<void*>(wide.data()) : narrow.data(); }
  void set(std::size_t i, std::uint32_t bits) {
    if (narrow.empty()) {
      wide[i] = bits;
    } else {
      narrow[i] = static_cast<std::uint16_t>(bits);
    }
  }
  friend bool operator==(const Row& a, const Row& b) {
    return a.narrow == b.narrow && a.wide == b.wide;
  }
};

Row random_row(ElementType format, std::size_t n, Values& values) {
  Row row(format, n);
  for (std::size_t i = 0; i < n; ++i) row.set(i, encode_fp(format, values(format)));
  return row;
}

std::string target_name(const ::testing::TestParamInfo<SimdTarget>& instance) {
  return std::string(simd_target_name(instance.param));
}

float finite_or_minus_zero(float value) {
  return std::isfinite(value) ? value : -0.0F;
}

class SimdMatrixKernels : public ::testing::TestWithParam<SimdTarget> {
 protected:
  // Zeros of both signs over most of the activations, in runs that blocks and groups of them fit
  // in.
  static void silence_runs(std::vector<float>& a) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = i / 37 % 3 != 0 ? (i % 2 == 0 ? 0.0F : -0.0F) : finite_or_minus_zero(a[i]);
    }
  }

  static void expect_equal(ElementType format, const ProductShape& shape, Draw draw) {
    Values values(static_cast<unsigned>(shape.rows * 7 + shape.columns * 31 + shape.n), draw);
    const std::size_t a_stride = shape.n + 3;
    const std::size_t stride = std::max(shape.columns, shape.n) + 5;
    const std::size_t out_stride = shape.columns + 1;
    std::vector<float> a(shape.rows * a_stride), start(shape.rows * out_stride);
    for (float& x : a) x = values(kBf16);
    for (float& x : start) x = values(kFp32);
    if (shape.finite_weights) silence_runs(a);
    Row weights(format, std::max(shape.columns, shape.n) * stride);
    for (std::size_t i = 0; i < std::max(shape.columns, shape.n) * stride; ++i) {
      const float value = values(format);
      weights.set(i, encode_fp(format, shape.finite_weights ? finite_or_minus_zero(value) : value));
    }
    const MatrixKernels& kernels = matrix_kernels(format, GetParam());
    const MatrixKernels& portable = portable_matrix_kernels(format);
    for (const auto member : {&MatrixKernels::product, &MatrixKernels::product_transposed}) {
      std::vector<float> out = start, expected = start;
      (kernels.*member)(shape, a.data(), a_stride, weights.bytes(), stride, out.data(), out_stride);
      (portable.*member)(shape, a.data(), a_stride, weights.bytes(), stride, expected.data(),
                         out_stride);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(f32_identity(out[i]), f32_identity(expected[i]))
            << "rows " << shape.rows << " columns " << shape.columns << " n " << shape.n << " blen "
            << shape.blen << " row " << i / out_stride << " column " << i % out_stride;
      }
    }
  }
};

TEST_P(SimdMatrixKernels, EqualThePortableOnesForEveryNumberOfColumns) {
  for (const ElementType format : kFormats) {
    for (std::size_t columns = 1; columns <= 140; ++columns) {
      expect_equal(format, {1, columns, 12, 4}, Draw::Ordinary);
    }
  }
}

TEST_P(SimdMatrixKernels, EqualThePortableOnesForEveryNumberOfRows) {
  for (const ElementType format : kFormats) {
    for (std::size_t rows = 1; rows <= 37; ++rows) {
      expect_equal(format, {rows, 71, 8, 4}, Draw::Ordinary);
      expect_equal(format, {rows, 40, 16, 8}, Draw::Ordinary);
    }
  }
}

TEST_P(SimdMatrixKernels, EqualThePortableOnesForEveryNumberOfBlocks) {
  for (const ElementType format : kFormats) {
    for (std::size_t blocks = 1; blocks <= 37; ++blocks) {
      for (const std::size_t blen : {1, 4}) {
        expect_equal(format, {1, 64, blocks * blen, blen}, Draw::Ordinary);
        expect_equal(format, {4, 36, blocks * blen, blen}, Draw::Ordinary);
      }
      expect_equal(format, {2, 3, blocks * 16, 16}, Draw::Ordinary);
      expect_equal(format, {4, 4, blocks * 4, 4}, Draw::Ordinary);
      if (blocks <= 9) expect_equal(format, {16, 16, blocks * 8, 8}, Draw::Ordinary);
    }
  }
}

TEST_P(SimdMatrixKernels, EqualThePortableOnesOnSpecialValues) {
  for (const ElementType format : kFormats) {
    for (const Draw draw : {Draw::SomeSpecial, Draw::AnyBits}) {
      for (const std::size_t blen : {4, 8}) {
        expect_equal(format, {1, 64, 64, blen}, draw);
        expect_equal(format, {4, 4, 64, blen}, draw);
        expect_equal(format, {20, 40, 48, blen}, draw);
        expect_equal(format, {5, 100, 24, blen}, draw);
      }
    }
  }
}

TEST_P(SimdMatrixKernels, EqualThePortableOnesWhereZerosMayBeSkipped) {
  for (const ElementType format : kFormats) {
    for (const Draw draw : {Draw::Ordinary, Draw::SomeSpecial, Draw::AnyBits}) {
      for (const std::size_t n : {64, 100, 512}) {
        expect_equal(format, {1, 64, n, 4, true}, draw);
        expect_equal(format, {4, 40, n, 4, true}, draw);
      }
    }
  }
}

TEST_P(SimdMatrixKernels, TransposeTilesOfAnySide) {
  for (const ElementType format : kFormats) {
    for (std::size_t side = 1; side <= 136; side += side < 20 ? 1 : 4) {
      Values values(static_cast<unsigned>(side), Draw::AnyBits);
      const Row tile = random_row(format, side * side, values);
      Row out(format, side * side), expected(format, side * side);
      matrix_kernels(format, GetParam()).transpose(tile.bytes(), out.bytes(), side);
      portable_matrix_kernels(format).transpose(tile.bytes(), expected.bytes(), side);
      ASSERT_EQ(out, expected) << side;
    }
  }
}

class SimdVectorKernels : public ::testing::TestWithParam<SimdTarget> {
 protected:
  // Every function of the table on one row of n lanes.
  static void expect_equal(ElementType format, std::size_t n, Draw draw) {
    SCOPED_TRACE(::testing::Message() << "width " << format.width() << ", " << n << " lanes");
    const VectorKernels& ours = vector_kernels(format, GetParam());
    const VectorKernels& portable = portable_vector_kernels(format);
    Values values(static_cast<unsigned>(n), draw);
    const Row a = random_row(format, n, values);
    const Row b = random_row(format, n, values);
    const float scalar = values(format);

    Row out(format, n), expected(format, n);
    for (const auto member :
         {&VectorKernels::add, &VectorKernels::subtract, &VectorKernels::multiply}) {
      (ours.*member)(a.bytes(), b.bytes(), out.bytes(), n);
      (portable.*member)(a.bytes(), b.bytes(), expected.bytes(), n);
      ASSERT_EQ(out, expected);
    }
    for (const auto member : {&VectorKernels::add_scalar, &VectorKernels::subtract_scalar,
                              &VectorKernels::subtract_from_scalar, &VectorKernels::multiply_scalar,
                              &VectorKernels::max_scalar, &VectorKernels::min_scalar}) {
      (ours.*member)(a.bytes(), scalar, out.bytes(), n);
      (portable.*member)(a.bytes(), scalar, expected.bytes(), n);
      ASSERT_EQ(out, expected) << scalar;
    }
    for (const auto member :
         {&VectorKernels::exp, &VectorKernels::reciprocal, &VectorKernels::canonical}) {
      (ours.*member)(a.bytes(), out.bytes(), n);
      (portable.*member)(a.bytes(), expected.bytes(), n);
      ASSERT_EQ(out, expected);
    }
    for (const auto member : {&VectorKernels::sum, &VectorKernels::maximum}) {
      ASSERT_EQ(f32_identity((ours.*member)(a.bytes(), n)),
                f32_identity((portable.*member)(a.bytes(), n)));
    }
    expect_conversions_equal(ours, portable, a, n, values);
  }

  static void expect_conversions_equal(const VectorKernels& ours, const VectorKernels& portable,
                                       const Row& a, std::size_t n, Values& values) {
    std::vector<float> wide(n), expected_wide(n);
    ours.to_f32(a.bytes(), wide.data(), n);
    portable.to_f32(a.bytes(), expected_wide.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(f32_identity(wide[i]), f32_identity(expected_wide[i]));
    }
    for (float& x : wide) x = values(kFp32);
    Row out(a.format, n), expected(a.format, n);
    ours.from_f32(wide.data(), out.bytes(), n);
    portable.from_f32(wide.data(), expected.bytes(), n);
    ASSERT_EQ(out, expected);
  }
};

TEST_P(SimdVectorKernels, EqualThePortableOnesForEveryNumberOfLanes) {
  for (const ElementType format : kFormats) {
    for (std::size_t n = 1; n <= 200; ++n) {
      expect_equal(format, n, Draw::Ordinary);
      expect_equal(format, n, Draw::SomeSpecial);
    }
  }
}

TEST_P(SimdVectorKernels, EqualThePortableOnesOnAnyBits) {
  for (const ElementType format : kFormats) {
    for (std::size_t n = 2000; n < 2040; ++n) expect_equal(format, n, Draw::AnyBits);
  }
}

TEST_P(SimdVectorKernels, MaximumTellsZerosInfinitiesAndNansApart) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto maximum_of = [](ElementType format, float most, float one, std::size_t at) {
    Row row(format, 70);
    for (std::size_t i = 0; i < 70; ++i) row.set(i, encode_fp(format, i == at ? one : most));
    return f32_identity(vector_kernels(format, GetParam()).maximum(row.bytes(), 70));
  };
  for (const ElementType format : kFormats) {
    for (const std::size_t at : {0, 5, 31, 32, 63, 64, 69}) {
      EXPECT_EQ(maximum_of(format, -0.0F, 0.0F, at), f32_identity(0.0F));
      EXPECT_EQ(maximum_of(format, -0.0F, -0.0F, at), f32_identity(-0.0F));
      EXPECT_EQ(maximum_of(format, kNan, -kInf, at), f32_identity(-kInf));
      EXPECT_EQ(maximum_of(format, -kInf, kNan, at), f32_identity(-kInf));
      EXPECT_EQ(maximum_of(format, kNan, -2.0F, at), f32_identity(-2.0F));
      EXPECT_EQ(maximum_of(format, kNan, kNan, at), f32_identity(kNan));
    }
  }
}

TEST_P(SimdVectorKernels, ExpAndReciprocalOfEveryBf16EqualTheScalarOnes) {
  Row all(kBf16, 1U << 16), out(kBf16, 1U << 16);
  for (std::uint32_t bits = 0; bits < 1U << 16; ++bits) all.set(bits, bits);
  vector_kernels(kBf16, GetParam()).exp(all.bytes(), out.bytes(), 1U << 16);
  for (std::uint32_t bits = 0; bits < 1U << 16; ++bits) {
    ASSERT_EQ(out.narrow[bits], exp_fp(kBf16, bits)) << bits;
  }
  vector_kernels(kBf16, GetParam()).reciprocal(all.bytes(), out.bytes(), 1U << 16);
  for (std::uint32_t bits = 0; bits < 1U << 16; ++bits) {
    ASSERT_EQ(out.narrow[bits], reciprocal_fp(kBf16, bits)) << bits;
  }
}

TEST_P(SimdVectorKernels, Fp32ExpEqualsTheScalarOneWhereItVaries) {
  constexpr std::size_t kCount = 500000;
  std::mt19937 random(17);
  std::uniform_real_distribution<float> range(-104.5F, 89.0F);
  std::vector<float> in(kCount), out(kCount);
  for (float& x : in) x = range(random);
  vector_kernels(kFp32, GetParam()).exp(in.data(), out.data(), kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(f32_identity(out[i]), exp_fp(kFp32, f32_identity(in[i]))) << in[i];
  }
}

// Lanes that the vector code hands to the scalar function: results within 2^-48 of a midpoint.
TEST_P(SimdVectorKernels, Fp32ExpIsRightWhereADoubleCannotDecide) {
  std::vector<float> in;
  for (std::uint32_t bits = 0x41000000; bits < 0x42B00000; ++bits) {
    const auto y = std::bit_cast<std::uint64_t>(std::exp(double{std::bit_cast<float>(bits)}));
    const std::uint64_t past_midpoint = (y + (1U << 28)) & ((1U << 29) - 1);
    if (past_midpoint < 16 || past_midpoint > (1U << 29) - 16)
      in.push_back(std::bit_cast<float>(bits));
  }
  ASSERT_GT(in.size(), 0U);
  std::vector<float> out(in.size());
  vector_kernels(kFp32, GetParam()).exp(in.data(), out.data(), in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    ASSERT_EQ(f32_identity(out[i]), exp_fp(kFp32, f32_identity(in[i]))) << in[i];
  }
}

TEST_P(SimdVectorKernels, MayWriteOverTheirOperands) {
  for (const ElementType format : kFormats) {
    Values values(5, Draw::Ordinary);
    const Row a = random_row(format, 77, values);
    const Row b = random_row(format, 77, values);
    const VectorKernels& kernels = vector_kernels(format, GetParam());
    Row expected(format, 77), over_a(a), over_b(b), over_unary(a);
    kernels.subtract(a.bytes(), b.bytes(), expected.bytes(), 77);
    kernels.subtract(over_a.bytes(), b.bytes(), over_a.bytes(), 77);
    kernels.subtract(a.bytes(), over_b.bytes(), over_b.bytes(), 77);
    EXPECT_EQ(over_a, expected);
    EXPECT_EQ(over_b, expected);
    kernels.exp(a.bytes(), expected.bytes(), 77);
    kernels.exp(over_unary.bytes(), over_unary.bytes(), 77);
    EXPECT_EQ(over_unary, expected);
  }
}

class SimdHbmCodec : public ::testing::TestWithParam<SimdTarget> {
 protected:
  static void expect_decode_equal(DataType type, ElementType sram, std::uint64_t first,
                                  std::size_t n, std::mt19937& random) {
    SCOPED_TRACE(::testing::Message()
                 << "block " << type.block << " first " << first << " n " << n);
    std::vector<std::uint8_t> elements(n * type.width() / 8 + 9);
    std::vector<std::uint8_t> scales(n / type.block + 2);
    for (auto& byte : elements) byte = static_cast<std::uint8_t>(random());
    // Most scales are ordinary, a few are at the ends of the range.
    const bool any = random() % 4 == 0;
    for (auto& byte : scales)
      byte = static_cast<std::uint8_t>(any ? random() : 100 + random() % 60);
    // Few rows of random codes lack a NaN; half of them are rid of theirs.
    if (random() % 2 == 0) {
      for (auto& byte : elements) byte = (byte & 0x7F) == 0x7F ? byte ^ 1 : byte;
    }
    Row out(sram, n), expected(sram, n);
    HbmCodec(type, sram, GetParam()).decode(elements.data(), scales.data(), first, n, out.bytes());
    HbmCodec(type, sram, SimdTarget::Portable)
        .decode(elements.data(), scales.data(), first, n, expected.bytes());
    ASSERT_EQ(out, expected);
  }

  static void expect_encode_equal(DataType type, const Row& row, std::size_t n) {
    std::vector<std::uint8_t> elements(n * type.width() / 8), scales(n / type.block);
    std::vector<std::uint8_t> expected_elements = elements, expected_scales = scales;
    HbmCodec(type, row.format, GetParam()).encode(row.bytes(), n, elements.data(), scales.data());
    HbmCodec(type, row.format, SimdTarget::Portable)
        .encode(row.bytes(), n, expected_elements.data(), expected_scales.data());
    ASSERT_EQ(scales, expected_scales);
    ASSERT_EQ(elements, expected_elements);
  }
};

TEST_P(SimdHbmCodec, DecodesAsThePortableOneFromAnyPlaceAndOfAnyLength) {
  std::mt19937 random(23);
  for (const ElementType element : kElements) {
    for (const ElementType sram : {kBf16, kFp32, kFp16}) {
      for (const std::uint32_t block : {8, 16, 24, 32, 64, 128, 256}) {
        const DataType type = DataType::mx(element, block);
        for (std::size_t n = 1; n < 300; n += 13) expect_decode_equal(type, sram, 0, n, random);
        for (int i = 0; i < 20; ++i) {
          expect_decode_equal(type, sram, block * (random() % 9), 1 + random() % 600, random);
          expect_decode_equal(type, sram, random() % 300, 1 + random() % 600, random);
        }
      }
    }
  }
}

TEST_P(SimdHbmCodec, DecodesEveryCodeWithEveryScaleAsThePortableOne) {
  for (const ElementType element : kElements) {
    const DataType type = DataType::mx(element, 8);
    const std::uint32_t codes = 1U << type.width();
    for (const ElementType sram : {kBf16, kFp32}) {
      const HbmCodec ours(type, sram, GetParam()), portable(type, sram, SimdTarget::Portable);
      for (unsigned scale = 0; scale < 256; ++scale) {
        std::vector<std::uint8_t> elements(512), scales(64, static_cast<std::uint8_t>(scale));
        for (std::uint32_t i = 0; i < 512; ++i) {
          // The second half without infinities and NaNs, so that no vector of it is left to the
          // slow path for them.
          const bool special = !std::isfinite(element_value(element, i % codes, true));
          const std::uint32_t code = i >= 256 && special ? 0 : i % codes;
          write_packed(elements.data(), std::uint64_t{i} * type.width(), type.width(), code);
        }
        Row out(sram, 512), expected(sram, 512);
        ours.decode(elements.data(), scales.data(), 0, 512, out.bytes());
        portable.decode(elements.data(), scales.data(), 0, 512, expected.bytes());
        ASSERT_EQ(out, expected) << "width " << type.width() << " scale " << scale;
      }
    }
  }
}

// Blocks of zeros among others, under scales that are beyond the range for numbers.
TEST_P(SimdHbmCodec, DecodesBlocksOfZerosUnderAnyScaleAsThePortableOne) {
  std::mt19937 random(29);
  constexpr std::array<std::uint8_t, 7> kFarScales = {0, 1, 9, 30, 245, 254, 255};
  for (const ElementType element : kElements) {
    for (const std::uint32_t block : {8, 16, 32, 128}) {
      const DataType type = DataType::mx(element, block);
      const std::size_t block_bytes = block * type.width() / 8;
      for (const ElementType sram : {kBf16, kFp32}) {
        const HbmCodec ours(type, sram, GetParam()), portable(type, sram, SimdTarget::Portable);
        for (int round = 0; round < 20; ++round) {
          std::vector<std::uint8_t> elements(1024 * type.width() / 8), scales(1024 / block, 127);
          for (std::size_t i = 0; i < elements.size(); ++i) {
            const std::size_t of = i / block_bytes;
            if (i % block_bytes == 0 && random() % 4 != 0) scales[of] = kFarScales[random() % 7];
            if (scales[of] == 127) elements[i] = static_cast<std::uint8_t>(random() % 0x77);
          }
          // One block that is not all zeros after all.
          if (round % 2 == 0) elements[random() % elements.size()] = 0x01;
          Row out(sram, 1024), expected(sram, 1024);
          ours.decode(elements.data(), scales.data(), 0, 1024, out.bytes());
          portable.decode(elements.data(), scales.data(), 0, 1024, expected.bytes());
          ASSERT_EQ(out, expected) << "block " << block;
        }
      }
    }
  }
}

TEST_P(SimdHbmCodec, EncodesAsThePortableOne) {
  for (const ElementType element : kElements) {
    for (const ElementType sram : {kBf16, kFp32, kFp16}) {
      for (const std::uint32_t block : {8, 16, 24, 32, 64, 128}) {
        for (const Draw draw : {Draw::Ordinary, Draw::SomeSpecial, Draw::AnyBits}) {
          for (std::size_t n = block; n <= 320; n += block) {
            Values values(static_cast<unsigned>(n), draw);
            expect_encode_equal(DataType::mx(element, block), random_row(sram, n, values), n);
          }
        }
      }
    }
  }
}

// Rows in which every bf16 stands once as the largest of a block of eight can have it: beside a
// first value of the given exponent, so that it is rounded as a normal, a subnormal and to nothing.
Row every_bf16_below(std::uint32_t exponent, ElementType sram) {
  Row row(sram, ((1U << 16) / 7 + 1) * 8);
  const auto put = [&](std::size_t at, std::uint32_t bits) {
    row.set(at, sram == kFp32 ? bits << 16 : bits);
  };
  std::uint32_t bits = 0;
  for (std::size_t at = 0; at < std::max(row.narrow.size(), row.wide.size()); ++at) {
    if (at % 8 == 0) {
      put(at, exponent << 7 | (at / 8 & 0x7F));
    } else {
      const bool larger = (bits >> 7 & 0xFF) > exponent;  // keep the first one the largest
      put(at, (larger ? (bits & 0x807F) | exponent << 7 : bits) & 0xFFFF);
      ++bits;
    }
  }
  return row;
}

TEST_P(SimdHbmCodec, EncodesEveryBf16AtEveryDistanceFromTheLargestAsThePortableOne) {
  for (const std::uint32_t exponent : {0, 1, 2, 3, 5, 8, 9, 16, 24, 25, 100, 127, 200, 253, 254}) {
    for (const ElementType sram : {kBf16, kFp32}) {
      const Row row = every_bf16_below(exponent, sram);
      for (const ElementType element : kElements) {
        expect_encode_equal(DataType::mx(element, 8), row,
                            std::max(row.narrow.size(), row.wide.size()));
      }
    }
  }
}

// A largest magnitude of every exponent and its neighbours give every scale there is.
TEST_P(SimdHbmCodec, FindsTheScaleOfEveryBf16AsThePortableOne) {
  for (const ElementType sram : {kBf16, kFp32}) {
    Row row(sram, std::size_t{1} << 19);
    for (std::uint32_t bits = 0; bits < 1U << 16; ++bits) {
      row.set(std::size_t{bits} * 8 + bits % 8, sram == kFp32 ? bits << 16 : bits);
    }
    for (const ElementType element : kElements) {
      expect_encode_equal(DataType::mx(element, 8), row, std::size_t{1} << 19);
    }
  }
}

// f32 that bf16 does not hold, about every midpoint between two elements.
TEST_P(SimdHbmCodec, EncodesFp32AboutMidpointsAsThePortableOne) {
  std::mt19937 random(41);
  Row row(kFp32, std::size_t{1} << 16);
  for (std::uint32_t i = 0; i < 1U << 16; ++i) {
    const auto below = static_cast<std::uint32_t>(random() % 14) << 23;
    const auto mantissa = static_cast<std::uint32_t>(random() % 32) << 18;
    const std::uint32_t midpoint = i % 8 == 0 ? 0x40000000 : (0x3F800000 - below) | mantissa;
    const std::uint32_t sign = static_cast<std::uint32_t>(random()) << 31;
    row.set(i, sign | (midpoint + static_cast<std::uint32_t>(random() % 3) - 1));
  }
  for (const ElementType element : kElements) {
    expect_encode_equal(DataType::mx(element, 8), row, std::size_t{1} << 16);
  }
}

// The portable kernels are what the others are compared with.
std::vector<SimdTarget> simd_targets() {
  std::vector<SimdTarget> targets = supported_simd_targets();
  targets.erase(targets.begin());
  return targets;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SimdMatrixKernels);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SimdVectorKernels);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SimdHbmCodec);
INSTANTIATE_TEST_SUITE_P(Targets, SimdMatrixKernels, ::testing::ValuesIn(simd_targets()),
                         target_name);
INSTANTIATE_TEST_SUITE_P(Targets, SimdVectorKernels, ::testing::ValuesIn(simd_targets()),
                         target_name);
INSTANTIATE_TEST_SUITE_P(Targets, SimdHbmCodec, ::testing::ValuesIn(simd_targets()), target_name);

TEST(SimdTarget, IsParsedByNameAndRefusedWithTheNamesThereAre) {
  EXPECT_EQ(parse_simd_target("portable"), SimdTarget::Portable);
  const auto unknown = parse_simd_target("mmx");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message, "this CPU has no SIMD target called 'mmx'");
  EXPECT_NE(unknown.error().hint.find("portable"), std::string::npos);
  for (const SimdTarget target : supported_simd_targets()) {
    EXPECT_EQ(parse_simd_target(simd_target_name(target)), target);
  }
}

}  // namespace
}  // namespace plena
