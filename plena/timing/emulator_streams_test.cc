// Loads that are remembered take the time of loads that are simulated, to the nanosecond.
#include <random>

#include <gtest/gtest.h>

#include "plena/timing/emulator_hbm.h"

namespace plena {
namespace {

constexpr std::uint32_t kClockMhz = 1000;

TransferRows rows_at(std::uint64_t first, std::uint64_t stride, std::uint32_t count) {
  return {.first = first,
          .stride = stride,
          .scale = 1U << 24,
          .count = count,
          .length = 64,
          .width = 8,
          .block = 8,
          .in_bytes = true};
}

// Issues the same transfers to both memories and compares every completion.
class Pair {
 public:
  void transfer(const TransferRows& rows, std::uint64_t pause) {
    const TransferStart start{rows.write ? Unit::Store : Unit::LoadM, now_ + pause, 0, 0};
    const Cycle simulated = simulating_.complete(simulating_.start(start, rows));
    const Cycle remembered = remembering_.complete(remembering_.start(start, rows));
    ASSERT_EQ(simulated, remembered) << "transfer " << transfers_;
    now_ = simulated;
    ++transfers_;
  }

 private:
  EmulatorHbm simulating_{kClockMhz, false};
  EmulatorHbm remembering_{kClockMhz, true};
  Cycle now_ = 0;
  std::uint64_t transfers_ = 0;
};

TEST(EmulatorStreams, TilesOfAMatrixOneAfterTheOther) {
  Pair pair;
  for (std::uint64_t column = 0; column < 4; ++column) {
    for (std::uint64_t tile = 0; tile < 40; ++tile)
      pair.transfer(rows_at(tile * 64 * 2048 + column * 64, 2048, 64), tile % 4 == 0 ? 5000 : 3);
  }
}

TEST(EmulatorStreams, AnythingElse) {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) { return random() % n; };
  Pair pair;
  for (int k = 0; k < 1500; ++k) {
    // Few enough kinds that many come again, in states that differ.
    TransferRows rows =
        rows_at(64ULL * below(6) + 4096ULL * below(3), 64ULL << below(6), below(2) == 0 ? 4 : 16);
    rows.write = below(8) == 0;
    pair.transfer(rows, below(3) == 0 ? below(40) : 0);
  }
}

}  // namespace
}  // namespace plena
