// Vector and matrix kernels: the portable ones against formulations written differently here.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "plena/numerics/float_format.h"
#include "plena/numerics/matrix_kernels.h"
#include "plena/numerics/vector_kernels.h"

namespace plena {
namespace {

constexpr ElementType kFormats[] = {kBf16, kFp32, kFp16, ElementType::fp(4, 3),
                                    ElementType::fp(8, 15)};

struct Row {
  ElementType format;
  std::vector<std::uint32_t> words;  // storage, 2 or 4 bytes an element

  Row(ElementType f, std::size_t n) : format(f), words(n + 1) {}
  [[nodiscard]] std::uint32_t get(std::size_t i) const {
    if (storage_bytes(format) == 4) return words[i];
    std::uint16_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const char*>(words.data()) + 2 * i, 2);
    return bits;
  }
  void set(std::size_t i, std::uint32_t bits) {
    const auto narrow = static_cast<std::uint16_t>(bits);
    char* at = reinterpret_cast<char*>(words.data()) + storage_bytes(format) * i;
    if (storage_bytes(format) == 4) {
      std::memcpy(at, &bits, 4);
    } else {
      std::memcpy(at, &narrow, 2);
    }
  }
};

Row random_row(ElementType format, std::size_t n, std::mt19937& random) {
  Row row(format, n);
  const std::uint32_t mask = format.width() == 32 ? 0xFFFFFFFF : (1U << format.width()) - 1;
  for (std::size_t i = 0; i < n; ++i) row.set(i, static_cast<std::uint32_t>(random()) & mask);
  return row;
}

// a + b, a - b and a * b of two f32, rounded once: exact or correctly rounded in double, where 53
// bits are enough for one more rounding to f32 to be harmless.
float in_f32(double exact) {
  return static_cast<float>(exact);
}

TEST(PortableVectorKernels, ArithmeticRoundsToF32AndThenToTheFormat) {
  std::mt19937 random(3);
  for (const ElementType format : kFormats) {
    const VectorKernels& kernels = portable_vector_kernels(format);
    constexpr std::size_t kLanes = 2000;
    const Row a = random_row(format, kLanes, random);
    const Row b = random_row(format, kLanes, random);
    Row sum(format, kLanes), difference(format, kLanes), product(format, kLanes);
    kernels.add(a.words.data(), b.words.data(), sum.words.data(), kLanes);
    kernels.subtract(a.words.data(), b.words.data(), difference.words.data(), kLanes);
    kernels.multiply(a.words.data(), b.words.data(), product.words.data(), kLanes);
    for (std::size_t i = 0; i < kLanes; ++i) {
      const double x = decode_fp(format, a.get(i));
      const double y = decode_fp(format, b.get(i));
      ASSERT_EQ(sum.get(i), encode_fp(format, in_f32(x + y)));
      ASSERT_EQ(difference.get(i), encode_fp(format, in_f32(x - y)));
      ASSERT_EQ(product.get(i), encode_fp(format, in_f32(x * y)));
    }
  }
}

TEST(PortableVectorKernels, ScalarFormsTakeTheirOperandsInTheNamedOrder) {
  for (const ElementType format : kFormats) {
    const VectorKernels& kernels = portable_vector_kernels(format);
    Row a(format, 3);
    const float inputs[] = {3, -2, std::numeric_limits<float>::quiet_NaN()};
    for (std::size_t i = 0; i < 3; ++i) a.set(i, encode_fp(format, inputs[i]));
    const std::uint32_t nan = canonical_nan(format);
    const auto expect = [&](VectorKernels::WithScalar kernel, float first, float second,
                            std::uint32_t third) {
      Row out(format, 3);
      kernel(a.words.data(), 2.0F, out.words.data(), 3);
      EXPECT_EQ(out.get(0), encode_fp(format, first));
      EXPECT_EQ(out.get(1), encode_fp(format, second));
      EXPECT_EQ(out.get(2), third);
    };
    expect(kernels.add_scalar, 5, 0, nan);
    expect(kernels.subtract_scalar, 1, -4, nan);
    expect(kernels.subtract_from_scalar, -1, 4, nan);
    expect(kernels.multiply_scalar, 6, -4, nan);
    expect(kernels.max_scalar, 3, 2, encode_fp(format, 2.0F));
    expect(kernels.min_scalar, 2, -2, encode_fp(format, 2.0F));
  }
}

TEST(PortableVectorKernels, ElementaryFunctionsAreThoseOfTheScalarUnit) {
  std::mt19937 random(5);
  for (const ElementType format : kFormats) {
    const Row a = random_row(format, 999, random);
    Row exp(format, 999), reciprocal(format, 999);
    portable_vector_kernels(format).exp(a.words.data(), exp.words.data(), 999);
    portable_vector_kernels(format).reciprocal(a.words.data(), reciprocal.words.data(), 999);
    for (std::size_t i = 0; i < 999; ++i) {
      ASSERT_EQ(exp.get(i), exp_fp(format, a.get(i)));
      ASSERT_EQ(reciprocal.get(i), reciprocal_fp(format, a.get(i)));
    }
  }
}

TEST(PortableVectorKernels, CanonicalCopiesAllButNans) {
  for (const ElementType format : kFormats) {
    const std::uint32_t infinity = ((1U << format.exponent) - 1) << format.mantissa;
    const std::uint32_t sign = 1U << (format.exponent + format.mantissa);
    const std::uint32_t in[] = {0,
                                sign,
                                1,
                                sign | (infinity - 1),
                                infinity,
                                sign | infinity,
                                infinity + 1,
                                sign | (sign - 1)};
    Row row(format, 8), out(format, 8);
    for (std::size_t i = 0; i < 8; ++i) row.set(i, in[i]);
    portable_vector_kernels(format).canonical(row.words.data(), out.words.data(), 8);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(out.get(i), i < 6 ? in[i] : canonical_nan(format));
    }
  }
}

