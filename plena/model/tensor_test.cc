// Views of tensors: which elements they show. The block types have block_formats_test.
#include "plena/model/tensor.h"

#include <array>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>

namespace plena {
namespace {

using ::testing::ElementsAre;

constexpr std::array<float, 12> kElements{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

Tensor matrix() {
  return Tensor::f32(kElements, 4, 3);
}

TEST(Tensor, IsAbsentUntilItIsGiven) {
  EXPECT_FALSE(Tensor());
  EXPECT_TRUE(matrix());
}

TEST(Tensor, ShowsTheRowsOfASlice) {
  EXPECT_THAT(matrix().slice_rows(1, 2).values(), ElementsAre(3, 4, 5, 6, 7, 8));
}

TEST(Tensor, TakesInterleavedMatricesApart) {
  EXPECT_THAT(matrix().every_row(0, 2).values(), ElementsAre(0, 1, 2, 6, 7, 8));
  EXPECT_THAT(matrix().every_row(1, 2).values(), ElementsAre(3, 4, 5, 9, 10, 11));
}

TEST(Tensor, TurnsRowsIntoColumns) {
  const Tensor turned = matrix().transposed();
  EXPECT_EQ(turned.rows(), 3);
  EXPECT_EQ(turned.columns(), 4);
  EXPECT_THAT(turned.values(), ElementsAre(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11));
  std::array<float, 2> part{};
  turned.read(2, 1, part);
  EXPECT_THAT(part, ElementsAre(5, 8));
}

TEST(Tensor, TakesTheColumnsOfATransposedMatrixApart) {
  const Tensor odd = matrix().transposed().every_row(0, 2);
  EXPECT_THAT(odd.values(), ElementsAre(0, 3, 6, 9, 2, 5, 8, 11));
}

TEST(Tensor, AddsAConstantToWhatItDecodes) {
  EXPECT_THAT(matrix().slice_rows(0, 1).plus(1).values(), ElementsAre(1, 2, 3));
}

TEST(Tensor, DecodesHalvesAndBrainFloats) {
  // 1, -2, the smallest subnormal, infinity.
  constexpr std::array<std::uint8_t, 8> kHalves{0x00, 0x3C, 0x00, 0xC0, 0x01, 0x00, 0x00, 0x7C};
  EXPECT_THAT(Tensor::stored(StoredType::F16, kHalves, 1, 4).values(),
              ElementsAre(1.0F, -2.0F, 0x1p-24F, INFINITY));
  constexpr std::array<std::uint8_t, 4> kBrainFloats{0x80, 0x3F, 0x49, 0x40};
  EXPECT_THAT(Tensor::stored(StoredType::BF16, kBrainFloats, 1, 2).values(),
              ElementsAre(1.0F, 3.140625F));
}

TEST(Tensor, ReadsMxfp4LowNibbleFirst) {
  std::array<std::uint8_t, 16> block{};
  block[0] = 0xF2;  // 1, then -6
  const std::array<std::uint8_t, 1> scale{128};
  const auto values = Tensor::mxfp4(block, scale, 1, 32).values();
  EXPECT_EQ(values[0], 2.0F);
  EXPECT_EQ(values[1], -12.0F);
}

TEST(Tensor, DrawsTheSameElementsInAnyOrder) {
  const Tensor drawn = Tensor::normal(7, 0.5F, 64, 64);
  const auto all = drawn.values();
  std::array<float, 3> part{};
  drawn.read(5, 10, part);
  EXPECT_THAT(part, ElementsAre(all[330], all[331], all[332]));
  drawn.read(5, 11, part);
  EXPECT_THAT(part, ElementsAre(all[331], all[332], all[333]));
  EXPECT_EQ(drawn.transposed().values()[64 * 3 + 2], all[64 * 2 + 3]);
  const double n = static_cast<double>(all.size());
  const double mean = std::accumulate(all.begin(), all.end(), 0.0) / n;
  const double squares = std::inner_product(all.begin(), all.end(), all.begin(), 0.0) / n;
  EXPECT_NEAR(mean, 0, 0.03);  // four standard errors
  EXPECT_NEAR(std::sqrt(squares), 0.5, 0.03);
}

}  // namespace
}  // namespace plena
