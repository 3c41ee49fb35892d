#include "plena/dram/statistics.h"

#include <cmath>
#include <type_traits>

namespace plena::dram {
namespace {

void merge(DirectionStatistics& into, const DirectionStatistics& other) {
  into.latency.merge(other.latency);
  into.rows += other.rows;
  into.from_queue += other.from_queue;
  into.queued_ticks += other.queued_ticks;
}

}  // namespace

RowCounts& RowCounts::operator+=(const RowCounts& other) {
  hits += other.hits;
  misses += other.misses;
  conflicts += other.conflicts;
  return *this;
}

void LatencyHistogram::add(Tick latency, std::uint64_t times) {
  if (static_cast<std::uint64_t>(latency) < direct_.size()) {
    direct_[static_cast<std::size_t>(latency)] += times;
  } else {
    beyond_[latency] += times;
  }
}

void LatencyHistogram::add_beyond(Tick latency) {
  ++beyond_[latency];
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  for (std::size_t i = 0; i < direct_.size(); ++i) direct_[i] += other.direct_[i];
  for (const auto& [latency, times] : other.beyond_) beyond_[latency] += times;
}

std::uint64_t LatencyHistogram::count() const {
  std::uint64_t total = 0;
  for (const auto& [latency, times] : counts()) total += times;
  return total;
}

double LatencyHistogram::mean() const {
  std::uint64_t total = 0;
  double sum = 0;  // exact as long as it stays below 2^53
  for (const auto& [latency, times] : counts()) {
    total += times;
    sum += static_cast<double>(latency) * static_cast<double>(times);
  }
  return total == 0 ? 0.0 : sum / static_cast<double>(total);
}

Tick LatencyHistogram::percentile(double p) const {
  // A hair less, so that 0.95 * 20, not exactly 19 in binary, does not become rank 20.
  const double exact = std::ceil(p * static_cast<double>(count()) - 1e-9);
  const std::uint64_t rank = exact < 1 ? 1 : static_cast<std::uint64_t>(exact);
  std::uint64_t seen = 0;
  for (const auto& [latency, times] : counts()) {
    seen += times;
    if (seen >= rank) return latency;
  }
  return 0;
}

std::vector<std::pair<Tick, std::uint64_t>> LatencyHistogram::counts() const {
  std::vector<std::pair<Tick, std::uint64_t>> result;
  for (std::size_t i = 0; i < direct_.size(); ++i)
    if (direct_[i] != 0) result.emplace_back(static_cast<Tick>(i), direct_[i]);
  result.insert(result.end(), beyond_.begin(), beyond_.end());
  return result;
}

void ChannelStatistics::merge(const ChannelStatistics& other) {
  for (std::size_t i = 0; i < direction.size(); ++i) dram::merge(direction[i], other.direction[i]);
  for (std::size_t i = 0; i < commands.size(); ++i) commands[i] += other.commands[i];
}

namespace {

// Calls `combine` with every count of the one and the same count of the other.
template <class A, class B, class Combine>
void combine_counts(A& a, const B& b, Combine&& combine) {
  for (std::size_t i = 0; i < a.direction.size(); ++i) {
    auto& mine = a.direction[i];
    const auto& other = b.direction[i];
    combine(mine.rows.hits, other.rows.hits);
    combine(mine.rows.misses, other.rows.misses);
    combine(mine.rows.conflicts, other.rows.conflicts);
    combine(mine.from_queue, other.from_queue);
    combine(mine.queued_ticks, other.queued_ticks);
  }
  for (std::size_t i = 0; i < a.commands.size(); ++i) combine(a.commands[i], b.commands[i]);
}

}  // namespace

ActivityCounts::ActivityCounts(const ChannelStatistics& statistics) {
  combine_counts(*this, statistics, [](auto& mine, const auto& other) { mine = other; });
}

ActivityCounts& ActivityCounts::operator+=(const ActivityCounts& other) {
  combine_counts(*this, other, [](auto& mine, const auto& count) { mine += count; });
  return *this;
}

ActivityCounts ActivityCounts::since(const ActivityCounts& earlier) const {
  ActivityCounts difference = *this;
  combine_counts(difference, earlier, [](auto& mine, const auto& count) { mine -= count; });
  return difference;
}

void ActivityCounts::add_to(ChannelStatistics& statistics, std::uint64_t times) const {
  combine_counts(statistics, *this, [times](auto& total, const auto& count) {
    total += count * static_cast<std::remove_reference_t<decltype(total)>>(times);
  });
}

}  // namespace plena::dram
