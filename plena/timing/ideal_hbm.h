// A memory without banks, rows or refresh: a fixed latency and the peak bandwidth.
#pragma once

#include <vector>

#include "plena/dram/controller.h"
#include "plena/timing/hbm_model.h"

namespace plena {

/// What the ideal memory is: by default HBM2-2000's peak, and its latency of a row hit.
struct IdealHbmSettings {
  std::uint64_t tick_fs = 1'000'000;  // 1 ns
  std::uint32_t bursts_per_tick = 8;  // one a channel
  std::uint32_t read_latency = 17;    // ticks from acceptance to the last datum
  std::uint32_t write_latency = 1;    // ticks from acceptance to the write command
};

/// The same of a memory whose preset is ideal: its clock, its channels, a row hit's latency.
IdealHbmSettings ideal_settings(const dram::DramSettings& memory);

/// Accepts every burst at once; bursts leave in order of acceptance, bursts_per_tick a tick. All
/// times are known when a transfer starts and follow from a few numbers, so that a row nobody asks
/// about costs nothing.
class IdealHbm final : public HbmModel {
 public:
  IdealHbm(const IdealHbmSettings& settings, std::uint32_t clock_mhz);

  Ticket start(const TransferStart& start, const TransferRows& rows) override;
  Cycle delivered(Ticket ticket, std::uint32_t first_row, std::uint32_t last_row) override;
  Cycle accepted(Ticket ticket) override { return transfers_[ticket].accepted; }
  Cycle complete(Ticket ticket) override { return transfers_[ticket].complete; }
  bool accepted_by(Ticket ticket, Cycle horizon) override {
    return transfers_[ticket].accepted <= horizon;
  }
  bool complete_by(Ticket ticket, Cycle horizon) override {
    return transfers_[ticket].complete <= horizon;
  }
  Cycle first_complete(std::span<const Ticket> tickets) override;
  [[nodiscard]] PeakRate peak() const override { return clock_.rate(settings_.bursts_per_tick, 1); }
  void release(Ticket ticket) override { free_.push_back(ticket); }

 private:
  struct Transfer {
    std::uint64_t first_slot = 0;      // of its first burst
    std::uint64_t latency = 0;         // ticks from a burst's slot to its end
    std::uint32_t bursts_per_row = 0;  // 0: see row_ends
    std::uint32_t rows = 0;
    Cycle after = 0;
    Cycle accepted = 0;
    Cycle complete = 0;
    std::vector<std::uint32_t> row_ends;  // bursts up to the end of each row
  };

  [[nodiscard]] Cycle delivered(const Transfer& transfer, std::uint32_t row) const;

  IdealHbmSettings settings_;
  ClockRatio clock_;
  std::uint64_t next_slot_ = 0;  // bursts_per_tick slots a tick, counted from tick 0
  std::vector<Transfer> transfers_;
  std::vector<Ticket> free_;
};

}  // namespace plena
