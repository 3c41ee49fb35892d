#include "plena/compiler/row_table.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plena {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kRows = 2;
constexpr std::uint64_t kEntries = 40;

// Cosines and sines of an entry, on tiles of 64.
const TableContents kAngles{.name = "angles",
                            .entries = kEntries,
                            .rows = kRows,
                            .fill = [](std::uint64_t entry, std::span<double> rows) {
                              for (std::size_t lane = 0; lane < 64; ++lane) {
                                const double angle = static_cast<double>(entry * (lane + 1)) / 8;
                                rows[lane] = std::cos(angle);
                                rows[64 + lane] = std::sin(angle);
                              }
                            }};

// The farthest that the sum of a row's terms is from what it stands for.
double worst_error(const TableShape& shape, DataType hbm) {
  const QuantisedTensor table = quantise(pack_table(kAngles, shape, 64, hbm));
  const std::size_t stored = shape.stored_rows() * 64;
  std::vector<float> values(kEntries * stored);
  HbmCodec(hbm, kFp32)
      .decode(table.elements.data(), table.scales.data(), 0, values.size(), values.data());
  double worst = 0;
  std::vector<double> expected(std::size_t{kRows} * 64);
  for (std::size_t entry = 0; entry < kEntries; ++entry) {
    kAngles.fill(entry, expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      double sum = 0;
      for (std::size_t term = 0; term < shape.terms; ++term) {
        sum += static_cast<double>(values[entry * stored + term * expected.size() + i]);
      }
      worst = std::max(worst, std::abs(sum - expected[i]));
    }
  }
  return worst;
}

// E4M3 cuts what lies above 7/8 of a power of two off, so each term may leave 1/8 of the last one:
// three of them reach the 2^-9 of bf16.
TEST(RowTable, TakesAsManyTermsAsVectorSramDeserves) {
  for (const auto& [hbm, sram, terms] : {std::tuple{DataType::plain(kFp32), kFp32, 1U},
                                         std::tuple{DataType::plain(kBf16), kBf16, 1U},
                                         std::tuple{DataType::mx(kE4M3, 8), kBf16, 3U},
                                         std::tuple{DataType::plain(kBf16), kFp32, 3U}}) {
    const TableShape shape = measure_table(kAngles, 64, hbm, sram).value();
    EXPECT_EQ(shape.terms, terms) << hbm.name();
    EXPECT_LE(worst_error(shape, hbm), std::ldexp(1.0, -sram.mantissa - 2)) << hbm.name();
  }
}

TEST(RowTable, RefusesATypeThatHoldsWholeNumbersOnly) {
  const auto shape = measure_table(kAngles, 64, DataType::plain(ElementType::integer(8)), kBf16);
  ASSERT_FALSE(shape);
  EXPECT_THAT(shape.error().message, HasSubstr("angles"));
}

}  // namespace
}  // namespace plena
