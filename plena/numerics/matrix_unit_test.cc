// The CPU's matrix unit against the portable dot products: the same bits, or a refusal.
#include "plena/numerics/matrix_unit.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "plena/numerics/float_format.h"
#include "plena/numerics/matrix_kernels.h"
#include "plena/numerics/scratch.h"

namespace plena {
namespace {

constexpr std::size_t kBlen = 4;

// Values of exponents -spread to spread, some of them 0.
std::vector<std::uint16_t> some_values(std::mt19937& random, std::size_t count, int spread) {
  std::vector<std::uint16_t> values(count);
  for (std::uint16_t& value : values) {
    const auto bits = static_cast<std::uint32_t>(random());
    const auto exponent =
        static_cast<std::uint32_t>(127 - spread + static_cast<int>(bits % (2 * spread + 1)));
    value = static_cast<std::uint16_t>((bits >> 16 & 0x8000) | exponent << 7 | (bits >> 20 & 0x7F));
    if (random() % 8 == 0) value &= 0x8000;
  }
  return values;
}

class MatrixUnitOf : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    for (const SimdTarget target : supported_simd_targets()) {
      if (matrix_unit(kBf16, n, kBlen, target) != nullptr)
        unit = matrix_unit(kBf16, n, kBlen, target);
    }
    if (unit == nullptr) GTEST_SKIP() << "this CPU has no matrix unit";
  }

  // Whether the unit took the product; what it computed agrees with the portable kernel.
  bool takes(const std::vector<std::uint16_t>& a, std::size_t rows,
             const std::vector<std::uint16_t>& weights, std::size_t columns) {
    const std::size_t whole = (rows + 15) / 16 * 16;
    std::vector<CacheLine> packed_rows(MatrixUnit::packed_bytes(rows, n) / 64);
    std::vector<CacheLine> packed_weights(MatrixUnit::packed_bytes(columns, n) / 64);
    unit->pack_rows(a.data(), n, rows, n, packed_rows.data());
    unit->pack_weights(weights.data(), columns, n, packed_weights.data());
    std::vector<float> out(columns * whole, 0.75F);
    const bool taken = unit->product(packed_rows.data(), whole, packed_weights.data(), columns, n,
                                     out.data(), whole);

    std::vector<float> wide(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) wide[i] = bf16_to_f32(a[i]);
    std::vector<float> expected(rows * columns, 0.75F);
    if (taken) {
      portable_matrix_kernels(kBf16).product_transposed(
          {rows, columns, n, kBlen}, wide.data(), n, weights.data(), n, expected.data(), columns);
    }
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(out[c * whole + r]),
                  std::bit_cast<std::uint32_t>(expected[r * columns + c]))
            << "row " << r << ", column " << c;
      }
    }
    return taken;
  }

  std::size_t n = GetParam();
  const MatrixUnit* unit = nullptr;
  std::mt19937 random{1};
};

TEST_P(MatrixUnitOf, CommonValuesComeOutAsThePortableProductHasThem) {
  for (const int spread : {0, 3, 12, 24}) {
    for (const std::size_t rows : {16, 20, 64}) {
      const auto a = some_values(random, rows * n, spread);
      const auto weights = some_values(random, 32 * n, spread);
      EXPECT_TRUE(takes(a, rows, weights, 32)) << spread;
    }
  }
}

TEST_P(MatrixUnitOf, ValuesFarApartAreRightOrRefused) {
  int taken = 0, refused = 0;
  for (int turn = 0; turn < 40; ++turn) {
    auto a = some_values(random, 16 * n, 40);
    auto weights = some_values(random, 16 * n, 40);
    a[random() % a.size()] = static_cast<std::uint16_t>(random());
    weights[random() % weights.size()] = static_cast<std::uint16_t>(random());
    ++(takes(a, 16, weights, 16) ? taken : refused);
  }
  EXPECT_GT(taken, 0);
  EXPECT_GT(refused, 0);
}

TEST_P(MatrixUnitOf, WhatTheUnitWouldFlushIsRefused) {
  const std::vector<std::uint16_t> ones(16 * n, 0x3F80);
  for (const int odd : {0x0001, 0x007F, 0x8001, 0x7F80, 0xFF80, 0x7FC0}) {
    std::vector<std::uint16_t> values = ones;
    values[n + 5] = static_cast<std::uint16_t>(odd);
    EXPECT_FALSE(takes(values, 16, ones, 16));
    EXPECT_FALSE(takes(ones, 16, values, 16));
  }
  // 2^-64 squared is below the smallest normal number, 2^-56 squared with both last bits is not.
  const std::vector<std::uint16_t> small(16 * n, 0x1F80), less(16 * n, 0x2380);
  EXPECT_FALSE(takes(small, 16, small, 16));
  EXPECT_TRUE(takes(less, 16, less, 16));
  const std::vector<std::uint16_t> large(16 * n, 0x5F80);
  EXPECT_FALSE(takes(large, 16, large, 16));
}

TEST_P(MatrixUnitOf, ZerosGiveZeros) {
  const std::vector<std::uint16_t> zeros(16 * n, 0x8000), ones(16 * n, 0xBF80);
  EXPECT_TRUE(takes(zeros, 16, ones, 16));
  EXPECT_TRUE(takes(ones, 16, zeros, 16));
}

INSTANTIATE_TEST_SUITE_P(Lengths, MatrixUnitOf, testing::Values(64, 128, 256),
                         [](const auto& test) { return "N" + std::to_string(test.param); });

TEST(MatrixUnit, ThereIsNoneForOtherShapes) {
  for (const SimdTarget target : supported_simd_targets()) {
    EXPECT_EQ(matrix_unit(kFp32, 64, 4, target), nullptr);
    EXPECT_EQ(matrix_unit(kBf16, 64, 8, target), nullptr);
    EXPECT_EQ(matrix_unit(kBf16, 32, 4, target), nullptr);
    EXPECT_EQ(matrix_unit(kBf16, 192, 4, target), nullptr);
  }
}

}  // namespace
}  // namespace plena
