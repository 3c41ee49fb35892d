// Offline quantisation against arithmetic on paper and against trying every scale there is.
#include "plena/numerics/scale_search.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "plena/numerics/element.h"
#include "plena/numerics/hbm_codec.h"

namespace plena {
namespace {

struct Encoded {
  std::vector<std::uint8_t> elements, scales;
};

Encoded search(DataType type, const std::vector<float>& values) {
  Encoded encoded{std::vector<std::uint8_t>(values.size() * type.width() / 8),
                  std::vector<std::uint8_t>(values.size() / type.block)};
  encode_with_least_error(type, values.data(), values.size(), encoded.elements.data(),
                          encoded.scales.data());
  return encoded;
}

std::vector<float> decoded(DataType type, const Encoded& encoded, std::size_t n) {
  std::vector<float> values(n);
  HbmCodec(type, kFp32).decode(encoded.elements.data(), encoded.scales.data(), 0, n, values.data());
  return values;
}

double squared_error(const float* values, const float* approximations, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double error = double{values[i]} - double{approximations[i]};
    sum += error * error;
  }
  return sum;
}

// The least squared error of a block over all 255 scales.
double least_error(DataType type, const float* block) {
  double least = std::numeric_limits<double>::infinity();
  for (int exponent = -127; exponent <= 127; ++exponent) {
    double sum = 0;
    for (std::size_t i = 0; i < type.block; ++i) {
      const auto code = round_to_block_element(type.element, std::ldexp(block[i], -exponent));
      const double error = block[i] - std::ldexp(element_value(type.element, code, true), exponent);
      sum += error * error;
    }
    least = std::min(least, sum);
  }
  return least;
}

TEST(ScaleSearch, TakesTheNextScaleWhereTheFloorRuleSaturates) {
  // E2M1 reaches 6. The floor rule gives 7.5 the scale 1: 6, an error of 1.5. With scale 2 it is
  // 3.75, next to 4: 8, an error of 0.5.
  const DataType type = DataType::mx(kE2M1, 8);
  const std::vector<float> values(8, 7.5F);

  const Encoded encoded = search(type, values);

  EXPECT_EQ(encoded.scales[0], 127 + 1);
  EXPECT_EQ(decoded(type, encoded, 8), std::vector<float>(8, 8.0F));
}

TEST(ScaleSearch, ClipsTheLargestWhereTheOthersGainMore) {
  // The floor rule gives 4.1 the scale 1, elements 0, 0.5, 1 … 6: 4.1 -> 4 and 31 times 0.25 -> 0
  // (tie to even), an error of 0.01 + 31/16 = 1.95. Scale 1/2 has 0.25, and 4.1 -> 3 costs 1.21.
  // Scale 1/4 would cost 2.6^2.
  const DataType type = DataType::mx(kE2M1, 32);
  std::vector<float> values(32, 0.25F);
  values[0] = 4.1F;

  const Encoded encoded = search(type, values);

  EXPECT_EQ(encoded.scales[0], 127 - 1);
  values[0] = 3;
  EXPECT_EQ(decoded(type, encoded, 32), values);
}

TEST(ScaleSearch, FindsTheLeastErrorOfAllScales) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const ElementType element :
       {kE4M3, kE5M2, kE3M2, kE2M3, kE2M1, ElementType::integer(8), ElementType::integer(4)}) {
    const DataType type = DataType::mx(element, 8);
    std::vector<float> values(8 * 50);
    for (float& value : values) value = normal(random);
    for (std::size_t i = 0; i < values.size(); i += 16) values[i] *= 20;  // outliers

    const auto approximations = decoded(type, search(type, values), values.size());

    for (std::size_t i = 0; i < values.size(); i += 8) {
      EXPECT_DOUBLE_EQ(squared_error(&values[i], &approximations[i], 8),
                       least_error(type, &values[i]))
          << type.name() << ", block " << i / 8;
    }
  }
}

TEST(ScaleSearch, TreatsZeroAndNonFiniteBlocksAsTheMachineDoes) {
  const DataType type = DataType::mx(kE4M3, 8);
  std::vector<float> values(24);
  values[9] = std::numeric_limits<float>::infinity();
  values[23] = std::numeric_limits<float>::quiet_NaN();
  Encoded floor_rule{std::vector<std::uint8_t>(24), std::vector<std::uint8_t>(3)};
  HbmCodec(type, kFp32)
      .encode(values.data(), 24, floor_rule.elements.data(), floor_rule.scales.data());

  const Encoded encoded = search(type, values);

  EXPECT_EQ(encoded.elements, floor_rule.elements);
  EXPECT_EQ(encoded.scales, floor_rule.scales);
}

TEST(ScaleSearch, StaysInTheRangeOfScales) {
  const DataType type = DataType::mx(kE4M3, 8);
  const float tiny = std::numeric_limits<float>::denorm_min();  // 2^-149
  const float huge = std::numeric_limits<float>::max();
  const std::vector<float> values = {tiny, 0, 0, 0, 0, 0, 0, 0, huge, 0, 0, 0, 0, 0, 0, 0};

  const auto approximations = decoded(type, search(type, values), 16);

  EXPECT_EQ(approximations[0], 0);                        // the least value is 2^-9 * 2^-127
  EXPECT_EQ(approximations[8], std::ldexp(448.0F, 119));  // 256 * 2^120 would be infinite
}

}  // namespace
}  // namespace plena
