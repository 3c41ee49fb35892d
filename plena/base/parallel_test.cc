#include "plena/base/parallel.h"

#include <atomic>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plena {
namespace {

TEST(ForEachPiece, DoesEveryPieceOnce) {
  std::vector<std::atomic<int>> times(1000);
  ASSERT_TRUE(for_each_piece(times.size(), [&](std::size_t i) -> Status {
    ++times[i];
    return {};
  }));
  for (const auto& count : times) EXPECT_EQ(count, 1);
}

TEST(ForEachPiece, EndsWithTheFirstError) {
  std::atomic<int> done = 0;
  const Status status = for_each_piece(1'000'000, [&](std::size_t i) -> Status {
    if (i >= 10) return fail(ErrorCode::Io, "piece {}", i);
    ++done;
    return {};
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "piece 10");
  EXPECT_EQ(done, 10);
}

TEST(ForEachPiece, HasNothingToDoForNoPieces) {
  EXPECT_TRUE(for_each_piece(0, [](std::size_t) -> Status { return fail(ErrorCode::Io, "one"); }));
}

}  // namespace
}  // namespace plena
