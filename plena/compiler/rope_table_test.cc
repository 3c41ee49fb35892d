#include "plena/compiler/rope_table.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plena {
namespace {

using ::testing::HasSubstr;

const LlamaConfig kConfig{
    .dim = 64, .hidden_dim = 64, .layers = 1, .heads = 8, .kv_heads = 8, .vocab = 8, .context = 40};

// The farthest that the sum of a row's terms is from the cosine or sine it stands for.
double worst_error(const RopeTable& table, DataType hbm) {
  const std::size_t row_count = std::size_t{kConfig.context} * table.rows_per_position();
  std::vector<float> rows(row_count * 64);
  HbmCodec(hbm, kFp32)
      .decode(table.tensor.elements.data(), table.tensor.scales.data(), 0, rows.size(),
              rows.data());
  double worst = 0;
  for (std::size_t position = 0; position < kConfig.context; ++position) {
    for (std::size_t lane = 0; lane < 64; ++lane) {
      const double angle =
          static_cast<double>(position) * std::pow(10000.0, -static_cast<double>(lane % 8 / 2) / 4);
      for (std::size_t part = 0; part < 2; ++part) {
        double sum = 0;
        for (std::size_t term = 0; term < table.terms; ++term) {
          const std::size_t row = (position * 2 + part) * table.terms + term;
          sum += static_cast<double>(rows[row * 64 + lane]);
        }
        worst = std::max(worst, std::abs(sum - (part == 0 ? std::cos(angle) : std::sin(angle))));
      }
    }
  }
  return worst;
}

// E4M3 cuts what lies above 7/8 of a power of two off, so each term may leave 1/8 of the last one:
// three of them reach the 2^-9 of bf16.
TEST(RopeTable, TakesAsManyTermsAsVectorSramDeserves) {
  const LlamaTiling tiling = tile_llama(kConfig, 64).value();
  for (const auto& [hbm, sram, terms] : {std::tuple{DataType::plain(kFp32), kFp32, 1U},
                                         std::tuple{DataType::plain(kBf16), kBf16, 1U},
                                         std::tuple{DataType::mx(kE4M3, 8), kBf16, 3U},
                                         std::tuple{DataType::plain(kBf16), kFp32, 3U}}) {
    const auto table = make_rope_table(kConfig, tiling, hbm, sram).value();
    EXPECT_EQ(table.terms, terms) << hbm.name();
    EXPECT_LE(worst_error(table, hbm), std::ldexp(1.0, -sram.mantissa - 2)) << hbm.name();
  }
}

TEST(RopeTable, RefusesATypeThatHoldsWholeNumbersOnly) {
  const LlamaTiling tiling = tile_llama(kConfig, 64).value();
  const auto table =
      make_rope_table(kConfig, tiling, DataType::plain(ElementType::integer(8)), kBf16);
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().message, HasSubstr("cosines and sines"));
}

}  // namespace
}  // namespace plena
