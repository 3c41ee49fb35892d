// The commands a controller can send to a channel, and the record of one that was sent.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "plena/dram/tick.h"

namespace plena::dram {

enum class Command : std::uint8_t {
  Activate,            // ACT: opens a row
  Precharge,           // PREpb: closes the row of one bank
  PrechargeAll,        // PREab: closes every row of a pseudo-channel
  Read,                // RD
  Write,               // WR
  ReadAutoPrecharge,   // RDA: the scheduler does not use it
  WriteAutoPrecharge,  // WRA: the scheduler does not use it
  RefreshAll,          // REFab: every bank of a pseudo-channel
  RefreshBank,         // REFpb
  ManageRefreshAll,    // RFMab, HBM3: the scheduler does not use it
  ManageRefreshBank,   // RFMpb, HBM3: the scheduler does not use it
};
inline constexpr std::size_t kCommandCount = 11;

/// The name in data sheets and command traces.
constexpr std::string_view name(Command command) {
  constexpr std::array<std::string_view, kCommandCount> kNames = {
      "ACT", "PREpb", "PREab", "RD", "WR", "RDA", "WRA", "REFab", "REFpb", "RFMab", "RFMpb"};
  return kNames[static_cast<std::size_t>(command)];
}

/// Column commands move a burst over the data bus; all others use the row command bus.
constexpr bool is_column(Command command) {
  return command >= Command::Read && command <= Command::WriteAutoPrecharge;
}

/// A command as it went over the bus. `bank` counts banks of the channel (shape.h); commands to a
/// whole pseudo-channel carry its first bank. `row` and `column` are 0 where the command has none.
struct CommandRecord {
  Tick tick = 0;
  std::uint32_t channel = 0;
  Command command = Command::Activate;
  std::uint8_t bank = 0;
  std::uint8_t column = 0;
  std::uint32_t row = 0;

  friend bool operator==(const CommandRecord&, const CommandRecord&) = default;
};

using CommandLog = std::vector<CommandRecord>;

}  // namespace plena::dram
