// A memory without banks, rows or refresh: every burst takes the same time, and all together
// never more than the peak bandwidth. What no real controller can beat.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "plena/dram/channel.h"
#include "plena/dram/preset.h"
#include "plena/dram/statistics.h"

namespace plena::dram {

class IdealMemory {
 public:
  /// Latencies are those of a row hit in an idle memory of the preset.
  IdealMemory(const DramPreset& preset, std::uint32_t channels);

  // The same surface as a Channel, for the controller. It always accepts, and it alone holds all
  // channels.
  void advance_to(Tick tick) { now_ = std::max(now_, tick); }
  Tick advance_until_room(bool /*is_write*/) { return now_; }
  [[nodiscard]] Tick next_event() const { return kNever; }
  bool submit(const BurstPlace& place, bool is_write, std::uint64_t id);
  [[nodiscard]] std::uint32_t queued(bool /*is_write*/) const { return 0; }
  [[nodiscard]] std::uint64_t unfinished() const { return 0; }
  [[nodiscard]] std::span<const Completion> completions() const { return completions_.all(); }
  void clear_completions() { completions_.clear(); }
  [[nodiscard]] const ChannelStatistics& statistics() const { return statistics_; }
  void set_log(CommandLog* /*log*/) {}

 private:
  Tick now_ = 0;
  std::uint64_t bursts_per_tick_;
  Tick read_latency_;
  std::uint64_t next_slot_ = 0;  // bursts_per_tick_ slots a tick, counted from tick 0
  CompletionList completions_;
  ChannelStatistics statistics_;
};

}  // namespace plena::dram
