// The machine's clock beside the memory's, and rates in both.
#pragma once

#include <cstdint>
#include <numeric>

#include "plena/timing/transfer_rows.h"
#include "plena/timing/unit.h"

namespace plena {

/// The most a memory can move: bursts in so many machine cycles.
struct PeakRate {
  std::uint64_t bursts = 8;
  std::uint64_t cycles = 1;

  /// Cycles that many bursts take at least.
  [[nodiscard]] Cycle cycles_for(std::uint64_t moved) const {
    return (moved * cycles + bursts - 1) / bursts;
  }
  [[nodiscard]] double bytes_per_cycle() const {
    return static_cast<double>(kBurstBytes * bursts) / static_cast<double>(cycles);
  }
};

/// Conversion between the machine's clock and the memory's: a tick of the memory takes
/// cycles / ticks machine cycles, both lowest terms.
class ClockRatio {
 public:
  ClockRatio() = default;
  /// Tick length in femtoseconds, machine clock in MHz.
  ClockRatio(std::uint64_t tick_fs, std::uint64_t clock_mhz) {
    // A cycle is 10^9 / clock_mhz femtoseconds.
    const std::uint64_t up = tick_fs * clock_mhz;
    const std::uint64_t common = std::gcd(up, kFemtosecondsTimesMhz);
    cycles_ = up / common;
    ticks_ = kFemtosecondsTimesMhz / common;
  }

  /// The first cycle that starts no earlier than a tick.
  [[nodiscard]] Cycle cycle_at(std::uint64_t tick) const {
    return ticks_ == 1 ? tick * cycles_ : (tick * cycles_ + ticks_ - 1) / ticks_;
  }
  /// The first tick no earlier than the start of a cycle.
  [[nodiscard]] std::uint64_t tick_at(Cycle cycle) const {
    return cycles_ == 1 ? cycle * ticks_ : (cycle * ticks_ + cycles_ - 1) / cycles_;
  }
  /// The rate of `bursts` in `ticks` ticks.
  [[nodiscard]] PeakRate rate(std::uint64_t bursts, std::uint64_t ticks) const {
    return {bursts * ticks_, ticks * cycles_};
  }
  /// Whether no two cycles share a tick.
  [[nodiscard]] bool tick_per_cycle() const { return ticks_ >= cycles_; }

 private:
  static constexpr std::uint64_t kFemtosecondsTimesMhz = 1'000'000'000;
  std::uint64_t cycles_ = 1;
  std::uint64_t ticks_ = 1;
};

}  // namespace plena
