// Amounts summed up over windows of time of equal length, for the counters of a trace.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "plena/timing/unit.h"

namespace plena {

/// Keeps the last few windows open, so that what comes a little late still counts where it
/// belongs; what comes later than that counts in the oldest open one. Nothing is lost.
class WindowSums {
 public:
  static constexpr Cycle kWindow = 256;
  static constexpr std::uint64_t kOpen = 32;

  /// `told(cycle, sum)` follows for every closed window whose sum differs from that of the one
  /// before it.
  template <class Told>
  void add(Cycle cycle, std::uint64_t amount, Told&& told) {
    std::uint64_t window = cycle / kWindow;
    if (window >= first_ + kOpen) advance(window - kOpen + 1, told);
    if (window < first_) window = first_;
    sums_[window % kOpen] += amount;
  }
  /// The same for an interval, a cycle at a time.
  template <class Told>
  void add_interval(Cycle begin, Cycle end, Told&& told) {
    while (begin < end) {
      const Cycle boundary = std::min(end, (begin / kWindow + 1) * kWindow);
      add(begin, boundary - begin, told);
      begin = boundary;
    }
  }
  /// Closes everything, with a last 0 behind it.
  template <class Told>
  void finish(Told&& told) {
    advance(first_ + kOpen, told);
    tell(first_, 0, told);
  }

 private:
  // Closes the windows before `first`; of a long gap only the ends are visited.
  template <class Told>
  void advance(std::uint64_t first, Told&& told) {
    for (std::uint64_t n = 0; n < kOpen && first_ < first; ++n, ++first_)
      tell(first_, std::exchange(sums_[first_ % kOpen], 0), told);
    if (first_ == first) return;
    tell(first_, 0, told);
    first_ = first;
  }
  template <class Told>
  void tell(std::uint64_t window, std::uint64_t sum, Told&& told) {
    if (sum != last_) told(window * kWindow, sum);
    last_ = sum;
  }

  std::array<std::uint64_t, kOpen> sums_{};
  std::uint64_t first_ = 0;  // the oldest open window
  std::uint64_t last_ = 0;   // the sum that was told last
};

}  // namespace plena
