// Loads of the emulator's memory that were simulated before. What a load takes depends on the state
// of its idle channels relative to now, on the bank of every request, and on which requests of a
// bank share a row with each other or with the row that is open; not on which rows those are, and
// not on when. A load that agrees in all of that ends the same way.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plena/timing/emulator_channel.h"

namespace plena {

struct EmulatorClocks {
  std::uint64_t now = 0;   // instant
  std::uint64_t next = 0;  // the tick that comes next
};

class EmulatorStreams {
 public:
  static constexpr std::size_t kChannels = 8;
  using Channels = std::array<EmulatorChannel, kChannels>;

  /// Brings idle channels to the end of a load of these blocks, if one like it is known.
  std::optional<EmulatorClocks> recall(Channels& channels, EmulatorClocks before,
                                       const std::vector<std::uint64_t>& blocks);

  /// Keeps how the load that recall() has just not known went. The channels are idle.
  void remember(const Channels& channels, EmulatorClocks before, EmulatorClocks after);

 private:
  static constexpr unsigned kBanks = 32;  // of a channel
  static constexpr std::size_t kMostRows = 255;

  // Rows of one bank in the order in which they appear; the open one is the first.
  using Rows = std::vector<std::int64_t>;

  struct Outcome {
    std::int64_t now = 0;  // relative to the tick that came next
    std::uint64_t next = 0;
    std::array<EmulatorChannel::State, kChannels> states;
    std::array<std::array<std::uint8_t, kBanks>, kChannels> open;  // index in the bank's rows
  };

  bool describe(const Channels& channels, EmulatorClocks before,
                const std::vector<std::uint64_t>& blocks);

  std::unordered_map<std::string, Outcome> known_;
  std::string key_;  // of the load at hand; empty: it cannot be kept
  std::array<std::array<Rows, kBanks>, kChannels> rows_;
};

}  // namespace plena
