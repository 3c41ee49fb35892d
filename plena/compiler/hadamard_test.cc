#include "plena/compiler/hadamard.h"

#include <cmath>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plena {
namespace {

std::vector<float> ramp(std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), -3.0F);
  return values;
}

float dot(std::span<const float> a, std::span<const float> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0F);
}

TEST(Hadamard, SpreadsOneElementEvenlyOverItsBlock) {
  std::vector<float> vector(8, 0.0F);
  vector[5] = 1.0F;
  Hadamard{4}.turn(vector);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(std::abs(vector[i]), i < 4 ? 0.0F : 0.5F) << i;
}

TEST(Hadamard, LeavesProductsOfTwoTurnedVectorsAsTheyWere) {
  std::vector<float> a = ramp(32);
  std::vector<float> b = {a.rbegin(), a.rend()};
  b[7] = 100;
  const float before = dot(a, b);
  Hadamard{16}.turn(a);
  Hadamard{16}.turn(b);
  EXPECT_NEAR(dot(a, b), before, 1e-3F * std::abs(before));
}

TEST(Hadamard, KeepsAMeanFromGatheringInOneElement) {
  std::vector<float> ones(64, 1.0F);
  Hadamard{64}.turn(ones);
  const auto largest = std::ranges::max_element(ones, {}, [](float x) { return std::abs(x); });
  EXPECT_LT(std::abs(*largest), 4.0F);  // without signs it is 8
}

TEST(Hadamard, TurnsEachColumnOfAMatrixAsAVector) {
  constexpr std::size_t kRows = 8;
  constexpr std::size_t kColumns = 3;
  std::vector<float> matrix = ramp(kRows * kColumns);
  std::vector<std::vector<float>> columns(kColumns, std::vector<float>(kRows));
  for (std::size_t c = 0; c < kColumns; ++c) {
    for (std::size_t r = 0; r < kRows; ++r) columns[c][r] = matrix[r * kColumns + c];
    Hadamard{4}.turn(columns[c]);
  }
  Hadamard{4}.turn_columns(matrix, kColumns);
  for (std::size_t c = 0; c < kColumns; ++c) {
    for (std::size_t r = 0; r < kRows; ++r) {
      EXPECT_EQ(matrix[r * kColumns + c], columns[c][r]) << r << "," << c;
    }
  }
}

TEST(WidestHadamard, IsTheLargestPowerOfTwoThatDividesVectorAndRow) {
  EXPECT_EQ(widest_hadamard(576, 64).block, 64U);
  EXPECT_EQ(widest_hadamard(48, 64).block, 16U);
  EXPECT_EQ(widest_hadamard(4096, 512).block, 512U);
  EXPECT_FALSE(widest_hadamard(7, 64));
}

}  // namespace
}  // namespace plena
