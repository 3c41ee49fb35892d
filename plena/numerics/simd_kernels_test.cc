// Every SIMD target this CPU has against the portable kernels, bit for bit: random and special
// values, every length and shape that takes another path. A NaN in an accumulator or a sum may be
// any NaN (only write-outs make them canonical); everything else must agree to the sign of zero.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plena/numerics/float_format.h"
#include "plena/numerics/matrix_kernels.h"
#include "plena/numerics/simd_target.h"
#include "plena/numerics/vector_kernels.h"

namespace plena {
namespace {

constexpr std::array kFormats = {kBf16, kFp32, kFp16, ElementType::fp(8, 15)};

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

class SimdMatrixKernels : public ::testing::TestWithParam<SimdTarget> {
 protected:
  static void expect_equal(ElementType format, const ProductShape& shape, Draw draw) {
    Values values(static_cast<unsigned>(shape.rows * 7 + shape.columns * 31 + shape.n), draw);
    const std::size_t a_stride = shape.n + 3;
    const std::size_t stride = std::max(shape.columns, shape.n) + 5;
    const std::size_t out_stride = shape.columns + 1;
    std::vector<float> a(shape.rows * a_stride), start(shape.rows * out_stride);
    for (float& x : a) x = values(kBf16);
    for (float& x : start) x = values(kFp32);
    const Row weights = random_row(format, std::max(shape.columns, shape.n) * stride, values);
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
    for (std::size_t rows = 1; rows <= 9; ++rows) {
      expect_equal(format, {rows, 71, 8, 4}, Draw::Ordinary);
    }
  }
}

TEST_P(SimdMatrixKernels, EqualThePortableOnesForEveryNumberOfBlocks) {
  for (const ElementType format : kFormats) {
    for (std::size_t blocks = 1; blocks <= 37; ++blocks) {
      for (const std::size_t blen : {1, 3, 4}) {
        expect_equal(format, {1, 64, blocks * blen, blen}, Draw::Ordinary);
        expect_equal(format, {4, 36, blocks * blen, blen}, Draw::Ordinary);
      }
      expect_equal(format, {5, 33, blocks * 16, 16}, Draw::Ordinary);
    }
  }
}

TEST_P(SimdMatrixKernels, EqualThePortableOnesOnSpecialValues) {
  for (const ElementType format : kFormats) {
    for (const Draw draw : {Draw::SomeSpecial, Draw::AnyBits}) {
      for (const std::size_t blen : {4, 8}) {
        expect_equal(format, {1, 64, 64, blen}, draw);
        expect_equal(format, {4, 4, 64, blen}, draw);
        expect_equal(format, {5, 100, 24, blen}, draw);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SimdMatrixKernels, ::testing::ValuesIn(supported_simd_targets()),
                         target_name);

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
