#include "plena/compiler/weight_stream.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plena {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<float> decoded(const QuantisedTensor& tensor, DataType type, std::size_t n) {
  std::vector<float> values(n);
  HbmCodec(type, kFp32).decode(tensor.elements.data(), tensor.scales.data(), 0, n, values.data());
  return values;
}

// W = [[1, 2, 3], [4, 5, 6]], tiles of 2: one output tile, two input tiles, the last half empty.
TEST(AppendTiles, StoresRowsOfOutputsAndPadsWithZeros) {
  const std::vector<float> w = {1, 2, 3, 4, 5, 6};
  const LaneMap outputs = dense_lanes(2, 2);
  const LaneMap inputs = dense_lanes(3, 2);
  const DataType fp32 = DataType::plain(kFp32);
  Quantiser stream(fp32);
  append_tiles(stream, {Matrix{.weight = Tensor::f32(w, 2, 3)}, outputs, inputs}, 2);
  const auto tensor = std::move(stream).finish();
  EXPECT_THAT(decoded(tensor, fp32, 8), ElementsAre(1, 2, 4, 5, 3, 0, 6, 0));
  EXPECT_TRUE(tensor.scales.empty());
}

TEST(AppendTiles, FoldsGainAndFactorIntoTheColumns) {
  const std::vector<float> w = {1, 2, 3, 4};
  const Matrix matrix{
      .weight = Tensor::f32(w, 2, 2),
      .input_gain = std::make_shared<const std::vector<float>>(std::vector<float>{10, 100}),
      .factor = -1.0F};
  const LaneMap lanes = dense_lanes(2, 2);
  const DataType fp32 = DataType::plain(kFp32);
  Quantiser stream(fp32);
  append_tiles(stream, {matrix, lanes, lanes}, 2);
  EXPECT_THAT(decoded(std::move(stream).finish(), fp32, 4), ElementsAre(-10, -200, -30, -400));
}

// T = [[1, 1], [1, -1]] / sqrt(2) behind signs: T W T^T has W's rows and columns turned.
TEST(AppendTiles, TurnsInputsBehindTheGainAndOutputs) {
  const std::vector<float> w = {1, 2, 3, 4};
  const Hadamard turn{2};
  const Matrix matrix{
      .weight = Tensor::f32(w, 2, 2),
      .input_gain = std::make_shared<const std::vector<float>>(std::vector<float>{10, 100}),
      .input_turn = turn,
      .output_turn = turn};
  const LaneMap lanes = dense_lanes(2, 2);
  const DataType fp32 = DataType::plain(kFp32);
  Quantiser stream(fp32);
  append_tiles(stream, {matrix, lanes, lanes}, 2);
  std::vector<float> expected = {10, 200, 30, 400};
  turn.turn(std::span(expected).first(2));
  turn.turn(std::span(expected).last(2));
  turn.turn_columns(expected, 2);
  const auto actual = decoded(std::move(stream).finish(), fp32, 4);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(actual[i], expected[i], 1e-4F) << i;
}

// Blocks may be longer than what is appended at a time; the result is that of one long row.
TEST(Quantiser, CarriesBlocksOverFromOneAppendToTheNext) {
  const DataType type = DataType::mx(kE2M1, 32);
  std::vector<float> values(96);
  std::iota(values.begin(), values.end(), -20.0F);
  Quantiser pieces(type);
  for (std::size_t i = 0; i < values.size(); i += 24) {
    pieces.append(std::span(values).subspan(i, 24));
  }
  EXPECT_EQ(pieces.count(), 96U);
  const auto tensor = std::move(pieces).finish();

  std::vector<std::uint8_t> elements(48);
  std::vector<std::uint8_t> scales(3);
  HbmCodec(type, kFp32).encode(values.data(), values.size(), elements.data(), scales.data());
  EXPECT_THAT(tensor.elements, ElementsAreArray(elements));
  EXPECT_THAT(tensor.scales, ElementsAreArray(scales));
}

TEST(Quantiser, PadsTheEndToAWholeBlock) {
  Quantiser stream(DataType::mx(kE4M3, 8));
  stream.append(std::vector<float>{1, 2, 3});
  const auto tensor = std::move(stream).finish();
  EXPECT_EQ(tensor.elements.size(), 8U);
  EXPECT_EQ(tensor.scales.size(), 1U);
}

}  // namespace
}  // namespace plena
