#include "plena/dram/gaps.h"

#include <algorithm>

namespace plena::dram {
namespace {

// Lengths of the commands on their bus, in ticks (hbm.md, "row command: ACT / other").
struct CommandLengths {
  ShortTick activate, row, column;
};

CommandLengths command_lengths(Standard standard) {
  if (standard == Standard::Hbm3) return {.activate = 3, .row = 1, .column = 2};
  return {.activate = 2, .row = 1, .column = 1};
}

}  // namespace

Gaps::Gaps(const DramPreset& preset) {
  const Timings& t = preset.timings;
  const auto [activate, row, column] = command_lengths(preset.standard);
  const auto ticks = [&](ShortTick ck) { return ck * preset.ticks_per_ck; };
  // A parameter counts from end to end: starts are further apart by what the first is longer.
  const auto start_to_start = [&](ShortTick ck, ShortTick previous, ShortTick next) {
    return ticks(ck) + previous - next;
  };

  row_bus_activate = activate;
  row_bus_other = row;
  column_bus = ticks(1);

  const ShortTick any_group = ticks(std::max(t.nBL, t.nCCDS));
  const ShortTick one_group = std::max(any_group, ticks(t.nCCDL));
  column_column = {any_group, any_group};
  column_column_group = {one_group, one_group};
  read_read_stack = std::max(any_group, ticks(t.nCCDR));
  read_write = ticks(t.nRTW);
  write_read = ticks(t.nCWL + t.nBL + t.nWTRS);
  write_read_group = ticks(t.nCWL + t.nBL + t.nWTRL);
  read_latency = ticks(t.nCL + t.nBL);

  activate_column = {start_to_start(t.nRCDRD, activate, column),
                     start_to_start(t.nRCDWR, activate, column)};
  activate_precharge = start_to_start(t.nRAS, activate, row);
  column_precharge = {start_to_start(t.nRTP, column, row),
                      start_to_start(t.nCWL + t.nBL + t.nWR, column, row)};
  activate_activate = ticks(t.nRC);
  activate_activate_group = ticks(t.nRRDL);
  activate_activate_channel = ticks(t.nRRDS);
  four_activates = ticks(t.nFAW);
  precharge_activate = start_to_start(t.nRP, row, activate);
  precharge_precharge_channel = ticks(t.nPPD);
  refresh_after_activate_rule = activate - row;

  refresh_all_activate = start_to_start(t.nRFC, row, activate);
  refresh_all_precharge = ticks(t.nRFC);
  refresh_bank_activate = start_to_start(t.nRFCpb, row, activate);
  refresh_bank_activate_channel = start_to_start(t.nRREFD, row, activate);
  // HBM2 has no limit between two per-bank refreshes (constraints.tsv).
  refresh_bank_refresh_bank_channel = preset.standard == Standard::Hbm3 ? ticks(t.nRREFD) : 0;
  activate_refresh_bank_channel = start_to_start(t.nRRDS, activate, row);
  manage_all_activate = start_to_start(t.nRFMab, row, activate);
  manage_all_precharge = ticks(t.nRFMab);
  manage_bank_activate = start_to_start(t.nRFMpb, row, activate);

  refresh_all_interval = ticks(t.nREFI);
  refresh_bank_interval = ticks(t.nREFIpb);
}

}  // namespace plena::dram
