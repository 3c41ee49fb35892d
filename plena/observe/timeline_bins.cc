#include "plena/observe/timeline_bins.h"

#include <algorithm>

namespace plena {

// ------------------------------------------------------------ one series

void BinnedSeries::widen_to(Cycle cycle) {
  std::uint32_t shift = shift_;
  while (cycle >> shift >= kMostBins) ++shift;
  amounts_ = widened(Cycle{1} << shift);
  shift_ = shift;
}

std::vector<double> BinnedSeries::widened(Cycle width) const {
  const Cycle together = width >> shift_;
  std::vector<double> wider((amounts_.size() + together - 1) / together);
  for (std::size_t bin = 0; bin < amounts_.size(); ++bin) wider[bin / together] += amounts_[bin];
  return wider;
}

// ------------------------------------------------------------ regions

void RegionSeries::add(Cycle end, std::uint32_t region) {
  if (end > width_ * BinnedSeries::kMostBins) {
    Cycle width = width_;
    while (end > width * BinnedSeries::kMostBins) width *= 2;
    regions_ = widened(width);
    width_ = width;
  }
  const Cycle stretches = (end + width_ - 1) / width_;
  if (stretches > regions_.size()) regions_.resize(stretches, region);
}

// Of the stretches that become one, the first speaks for all.
std::vector<std::uint32_t> RegionSeries::widened(Cycle width) const {
  std::vector<std::uint32_t> wider;
  for (std::size_t stretch = 0; stretch < regions_.size(); stretch += width / width_)
    wider.push_back(regions_[stretch]);
  return wider;
}

// ------------------------------------------------------------ a run

TimelineBins::TimelineBins(const Timing& timing, const Program& program)
    : timed_(timing.program().timed.data()),
      overlap_(timing.profile().overlap),
      has_channels_(timing.hbm().controller_statistics().has_value() && overlap_ != Overlap::Ideal),
      moved_(has_channels_ ? timing.profile().hbm.channels : 1),
      region_map_(program),
      bytes_(timing.program().timed.size()) {}

void TimelineBins::issued(const IssueEvent& event) {
  if (overlap_ == Overlap::Ideal) return;
  if (event.stall != 0)
    waiting_[static_cast<std::size_t>(event.cause)].add(event.issue - event.stall, event.issue);
  regions_.add(event.issue + 1, region_map_.innermost[event.pc]);
  const bool moves = is_transfer_unit(event.unit);
  const Cycle end =
      overlap_ == Overlap::Serial ? event.complete : event.issue + timed_[event.pc].interval;
  if (!moves) busy_[static_cast<std::size_t>(event.unit)].add(event.issue, end);
  if (details_.size() == kMostDetailed) return;
  details_.push_back(
      {event.pc, event.unit, event.issue, moves ? 0 : end, event.stall, event.cause});
}

void TimelineBins::transferred(const TransferEvent& event) {
  const std::uint64_t bytes = event.bursts * kBurstBytes;
  bytes_[event.pc] += bytes;
  if (overlap_ == Overlap::Ideal) return;

  // A unit is busy while any of its transfers is under way.
  Cycle& covered = covered_[static_cast<std::size_t>(event.unit)];
  busy_[static_cast<std::size_t>(event.unit)].add(std::max(event.issue, covered), event.complete);
  covered = std::max(covered, event.complete);
  if (!has_channels_ && event.complete > event.issue) {
    const auto rate =
        static_cast<double>(bytes) / static_cast<double>(event.complete - event.issue);
    moved_.front().add(event.issue, event.complete, rate);
  }
  const auto detail = std::ranges::lower_bound(details_, event.issue, {}, &Detail::issue);
  if (detail != details_.end() && detail->issue == event.issue && detail->pc == event.pc)
    detail->end = event.complete;
}

void TimelineBins::commanded(std::span<const dram::CommandRecord> commands,
                             const ClockRatio& clock) {
  for (const dram::CommandRecord& command : commands) {
    if (!dram::is_column(command.command)) continue;
    const Cycle cycle = clock.cycle_at(static_cast<std::uint64_t>(command.tick));
    moved_[command.channel].add(cycle, cycle + 1, static_cast<double>(kBurstBytes));
  }
}

Cycle TimelineBins::width() const {
  Cycle width = regions_.width();
  for (const BinnedSeries& series : busy_) width = std::max(width, series.width());
  for (const BinnedSeries& series : waiting_) width = std::max(width, series.width());
  for (const BinnedSeries& series : moved_) width = std::max(width, series.width());
  return width;
}

}  // namespace plena
