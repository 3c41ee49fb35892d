// Every part of a job is done once, whoever does it, and jobs do not run into each other.
#include "plena/sim/workers.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace plena {
namespace {

class WorkersOf : public testing::TestWithParam<unsigned> {};

TEST_P(WorkersOf, DoEveryPartOfEveryJobOnce) {
  Workers workers(GetParam(), 0);
  for (std::size_t job = 0; job < 2000; ++job) {
    const std::size_t parts = job % 23;
    std::vector<std::size_t> done(parts, 0);  // each part's own

    workers.run(parts, [&](std::size_t i) { done[i] += i + job; });

    for (std::size_t i = 0; i < parts; ++i) ASSERT_EQ(done[i], i + job);
  }
}

TEST_P(WorkersOf, DoEveryPartThatIsOfferedOnce) {
  Workers workers(GetParam(), 0);
  struct Job {
    std::vector<std::size_t> in, out;
  };
  for (std::size_t round = 0; round < 500; ++round) {
    const std::size_t parts = round % 37;
    Job job{std::vector<std::size_t>(parts, 0), std::vector<std::size_t>(parts, 0)};

    workers.open(
        [](const void* context, std::size_t i) {
          auto& own = *static_cast<Job*>(const_cast<void*>(context));
          own.out[i] += own.in[i] + 1;
        },
        &job);
    for (std::size_t i = 0; i < parts; ++i) {
      job.in[i] = i * round;
      if (i % 3 != 0) workers.offer(i + 1);
    }
    std::size_t alone = 0;
    workers.run(5, [&](std::size_t i) { alone += i; });
    EXPECT_EQ(alone, 10U);
    workers.offer(parts);
    workers.close();

    for (std::size_t i = 0; i < parts; ++i) ASSERT_EQ(job.out[i], i * round + 1);
  }
}

TEST_P(WorkersOf, SplitColumnsWithoutGapOrOverlap) {
  Workers workers(GetParam(), 0);
  std::vector<int> columns(1000, 0);

  workers.split(columns.size(), 128, 1, [&](std::size_t first, std::size_t count) {
    EXPECT_LE(count, GetParam() == 1 ? 1000U : 128U);
    for (std::size_t c = first; c < first + count; ++c) ++columns[c];
  });

  EXPECT_EQ(std::accumulate(columns.begin(), columns.end(), 0), 1000);
  for (const int times : columns) EXPECT_EQ(times, 1);
}

INSTANTIATE_TEST_SUITE_P(Threads, WorkersOf, testing::Values(1U, 2U, 3U, 8U));

TEST(Workers, KeepSmallProductsOnTheCallersThread) {
  Workers workers(4, 1000);
  int calls = 0;

  workers.split(9, 1, 100, [&](std::size_t first, std::size_t count) {
    ++calls;
    EXPECT_EQ(first, 0U);
    EXPECT_EQ(count, 9U);
  });

  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace plena
