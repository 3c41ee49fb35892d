// How long the start of one command must stay behind the start of another, in ticks: the rules
// of constraints.tsv, worked out from a preset's parameters.
#pragma once

#include <array>

#include "plena/dram/preset.h"
#include "plena/dram/tick.h"

namespace plena::dram {

/// Named previous_next; the scope is the bank unless the name says otherwise. The rules for an
/// automatic precharge and for refresh management follow from these (device_timing.cc).
struct Gaps {
  explicit Gaps(const DramPreset& preset);

  // Command buses, shared by the channel.
  ShortTick row_bus_activate;  // an activate is the long command
  ShortTick row_bus_other;
  ShortTick column_bus;

  // Data bus and column path; arrays by is_write.
  std::array<ShortTick, 2> column_column;        // same kind, pseudo-channel
  std::array<ShortTick, 2> column_column_group;  // same kind
  ShortTick read_read_stack;                     // other stack id of the pseudo-channel
  ShortTick read_write;                          // pseudo-channel
  ShortTick write_read, write_read_group;        // pseudo-channel; bank group
  ShortTick read_latency;                        // read command to the last datum

  // Rows.
  std::array<ShortTick, 2> activate_column;  // by is_write
  ShortTick activate_precharge;
  std::array<ShortTick, 2> column_precharge;  // by is_write
  ShortTick activate_activate, activate_activate_group, activate_activate_channel;
  ShortTick four_activates;  // pseudo-channel: nFAW
  ShortTick precharge_activate, precharge_precharge_channel;
  /// What a refresh waits longer than an activate of the same bank would: the activate is the
  /// longer command, so its end comes later.
  ShortTick refresh_after_activate_rule;

  // Refresh.
  ShortTick refresh_all_activate, refresh_all_precharge;  // pseudo-channel
  ShortTick refresh_bank_activate;
  ShortTick refresh_bank_activate_channel, refresh_bank_refresh_bank_channel;
  ShortTick activate_refresh_bank_channel;
  ShortTick manage_all_activate, manage_all_precharge;  // pseudo-channel
  ShortTick manage_bank_activate;

  ShortTick refresh_all_interval, refresh_bank_interval;
};

}  // namespace plena::dram
