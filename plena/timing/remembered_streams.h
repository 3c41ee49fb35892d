// Runs of transfers on a DRAM at rest that were simulated before. How a run fares depends on which
// bursts it asks for when, and on the state of the banks they are in, both relative to its start:
// not on when that is, nor on which rows they are. A run that agrees in all of that ends the same
// way. What a key says is up to whoever makes it (dram_hbm.cc).
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plena/dram/statistics.h"

namespace plena {

class RememberedStreams {
 public:
  using Key = std::vector<std::int32_t>;

  /// All ticks count from the edge at which the first burst was offered.
  struct Transfer {
    dram::Tick accepted = 0;  // of the last burst
    dram::Tick finished = 0;
    std::vector<std::int32_t> ends;  // of its bursts
  };
  struct Outcome {
    dram::Tick rest = 0;              // when the memory is at rest again
    dram::Tick edge = 0;              // where the next burst may be handed over
    std::size_t turn = 0;             // whose turn it is then
    std::vector<Transfer> transfers;  // in the order of the key
    std::vector<std::int32_t> banks;  // their state at rest
    dram::ActivityCounts activity;    // what the controller counted
    std::array<std::vector<std::pair<dram::Tick, std::uint64_t>>, 2> latencies;  // by is_write
    std::uint64_t times = 0;  // how often it happened without being simulated
  };

  /// Null if nothing is known. Valid until remember().
  Outcome* find(const Key& key);
  /// Bounded: when there is too much, everything before is forgotten.
  Outcome* remember(const Key& key, Outcome outcome);

  /// Adds what the controller would have counted.
  void add_to(dram::ChannelStatistics& statistics) const;

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  std::unordered_map<Key, Outcome, Hash> known_;
  std::size_t words_ = 0;              // of 4 bytes in keys and outcomes
  dram::ChannelStatistics forgotten_;  // counts of outcomes that are gone
};

}  // namespace plena
