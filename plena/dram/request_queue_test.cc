#include "plena/dram/request_queue.h"

#include <gtest/gtest.h>

namespace plena::dram {
namespace {

constexpr unsigned kBank = 5;

TEST(RequestQueue, KnowsTheOldestHitAndTheOldestMissOfABank) {
  RequestQueue queue(4);
  queue.push(kBank, 10, order_of(0, kBank), false, 0);
  queue.push(kBank, 11, order_of(1, kBank), false, 0);
  queue.push(kBank, 10, order_of(2, kBank), false, 0);
  EXPECT_EQ(queue.waiting(), only(kBank));
  EXPECT_EQ(queue.hits(), 0U);
  EXPECT_EQ(queue.row_order(kBank), order_of(0, kBank));

  queue.opened(kBank, 11);
  EXPECT_EQ(queue.hits(), only(kBank));
  EXPECT_EQ(queue.hit(kBank).order, order_of(1, kBank));
  EXPECT_EQ(queue.miss(kBank).order, order_of(0, kBank));

  queue.drop_hit(kBank, 11);
  EXPECT_EQ(queue.hits(), 0U);
  EXPECT_EQ(queue.misses(), only(kBank));
  EXPECT_EQ(queue.size(), 2U);
}

TEST(RequestQueue, FindsTheNextHitBehindMisses) {
  RequestQueue queue(4);
  for (std::uint64_t i = 0; i < 4; ++i)
    queue.push(kBank, i % 2 == 0 ? 7 : 8, order_of(i, kBank), true, 7);
  EXPECT_TRUE(queue.full());
  EXPECT_EQ(queue.hit(kBank).order, order_of(0, kBank));
  queue.drop_hit(kBank, 7);
  EXPECT_EQ(queue.hit(kBank).order, order_of(2, kBank));
  EXPECT_EQ(queue.row_order(kBank), order_of(1, kBank));
}

TEST(RequestQueue, AClosedBankOffersItsOldestRequest) {
  RequestQueue queue(4);
  queue.push(kBank, 7, order_of(0, kBank), true, 7);
  queue.push(kBank, 8, order_of(1, kBank), true, 7);
  EXPECT_EQ(queue.row_order(kBank), order_of(1, kBank));
  queue.closed(kBank);
  EXPECT_EQ(queue.hits() | queue.misses(), 0U);
  EXPECT_EQ(queue.row_order(kBank), order_of(0, kBank));
  queue.drop_oldest(kBank);
  queue.drop_oldest(kBank);
  EXPECT_EQ(queue.waiting(), 0U);
  EXPECT_EQ(queue.size(), 0U);
}

TEST(RequestQueue, TellsOneBurstFromItsNeighbours) {
  RequestQueue queue(2);
  queue.push(kBank, 7, order_of(0, kBank), false, 0).column = 3;
  EXPECT_TRUE(queue.holds(kBank, 7, 3));
  EXPECT_FALSE(queue.holds(kBank, 7, 4));
  EXPECT_FALSE(queue.holds(kBank, 8, 3));
  EXPECT_FALSE(queue.holds(kBank + 1, 7, 3));
}

TEST(RequestQueue, ReusesItsPlacesForEver) {
  RequestQueue queue(3);
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto bank = static_cast<unsigned>(i % 7);
    queue.push(bank, 1, order_of(i, bank), false, 0);
    if (queue.full()) queue.drop_oldest(static_cast<unsigned>((i - 2) % 7));
  }
  EXPECT_EQ(queue.size(), 2U);
}

}  // namespace
}  // namespace plena::dram
