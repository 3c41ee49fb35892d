#include "plena/machine/write_stamps.h"

#include <gtest/gtest.h>

namespace plena {
namespace {

constexpr std::uint64_t kGranule = WriteStamps::kGranule;

std::unique_ptr<WriteStamps> stamps_for(std::uint64_t bytes) {
  return std::move(*WriteStamps::reserve(bytes));
}

TEST(WriteStamps, NothingIsWrittenAtFirst) {
  const auto stamps = stamps_for(std::uint64_t{128} << 30);

  EXPECT_TRUE(stamps->written(0, std::uint64_t{1} << 20, stamps->now()).empty());
  EXPECT_FALSE(stamps->perhaps_written((std::uint64_t{128} << 30) - 1, 1, stamps->now()));
}

TEST(WriteStamps, AWriteIsSeenFromTheTimeBeforeIt) {
  const auto stamps = stamps_for(1 << 20);
  const std::uint64_t before = stamps->now();

  stamps->mark(1000, 10);

  EXPECT_FALSE(stamps->written(1000, 10, before).empty());
  EXPECT_TRUE(stamps->written(1000, 10, stamps->now()).empty());
  EXPECT_TRUE(stamps->perhaps_written(1000, 10, before));
}

TEST(WriteStamps, TheRangeHoldsWhatWasWrittenAndStaysInsideWhatWasAsked) {
  const auto stamps = stamps_for(1 << 20);
  const std::uint64_t before = stamps->now();

  stamps->mark(3 * kGranule + 5, 1);
  stamps->mark(6 * kGranule, 1);

  const auto all = stamps->written(0, 10 * kGranule, before);
  EXPECT_EQ(all.begin, 3 * kGranule);
  EXPECT_EQ(all.end, 7 * kGranule);
  const auto cut = stamps->written(3 * kGranule + 2, 8, before);
  EXPECT_EQ(cut.begin, 3 * kGranule + 2);
  EXPECT_EQ(cut.end, 3 * kGranule + 10);
  EXPECT_TRUE(stamps->written(0, 3 * kGranule, before).empty());
}

TEST(WriteStamps, AWriteAcrossGranulesAndRegionsIsSeenInAllOfThem) {
  const auto stamps = stamps_for(4 * WriteStamps::kRegion);
  const std::uint64_t before = stamps->now();

  stamps->mark(WriteStamps::kRegion - 1, 2);

  EXPECT_TRUE(stamps->perhaps_written(0, 1, before));
  EXPECT_TRUE(stamps->perhaps_written(WriteStamps::kRegion, 1, before));
  EXPECT_FALSE(stamps->perhaps_written(2 * WriteStamps::kRegion, 1, before));
  EXPECT_FALSE(stamps->written(WriteStamps::kRegion - 1, 1, before).empty());
  EXPECT_FALSE(stamps->written(WriteStamps::kRegion, 1, before).empty());
}

TEST(WriteStamps, EachHasAnIdentityOfItsOwn) {
  EXPECT_NE(stamps_for(1)->identity(), stamps_for(1)->identity());
}

}  // namespace
}  // namespace plena
