// A run in time in a fixed amount of memory, for the report: what every unit, cause and HBM channel
// did in each of at most 2048 equal stretches, and the first instructions one by one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "plena/observe/region_map.h"
#include "plena/timing/timing.h"

namespace plena {

/// One quantity over time, in stretches of `width` cycles. The width doubles whenever the run
/// outgrows the stretches there are.
class BinnedSeries {
 public:
  static constexpr std::size_t kMostBins = 2048;

  /// An amount of `rate` a cycle from `begin` to `end`.
  void add(Cycle begin, Cycle end, double rate = 1) {
    if (end <= begin) return;
    if ((end - 1) >> shift_ >= kMostBins) widen_to(end - 1);
    while (begin < end) {
      const Cycle bin = begin >> shift_;
      const Cycle until = std::min(end, (bin + 1) << shift_);
      slot(bin) += rate * static_cast<double>(until - begin);
      begin = until;
    }
  }
  [[nodiscard]] Cycle width() const { return Cycle{1} << shift_; }
  /// Amounts by stretch, from cycle 0, as far as anything happened; widened to `width`, which is
  /// this one's or a larger power of two.
  [[nodiscard]] std::vector<double> widened(Cycle width) const;

 private:
  void widen_to(Cycle cycle);
  [[nodiscard]] double& slot(Cycle bin) {
    if (bin >= amounts_.size()) amounts_.resize(bin + 1);
    return amounts_[bin];
  }

  std::uint32_t shift_ = 0;  // a stretch is 2^shift_ cycles
  std::vector<double> amounts_;
};

/// Where in the program a run was over time: a region for each stretch, as in BinnedSeries.
class RegionSeries {
 public:
  /// Everything up to `end` that is not told yet belongs to `region`.
  void add(Cycle end, std::uint32_t region);
  [[nodiscard]] Cycle width() const { return width_; }
  [[nodiscard]] std::vector<std::uint32_t> widened(Cycle width) const;

 private:
  Cycle width_ = 1;
  std::vector<std::uint32_t> regions_;  // by stretch
};

class TimelineBins final : public TimelineListener {
 public:
  /// Instructions that are kept one by one.
  static constexpr std::size_t kMostDetailed = 6000;

  struct Detail {
    std::uint32_t pc = 0;
    Unit unit{};
    Cycle issue = 0;
    Cycle end = 0;  // of its unit's work on it; of a transfer, its completion
    std::uint64_t stall = 0;
    Cause cause{};
  };

  /// `timing` is the clock that is listened to, made for `program`. Under an ideal overlap units
  /// have no time of their own: bytes() is all that is kept.
  TimelineBins(const Timing& timing, const Program& program);

  void issued(const IssueEvent& event) override;
  void transferred(const TransferEvent& event) override;
  void commanded(std::span<const dram::CommandRecord> commands, const ClockRatio& clock) override;

  /// The width all series below have in common.
  [[nodiscard]] Cycle width() const;
  [[nodiscard]] const BinnedSeries& busy(Unit unit) const {
    return busy_[static_cast<std::size_t>(unit)];
  }
  [[nodiscard]] const BinnedSeries& waiting(Cause cause) const {
    return waiting_[static_cast<std::size_t>(cause)];
  }
  /// Bytes by channel of a memory that has channels; else one series, each transfer's bytes spread
  /// evenly from its issue to its completion.
  [[nodiscard]] const std::vector<BinnedSeries>& moved() const { return moved_; }
  /// The innermost region of the instruction that was next to issue.
  [[nodiscard]] const RegionSeries& regions() const { return regions_; }
  [[nodiscard]] bool has_channels() const { return has_channels_; }
  [[nodiscard]] const std::vector<Detail>& details() const { return details_; }
  /// Bytes of whole bursts that transfers of each instruction moved.
  [[nodiscard]] const std::vector<std::uint64_t>& bytes() const { return bytes_; }

 private:
  const TimedInstruction* timed_;  // by pc
  Overlap overlap_;
  bool has_channels_;
  std::array<BinnedSeries, kUnitCount> busy_;
  std::array<BinnedSeries, kStallCauseCount> waiting_;
  std::vector<BinnedSeries> moved_;
  RegionMap region_map_;
  RegionSeries regions_;
  std::array<Cycle, kUnitCount> covered_{};  // busy() of the HBM units is known up to here
  std::vector<Detail> details_;
  std::vector<std::uint64_t> bytes_;  // by pc
};

}  // namespace plena
