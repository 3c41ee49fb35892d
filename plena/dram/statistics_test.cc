#include "plena/dram/statistics.h"

#include <gtest/gtest.h>

namespace plena::dram {
namespace {

TEST(LatencyHistogram, PercentilesAreNearestRanks) {
  LatencyHistogram histogram;
  for (Tick latency = 1; latency <= 20; ++latency) histogram.add(latency);
  // Positions ceil(p * 20) of 1 ... 20.
  EXPECT_EQ(histogram.percentile(0.50), 10);
  EXPECT_EQ(histogram.percentile(0.95), 19);
  EXPECT_EQ(histogram.percentile(0.951), 20);
  EXPECT_EQ(histogram.min(), 1);
  EXPECT_EQ(histogram.max(), 20);
  EXPECT_DOUBLE_EQ(histogram.mean(), 10.5);
}

TEST(LatencyHistogram, KeepsRareLongLatenciesToo) {
  LatencyHistogram histogram;
  histogram.add(3);
  histogram.add(1'000'000);
  LatencyHistogram both;
  both.merge(histogram);
  both.merge(histogram);
  EXPECT_EQ(both.count(), 4U);
  EXPECT_EQ(both.max(), 1'000'000);
  EXPECT_DOUBLE_EQ(both.mean(), 500'001.5);
}

TEST(LatencyHistogram, OfNothingIsZero) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.max(), 0);
  EXPECT_DOUBLE_EQ(histogram.mean(), 0);
}

}  // namespace
}  // namespace plena::dram
