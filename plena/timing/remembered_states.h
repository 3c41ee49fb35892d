// States of a DRAM that were met before, and what became of them. A state is one in which a
// transfer has just started, or in which the memory is at rest, whatever rows and transfers it is
// about; a step leads from one to the next. So a stream whose states recur is foretold step by step
// although the memory never rests.
//
// What a state's words and a step's key say is up to whoever makes them (dram_states.cc).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plena/dram/channel_state.h"
#include "plena/dram/statistics.h"

namespace plena {

class RememberedStates {
 public:
  using Key = std::vector<std::int32_t>;

  static constexpr std::size_t kMostTransfers = 255;  // in a state
  static constexpr std::size_t kMostBursts = 0xFFFF;  // of a transfer
  static constexpr dram::Tick kMostTicks = 0x7FFF;    // of a passage with transfers, and their ends

  /// A burst whose end became known.
  struct KnownEnd {
    std::int16_t end = 0;
    std::uint16_t burst = 0;
  };
  struct Progress {
    std::uint32_t handed = 0;      // bursts the memory has accepted
    std::uint32_t unfinished = 0;  // bursts whose end is not known
    std::int32_t accepted = 0;     // of the last burst, when all are
    std::int32_t finished = 0;     // latest end that is known
    std::uint32_t first_end = 0;   // of those that became known
    std::uint32_t last_end = 0;    // behind the last of them
  };
  /// What was seen to follow a state while no other transfer started, before tick `until`. All
  /// ticks count from the state's.
  struct Passage {
    dram::Tick until = 0;
    dram::Tick reach = 0;  // the latest tick a channel came to
    bool whole = false;    // until the memory is at rest
    std::vector<Progress> transfers;
    std::vector<KnownEnd> ends;  // transfer by transfer
  };

  /// A bank whose state changed. Its open row is that of a burst of a transfer of the state before.
  struct ChangedBank {
    static constexpr std::uint16_t kClosed = 0xFFFF;  // in the place of a place
    static constexpr std::uint16_t kSameRow = 0xFFFE;

    std::uint16_t bank = 0;   // kMaxBanks * channel + bank
    std::uint16_t place = 0;  // of the transfer's pattern
    std::uint16_t transfer = 0;
    std::int16_t ready = 0;  // counted from the state after
    std::int16_t activated = 0;
  };
  struct Counts {
    dram::ActivityCounts activity;
    // How often each latency occurred, by is_write.
    std::array<std::vector<std::pair<std::uint32_t, std::uint32_t>>, 2> latencies;
    void add_to(dram::ChannelStatistics& statistics, std::uint64_t times) const;
  };
  struct State;
  struct Step {
    State* to = nullptr;
    dram::Tick until = 0;  // those of the passage
    dram::Tick reach = 0;
    dram::Tick refresh_moved = 0;  // by how much later the next refresh is
    std::uint64_t times = 0;       // how often it happened without being simulated
    dram::Tick refresh = -1;       // until one that falls into it; -1: none does
    // The step that followed it last, where a transfer starts, and its bytes.
    Step* next = nullptr;
    const std::byte* next_bytes = nullptr;
    // What is looked at each time, side by side: the key, the passage's transfers, changed banks.
    std::uint32_t key_words = 0;
    std::uint32_t transfers = 0;
    std::uint32_t changed_banks = 0;
    std::unique_ptr<std::byte[]> bytes;
    // What is not.
    std::shared_ptr<const Passage> passage;
    std::unique_ptr<const Counts> counts;

    [[nodiscard]] std::span<const std::int32_t> key() const {
      return {reinterpret_cast<const std::int32_t*>(bytes.get()), key_words};
    }
    [[nodiscard]] std::span<const Progress> progress() const {
      return {reinterpret_cast<const Progress*>(bytes.get() + key().size_bytes()), transfers};
    }
    [[nodiscard]] std::span<const ChangedBank> changed() const {
      return {reinterpret_cast<const ChangedBank*>(bytes.get() + key().size_bytes() +
                                                   progress().size_bytes()),
              changed_banks};
    }
    void follow_with(Step* step) {
      next = step;
      next_bytes = step->bytes.get();
    }
    void write(const Key& key, const Passage& seen, std::span<const ChangedBank> changed);
  };
  struct State {
    std::uint32_t number = 0;
    bool at_rest = false;
    dram::Tick settled = 0;  // at rest: from then on, nothing changes
    // The longest way to a refresh that fell into a step or a passage from here.
    dram::Tick refreshed_after = -1;
    Step* rest = nullptr;                 // to rest, without a refresh
    std::shared_ptr<const Passage> seen;  // the longest, if no refresh falls into it
    const dram::StateWords* words = nullptr;
  };

  /// The state of these words, and whether it is new. Valid until forget().
  std::pair<State*, bool> state(const dram::StateWords& words);
  /// Null if there is none.
  Step* find_step(const Key& key);
  /// Unless there is one, which is the same.
  Step* add_step(const Key& key, Step step, std::span<const ChangedBank> changed);
  /// What was seen to follow a state with a refresh, by a key of its own; null if nothing.
  [[nodiscard]] const std::shared_ptr<const Passage>* find_passage(const Key& key) const;
  void add_passage(const Key& key, std::shared_ptr<const Passage> passage);

  /// Whether it takes so much memory that it is time to forget().
  [[nodiscard]] bool full() const { return bytes_ > most_bytes_; }
  void set_most_bytes(std::size_t bytes) { most_bytes_ = bytes; }
  /// But for what was counted.
  void forget();

  /// Adds what the controller would have counted.
  void add_to(dram::ChannelStatistics& statistics) const;

 private:
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct WordsHash {
    std::size_t operator()(const dram::StateWords& words) const;
  };

  std::unordered_map<dram::StateWords, State, WordsHash> states_;
  std::unordered_map<Key, Step, KeyHash> steps_;
  std::unordered_map<Key, std::shared_ptr<const Passage>, KeyHash> passages_;
  std::uint32_t met_ = 0;
  std::size_t bytes_ = 0;
  std::size_t most_bytes_ = std::size_t{256} << 20;
  dram::ChannelStatistics forgotten_;  // counts of steps that are gone
};

}  // namespace plena