TEST(PortableVectorKernels, SumIsTheBalancedTreeAndMaximumIgnoresNans) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal(0, 5);
  for (const ElementType format : kFormats) {
    for (std::size_t n = 1; n <= 130; ++n) {
      Row row(format, n);
      std::vector<float> values(n);
      float largest = -std::numeric_limits<float>::infinity();
      for (std::size_t i = 0; i < n; ++i) {
        row.set(i, encode_fp(format, normal(random)));
        values[i] = decode_fp(format, row.get(i));
        largest = std::fmax(largest, values[i]);
      }
      EXPECT_EQ(portable_vector_kernels(format).sum(row.words.data(), n),
                tree_sum(values.data(), n));
      if (n % 3 == 0 && n > 3) row.set(n / 2, canonical_nan(format));
      if (n % 3 == 0 && n > 3) continue;
      EXPECT_EQ(portable_vector_kernels(format).maximum(row.words.data(), n), largest);
    }
    Row row(format, 4);
    for (std::size_t i = 0; i < 4; ++i) row.set(i, canonical_nan(format));
    EXPECT_TRUE(std::isnan(portable_vector_kernels(format).maximum(row.words.data(), 4)));
    row.set(2, encode_fp(format, -1.0F));
    EXPECT_EQ(portable_vector_kernels(format).maximum(row.words.data(), 4), -1);
  }
}

// a * b + c rounded once to f32, by way of a double rounded to odd.
float fused(float a, float b, float c) {
  const double product = static_cast<double>(a) * b;  // exact
  const double sum = product + c;
  const double product_part = sum - c;
  const double error = (product - product_part) + (c - (sum - product_part));
  if (std::isfinite(sum) && error != 0 && (std::bit_cast<std::uint64_t>(sum) & 1) == 0) {
    return static_cast<float>(std::nextafter(sum, error > 0 ? HUGE_VAL : -HUGE_VAL));
  }
  return static_cast<float>(sum);
}

// Semantics 4.5 level by level, with every intermediate level kept.
float dot_by_levels(const std::vector<float>& v, const std::vector<float>& w, std::size_t blen) {
  std::vector<float> level;
  for (std::size_t first = 0; first < v.size(); first += blen) {
    float sum = 0;
    for (std::size_t k = first; k < first + blen; ++k) sum = fused(v[k], w[k], sum);
    level.push_back(sum);
  }
  while (level.size() > 1) {
    std::vector<float> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(level[i] + level[i + 1]);
    if (level.size() % 2 != 0) next.push_back(level.back());
    level = next;
  }
  return level[0];
}

class PortableMatrixKernels : public ::testing::TestWithParam<ProductShape> {};

