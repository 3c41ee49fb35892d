#include "plena/timing/ideal_hbm.h"

#include <algorithm>

namespace plena {

// A command is sent a tick after its request was accepted; data are there nCL + nBL later.
IdealHbmSettings ideal_settings(const dram::DramSettings& memory) {
  const dram::DramPreset& preset = memory.preset;
  const auto ticks_per_ck = static_cast<std::uint32_t>(preset.ticks_per_ck);
  const auto bl = static_cast<std::uint32_t>(preset.timings.nBL);
  const auto cl = static_cast<std::uint32_t>(preset.timings.nCL);
  return {.tick_fs = static_cast<std::uint64_t>(preset.tck_ps) * 1000 / ticks_per_ck,
          .bursts_per_tick =
              memory.channels * preset.organisation.pseudo_channels / (bl * ticks_per_ck),
          .read_latency = 1 + (cl + bl) * ticks_per_ck,
          .write_latency = 1};
}

IdealHbm::IdealHbm(const IdealHbmSettings& settings, std::uint32_t clock_mhz)
    : settings_(settings), clock_(settings.tick_fs, clock_mhz) {}

Ticket IdealHbm::start(const TransferStart& start, const TransferRows& rows) {
  if (free_.empty()) {
    free_.push_back(static_cast<Ticket>(transfers_.size()));
    transfers_.emplace_back();
  }
  const Ticket ticket = free_.back();
  free_.pop_back();

  Transfer& t = transfers_[ticket];
  t.bursts_per_row = rows.uniform_bursts();
  t.rows = rows.count;
  t.after = start.after;
  std::uint64_t bursts = std::uint64_t{t.bursts_per_row} * rows.count;
  if (t.bursts_per_row == 0) {
    t.row_ends.clear();
    for_each_burst(
        rows, [&](std::uint64_t, std::uint32_t) { ++bursts; },
        [&](std::uint32_t, const HbmRow&) {
          t.row_ends.push_back(static_cast<std::uint32_t>(bursts));
        });
  }
  (rows.write ? traffic_.written : traffic_.read) += bursts;

  // A burst handed over at a tick is served in that tick's successor at the earliest; the latency
  // counts from the acceptance of the first of them.
  const std::uint64_t tick = clock_.tick_at(start.issue + start.before);
  t.first_slot = std::max(next_slot_, tick * settings_.bursts_per_tick);
  next_slot_ = t.first_slot + bursts;
  t.latency = rows.write ? settings_.write_latency : settings_.read_latency;
  t.accepted = clock_.cycle_at(tick);
  t.complete = delivered(t, rows.count - 1);
  return ticket;
}

Cycle IdealHbm::delivered(const Transfer& t, std::uint32_t row) const {
  const std::uint64_t bursts =
      t.bursts_per_row != 0 ? std::uint64_t{t.bursts_per_row} * (row + 1) : t.row_ends[row];
  const std::uint64_t tick = (t.first_slot + bursts - 1) / settings_.bursts_per_tick + t.latency;
  return clock_.cycle_at(tick) + t.after;
}

// Rows are delivered in order.
Cycle IdealHbm::delivered(Ticket ticket, std::uint32_t /*first_row*/, std::uint32_t last_row) {
  return delivered(transfers_[ticket], last_row);
}

Cycle IdealHbm::first_complete(std::span<const Ticket> tickets) {
  Cycle first = ~Cycle{0};
  for (const Ticket ticket : tickets) first = std::min(first, transfers_[ticket].complete);
  return first;
}

}  // namespace plena
