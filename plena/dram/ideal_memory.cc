#include "plena/dram/ideal_memory.h"

#include <algorithm>

#include "plena/dram/gaps.h"

namespace plena::dram {

// Each pseudo-channel moves a burst every nBL: both together one burst a tick in HBM2.
IdealMemory::IdealMemory(const DramPreset& preset, std::uint32_t channels)
    : bursts_per_tick_(std::uint64_t{channels} * preset.organisation.pseudo_channels /
                       static_cast<std::uint64_t>(preset.timings.nBL * preset.ticks_per_ck)),
      read_latency_(Gaps(preset).read_latency) {}

bool IdealMemory::submit(const BurstPlace& /*place*/, bool is_write, std::uint64_t id) {
  next_slot_ = std::max(next_slot_, static_cast<std::uint64_t>(now_ + 1) * bursts_per_tick_);
  const Tick command = static_cast<Tick>(next_slot_ / bursts_per_tick_);
  ++next_slot_;
  const Tick finished = is_write ? command : command + read_latency_;
  DirectionStatistics& counts = statistics_.direction[is_write];
  ++counts.rows.hits;
  counts.latency.add(finished - now_);
  ++statistics_.commands[static_cast<std::size_t>(is_write ? Command::Write : Command::Read)];
  completions_.add() = {id, now_, finished, is_write};
  return true;
}

}  // namespace plena::dram
