// The bytes a transfer moves are those the functional engine moves, and the shortcut for uniform
// rows counts the bursts that are there.
#include "plena/timing/transfer_rows.h"

#include <random>

#include <gtest/gtest.h>

namespace plena {
namespace {

struct Counted {
  std::vector<std::uint32_t> bursts_by_row;
  std::uint64_t last = ~std::uint64_t{0};
  bool repeats = false;
};

Counted count(const TransferRows& rows) {
  Counted counted;
  std::uint32_t bursts = 0;
  for_each_burst(
      rows,
      [&](std::uint64_t address, std::uint32_t) {
        EXPECT_EQ(address % kBurstBytes, 0U);
        counted.repeats |= address == counted.last;
        counted.last = address;
        ++bursts;
      },
      [&](std::uint32_t, const HbmRow&) {
        counted.bursts_by_row.push_back(std::exchange(bursts, 0));
      });
  return counted;
}

TEST(TransferRows, UniformRowsHaveThatManyBurstsEach) {
  std::mt19937 random(1);
  const auto pick = [&](std::initializer_list<std::uint32_t> values) {
    return *(values.begin() + random() % values.size());
  };
  std::uint32_t uniform = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    TransferRows rows;
    rows.length = pick({8, 16, 64, 128, 512});
    rows.width = pick({4, 6, 8, 16, 32});
    rows.block = pick({0, 8, 16, 32});
    rows.base = random() % 4 * pick({1, 32, 64});
    rows.first = random() % 4 * pick({1, 8, 64});
    rows.stride = random() % 4 * pick({1, 8, 64, 512});
    rows.scale = pick({0, 32, 4096, 1U << 20}) + random() % 3 * pick({1, 8});
    rows.count = pick({1, 2, 4, 16});
    const Counted counted = count(rows);
    EXPECT_FALSE(counted.repeats);
    const std::uint32_t each = rows.uniform_bursts();
    if (each == 0) continue;
    ++uniform;
    EXPECT_EQ(counted.bursts_by_row, std::vector<std::uint32_t>(rows.count, each))
        << "base " << rows.base << " first " << rows.first << " stride " << rows.stride
        << " length " << rows.length << " width " << rows.width << " block " << rows.block
        << " scale " << rows.scale;
  }
  EXPECT_GT(uniform, 1000U);
}

TEST(TransferRows, TilesOfTheDefaultFormatAreUniform) {
  const TransferRows rows{
      .stride = 64, .scale = 4096, .count = 64, .length = 64, .width = 8, .block = 8};
  EXPECT_EQ(rows.uniform_bursts(), 3U);
}

}  // namespace
}  // namespace plena
