// Runs of transfers on a DRAM that were met before. A run begins with a transfer that finds the
// memory at rest; each that joins before it is over continues it. How it fares depends on which
// bursts are asked for when, on the state of their banks, and on a refresh if one falls into it,
// all relative to its start: not on when that is, nor on which rows they are. A run that agrees in
// all of that ends the same way.
//
// What a key says is up to whoever makes it (dram_runs.cc). That of a continued run names the run
// it continues, so that it says no more than what is new.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plena/dram/shape.h"
#include "plena/dram/statistics.h"

namespace plena {

class RememberedStreams {
 public:
  using Key = std::vector<std::int32_t>;
  using Ends = std::vector<std::int32_t>;

  static constexpr std::int32_t kUnknown = std::numeric_limits<std::int32_t>::max();

  /// All ticks count from the edge at which the first burst was offered.
  struct Transfer {
    bool all_accepted = false;
    std::uint32_t unfinished = 0;      // bursts whose end is not known
    dram::Tick accepted = 0;           // of the last burst, when all are
    dram::Tick finished = 0;           // latest end that is known
    std::shared_ptr<const Ends> ends;  // of its bursts
  };
  /// What was seen of a run up to `until`. Only one that was seen to its end is whole and has more
  /// than transfers.
  struct Outcome {
    bool whole = false;
    dram::Tick until = 0;              // if whole, when the memory is at rest again
    dram::Tick edge = 0;               // where the next burst may be handed over
    std::size_t turn = 0;              // whose turn it is then
    dram::Tick refresh_due = 0;        // the next one then, of a run with refreshes
    std::vector<Transfer> transfers;   // in the order in which they joined
    std::vector<std::int32_t> memory;  // its state at rest
    dram::ActivityCounts activity;     // what the controller counted
    std::array<std::vector<std::pair<dram::Tick, std::uint64_t>>, 2> latencies;  // by is_write
    std::uint64_t times = 0;  // how often it happened without being simulated
  };
  struct Run {
    std::uint32_t number = 0;          // never 0
    bool refreshes = false;            // fall into it
    std::vector<dram::BankSet> banks;  // by channel, those whose state its key says
    std::unique_ptr<Outcome> outcome;  // null: not known
  };

  /// The run of this key, and whether it is new: then only its number is filled in. Valid until
  /// forget().
  std::pair<Run*, bool> at(const Key& key);
  /// Null if there is none.
  Run* find(const Key& key);
  /// In the place of what was known of it.
  void remember(Run& run, Outcome outcome);

  /// Whether it takes so much memory that it is time to forget().
  [[nodiscard]] bool full() const { return words_ > kMostWords; }
  /// But for what was counted.
  void forget();

  /// Adds what the controller would have counted.
  void add_to(dram::ChannelStatistics& statistics) const;
  static void add_to(dram::ChannelStatistics& statistics, const Outcome& outcome,
                     std::uint64_t times);

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  static constexpr std::size_t kMostWords = std::size_t{1} << 24;  // 64 MiB

  std::unordered_map<Key, Run, Hash> known_;
  std::uint32_t met_ = 0;
  std::size_t words_ = 0;              // of 4 bytes in keys and outcomes
  dram::ChannelStatistics forgotten_;  // counts of outcomes that are gone
};

}  // namespace plena
