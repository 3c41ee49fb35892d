// Loads of the emulator's memory that were simulated before. What a load takes depends on the state
// of its idle channels relative to now, on which of its blocks share a bank, a bank group, a
// pseudo-channel and a channel, and on which blocks of a bank share a row with each other or with
// the row that is open; not on which of them these are, and not on when. A load that agrees in all
// of that ends the same way.
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
  static constexpr std::size_t kChannels = 2;  // each of them stands for four
  using Channels = std::array<EmulatorChannel, kChannels>;

  /// Brings idle channels to the end of a load of these blocks, if one like it is known.
  std::optional<EmulatorClocks> recall(Channels& channels, EmulatorClocks before,
                                       const std::vector<std::uint64_t>& blocks);

  /// Keeps how the load that recall() has just not known went. The channels are idle.
  void remember(const Channels& channels, EmulatorClocks before, EmulatorClocks after);

 private:
  using Part = EmulatorChannel::Part;
  using PartState = EmulatorChannel::PartState;

  // Parts of one kind, numbered as the load at hand comes to them.
  class Numbers {
   public:
    void clear();
    /// True when the part had no number.
    bool number(std::size_t part);
    [[nodiscard]] std::uint16_t operator[](std::size_t part) const { return numbers_[part]; }

   private:
    static constexpr std::uint16_t kNone = 0xFFFF;
    std::array<std::uint16_t, kChannels * EmulatorChannel::kBanks> numbers_{};
    std::uint16_t next_ = 0;
  };
  struct PartOfChannel {
    Part part;
    std::uint8_t channel;
    std::uint8_t index;
  };
  struct Bank {
    std::uint8_t channel = 0;
    std::uint8_t index = 0;
    std::vector<std::int64_t> rows;  // in the order in which they appear; the open one is the first
  };

  struct Outcome {
    std::int64_t now = 0;  // relative to the tick that came next
    std::uint64_t next = 0;
    std::vector<PartState> states;   // of the parts, in order of appearance
    std::vector<std::uint8_t> open;  // index in each bank's rows, likewise
  };

  bool describe(const Channels& channels, EmulatorClocks before,
                const std::vector<std::uint64_t>& blocks);
  bool describe_block(const Channels& channels, EmulatorClocks before, const EmulatorPlace& place);
  bool come_to(const Channels& channels, EmulatorClocks before, PartOfChannel part);
  Bank& new_bank(std::uint8_t channel, std::uint8_t index, std::int64_t open);

  std::unordered_map<std::string, Outcome> known_;

  // The load at hand.
  std::string key_;                                           // empty: it cannot be kept
  std::array<Numbers, EmulatorChannel::kPartKinds> numbers_;  // by Part
  std::vector<PartOfChannel> parts_;                          // in order of appearance
  std::vector<Bank> banks_;  // by number; those from bank_count_ on lend their memory
  std::size_t bank_count_ = 0;
};

}  // namespace plena