TEST_P(PortableMatrixKernels, KeepTheOrderOfTheFlattenedArray) {
  const ProductShape shape = GetParam();
  std::mt19937 random(static_cast<unsigned>(shape.n * 31 + shape.columns));
  std::normal_distribution<float> normal(0, 1);
  for (const ElementType format : kFormats) {
    const std::size_t stride = shape.columns + 3;
    const std::size_t transposed_stride = shape.n + 2;
    Row weights(format, shape.n * stride);
    Row transposed(format, shape.columns * transposed_stride);
    std::vector<float> a(shape.rows * (shape.n + 1)), out(shape.rows * (shape.columns + 2));
    for (float& x : a) x = bf16_to_f32(f32_to_bf16(normal(random)));
    for (float& x : out) x = normal(random);
    for (std::size_t k = 0; k < shape.n; ++k) {
      for (std::size_t c = 0; c < shape.columns; ++c) {
        const std::uint32_t bits = encode_fp(format, normal(random));
        weights.set(k * stride + c, bits);
        transposed.set(c * transposed_stride + k, bits);
      }
    }
    std::vector<float> expected = out, by_transposed = out;
    for (std::size_t r = 0; r < shape.rows; ++r) {
      for (std::size_t c = 0; c < shape.columns; ++c) {
        std::vector<float> v(shape.n), w(shape.n);
        for (std::size_t k = 0; k < shape.n; ++k) {
          v[k] = a[r * (shape.n + 1) + k];
          w[k] = decode_fp(format, weights.get(k * stride + c));
        }
        expected[r * (shape.columns + 2) + c] += dot_by_levels(v, w, shape.blen);
      }
    }
    const MatrixKernels& kernels = portable_matrix_kernels(format);
    kernels.product(shape, a.data(), shape.n + 1, weights.words.data(), stride, out.data(),
                    shape.columns + 2);
    kernels.product_transposed(shape, a.data(), shape.n + 1, transposed.words.data(),
                               transposed_stride, by_transposed.data(), shape.columns + 2);
    EXPECT_EQ(out, expected);
    EXPECT_EQ(by_transposed, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PortableMatrixKernels,
                         ::testing::Values(ProductShape{1, 64, 64, 4}, ProductShape{4, 4, 64, 4},
                                           ProductShape{3, 5, 44, 4}, ProductShape{2, 7, 15, 5},
                                           ProductShape{1, 3, 7, 1}, ProductShape{2, 9, 16, 16},
                                           ProductShape{1, 1, 1, 1}, ProductShape{5, 17, 26, 2}));

// 2^24 + 1 in f32 is 2^24; with the same five terms in another order it would be 2^24 + 2.
TEST(PortableMatrixKernelsOnPaper, BlocksAreSummedInOrderBeforeTheTree) {
  const std::vector<float> ones(8, 1.0F);
  const auto dot = [&](std::vector<float> weights, std::size_t blen) {
    float out = 0;
    portable_matrix_kernels(kFp32).product({1, 1, weights.size(), blen}, ones.data(), 8,
                                           weights.data(), 1, &out, 1);
    return out;
  };
  EXPECT_EQ(dot({0x1p24F, 1, 1, 0}, 4), 0x1p24F);
  EXPECT_EQ(dot({1, 1, 0x1p24F, 0}, 4), 0x1p24F + 2);
  EXPECT_EQ(dot({0x1p24F, 1, 1, 1}, 2), 0x1p24F + 2);
  EXPECT_EQ(dot({0x1p24F, 1, 1, 1}, 1), 0x1p24F + 2);
  EXPECT_EQ(dot({0x1p24F, 0, 1, 0, 1, 0}, 2), 0x1p24F);  // (b0 + b1) + b2
  EXPECT_EQ(dot({-0.0F, -0.0F}, 1), 0);
}

TEST(PortableMatrixKernelsOnPaper, ProductsAreFused) {
  const float a[] = {1 + 0x1p-12F, 1.0F};
  const float w[] = {1 + 0x1p-12F, -1.0F};
  float out = 0;
  // Backwards, so that the inexact product is the second term: -1 + (1 + 2^-12)^2.
  const float a_backwards[] = {a[1], a[0]};
  const float w_backwards[] = {w[1], w[0]};
  portable_matrix_kernels(kFp32).product({1, 1, 2, 2}, a_backwards, 2, w_backwards, 1, &out, 1);
  EXPECT_EQ(out, 0x1p-11F + 0x1p-24F);
}

}  // namespace
}  // namespace plena
