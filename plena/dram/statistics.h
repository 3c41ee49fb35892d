// What a channel counts while it works, and the figures a report draws from the counts.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "plena/dram/command.h"
#include "plena/dram/tick.h"

namespace plena::dram {

/// How often each latency occurred, exactly.
class LatencyHistogram {
 public:
  void add(Tick latency) {
    if (static_cast<std::uint64_t>(latency) < direct_.size()) [[likely]] {
      ++direct_[static_cast<std::size_t>(latency)];
    } else {
      add_beyond(latency);
    }
  }
  void add(Tick latency, std::uint64_t times);
  void merge(const LatencyHistogram& other);

  [[nodiscard]] std::uint64_t count() const;
  /// In ticks; 0 when nothing was counted.
  [[nodiscard]] double mean() const;
  [[nodiscard]] Tick min() const { return percentile(0); }
  [[nodiscard]] Tick max() const { return percentile(1); }
  /// Nearest rank: the value at position ceil(p * n) of the sorted latencies, p from 0 to 1.
  [[nodiscard]] Tick percentile(double p) const;
  /// (latency, how often), ascending.
  [[nodiscard]] std::vector<std::pair<Tick, std::uint64_t>> counts() const;

 private:
  void add_beyond(Tick latency);

  static constexpr std::size_t kDirect = 4096;  // latencies beyond are rare
  std::vector<std::uint64_t> direct_ = std::vector<std::uint64_t>(kDirect);
  std::map<Tick, std::uint64_t> beyond_;
};

/// Bank state when the first command for a request was sent.
struct RowCounts {
  std::uint64_t hits = 0;       // row open
  std::uint64_t misses = 0;     // bank closed
  std::uint64_t conflicts = 0;  // another row open

  RowCounts& operator+=(const RowCounts& other);
};

struct DirectionStatistics {
  LatencyHistogram latency;  // finished - accepted, in ticks
  RowCounts rows;
  std::uint64_t from_queue = 0;  // reads answered from, writes merged into the write queue
  Tick queued_ticks = 0;         // sum over requests of their ticks in the queue
};

struct ChannelStatistics {
  std::array<DirectionStatistics, 2> direction;         // by is_write
  std::array<std::uint64_t, kCommandCount> commands{};  // by Command

  [[nodiscard]] const DirectionStatistics& reads() const { return direction[0]; }
  [[nodiscard]] const DirectionStatistics& writes() const { return direction[1]; }
  void merge(const ChannelStatistics& other);
};

/// What a channel counts but for latencies: a few numbers that can be taken often.
struct ActivityCounts {
  struct Direction {
    RowCounts rows;
    std::uint64_t from_queue = 0;
    Tick queued_ticks = 0;
  };
  std::array<Direction, 2> direction;                   // by is_write
  std::array<std::uint64_t, kCommandCount> commands{};  // by Command

  ActivityCounts() = default;
  explicit ActivityCounts(const ChannelStatistics& statistics);
  ActivityCounts& operator+=(const ActivityCounts& other);
  /// What was counted since `earlier`.
  [[nodiscard]] ActivityCounts since(const ActivityCounts& earlier) const;
  /// Adds all of it so many times to a channel's statistics.
  void add_to(ChannelStatistics& statistics, std::uint64_t times) const;
};

}  // namespace plena::dram
