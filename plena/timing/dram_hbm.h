// The memory behind a DRAM controller: bursts handed over clock by clock, channels that refuse
// (timing.md, rule 6).
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "plena/dram/controller.h"
#include "plena/timing/hbm_model.h"

namespace plena {

class DramHbm final : public HbmModel {
 public:
  DramHbm(dram::Controller controller, std::uint32_t clock_mhz);

  Ticket start(const TransferStart& start, const TransferRows& rows) override;
  Cycle delivered(Ticket ticket, std::uint32_t first_row, std::uint32_t last_row) override;
  Cycle accepted(Ticket ticket) override;
  Cycle complete(Ticket ticket) override;
  bool accepted_by(Ticket ticket, Cycle horizon) override;
  bool complete_by(Ticket ticket, Cycle horizon) override;
  Cycle first_complete(std::span<const Ticket> tickets) override;
  void release(Ticket ticket) override { free_.push_back(ticket); }
  [[nodiscard]] PeakRate peak() const override;

  [[nodiscard]] std::optional<dram::ChannelStatistics> controller_statistics() const override {
    return controller_.statistics();
  }
  [[nodiscard]] std::uint64_t queued_bursts() const override;
  void set_listener(TimelineListener* listener) override;
  [[nodiscard]] const dram::Controller& controller() const { return controller_; }

 private:
  struct Row {
    std::uint32_t begin = 0;  // its first burst; the one before may be shared with the row before
    std::uint32_t end = 0;
  };
  struct Transfer {
    bool write = false;
    Cycle after = 0;
    dram::Tick start = 0;                  // the clock edge of its first offer
    std::uint32_t handed = 0;              // bursts the memory has accepted
    std::uint32_t unfinished = 0;          // bursts without a known end
    dram::Tick accepted = 0;               // of the last burst, when all are
    dram::Tick finished = 0;               // latest end that is known
    std::vector<std::uint64_t> addresses;  // of its bursts
    std::vector<dram::Tick> ends;          // of its bursts; kNever: not known
    std::vector<Row> rows;
  };
  // Transfers with bursts to hand over, oldest first, of load-M, load-V and store.
  using Turns = std::array<std::deque<Ticket>, 3>;

  void lay_out(const TransferRows& rows, Transfer& transfer);
  [[nodiscard]] dram::Tick next_edge() const;
  // Whether a unit has a burst to offer at edge_, and whether no other one has.
  [[nodiscard]] bool offers(std::size_t unit) const;
  [[nodiscard]] bool offers_alone(std::size_t unit) const;
  void hand_over(dram::Tick edge);
  dram::Tick hand_over_front(std::deque<Ticket>& transfers, bool alone);
  void collect();
  void tell_commands();
  // Lets time go on until `done()`, up to and including tick `limit`; without a limit, up to
  // `beyond_event` ticks further than the event that makes it so.
  template <class Done>
  void run(Done&& done, dram::Tick limit = dram::kNever, dram::Tick beyond_event = 0);
  [[nodiscard]] dram::Tick beyond_event(const Transfer& transfer) const {
    return transfer.write ? 0 : read_latency_ - 1;
  }
  void give_up();
  [[nodiscard]] dram::Tick last_before_issue_after(Cycle horizon) const;
  [[nodiscard]] static bool rows_known(const Transfer& transfer, std::uint32_t first,
                                       std::uint32_t last);
  [[nodiscard]] Cycle complete_cycle(const Transfer& transfer) const {
    return clock_.cycle_at(static_cast<std::uint64_t>(transfer.finished)) + transfer.after;
  }

  dram::Controller controller_;
  ClockRatio clock_;
  dram::Tick read_latency_;  // from a read command to its last datum
  std::vector<Transfer> transfers_;
  std::vector<Ticket> free_;
  Turns waiting_;
  std::size_t turn_ = 0;
  TimelineListener* listener_ = nullptr;
  dram::CommandLog log_;  // commands not told yet; kept only where somebody listens
  dram::Tick edge_ = 0;   // where the next burst may be handed over at the earliest
};

}  // namespace plena
