// The memory behind a DRAM controller: bursts handed over clock by clock, channels that refuse
// (timing.md, rule 6).
//
// Transfers that start while the memory is at rest, and those that join them, are a run
// (remembered_streams.h). One that was met before is foretold: its outcome counts at once, but the
// memory itself follows only when the next transfer starts behind its end. One that starts earlier
// makes it another, longer run. A run that was not met is simulated burst by burst, and what is
// seen of it remembered; so is one that is asked more than was seen before.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "plena/dram/controller.h"
#include "plena/timing/burst_patterns.h"
#include "plena/timing/hbm_model.h"
#include "plena/timing/remembered_streams.h"

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
  void release(Ticket ticket) override { released_.push_back(ticket); }
  void catch_up() override;
  [[nodiscard]] PeakRate peak() const override;

  [[nodiscard]] std::optional<dram::ChannelStatistics> controller_statistics() const override;
  /// Whether runs of transfers are remembered; the cycles are the same. On unless switched off,
  /// before the first transfer.
  void remember_streams(bool on) { remembers_ = on; }
  [[nodiscard]] std::uint64_t queued_bursts() const override;
  /// Bursts of runs known before, which were not simulated.
  [[nodiscard]] std::uint64_t bursts_remembered() const { return bursts_remembered_; }
  void set_listener(TimelineListener* listener) override;

 private:
  struct Row {
    std::uint32_t begin = 0;  // its first burst; the one before may be shared with the row before
    std::uint32_t end = 0;
  };
  struct Transfer {
    TransferRows pattern;
    Cycle after = 0;
    dram::Tick start = 0;  // the clock edge of its first offer
    std::uint32_t bursts = 0;
    std::uint32_t handed = 0;      // bursts the memory has accepted
    std::uint32_t unfinished = 0;  // bursts without a known end
    dram::Tick accepted = 0;       // of the last burst, when all are
    dram::Tick finished = 0;       // latest end that is known
    // The outcome that has the ends of its bursts, counted from `told_from`; null: `ends` has them.
    const RememberedStreams::Transfer* told = nullptr;
    dram::Tick told_from = 0;
    // Written down when somebody needs them.
    std::shared_ptr<const RememberedStreams::Ends> recorded;  // the ends, once all are known
    bool laid_out = false;
    std::vector<std::uint64_t> addresses;  // of its bursts
    std::vector<dram::Tick> ends;          // of its bursts; kNever: not known
    std::vector<Row> rows;
  };
  // Transfers with bursts to hand over, oldest first, of load-M, load-V and store.
  using Turns = std::array<std::deque<Ticket>, 3>;

  // The run at hand.
  struct CurrentRun {
    RememberedStreams::Run* run = nullptr;                // null: there is none
    const RememberedStreams::Outcome* outcome = nullptr;  // that it is foretold to have
    bool settled = false;    // no transfer has joined since it was foretold or given up
    bool simulated = false;  // burst by burst
    // While it is simulated: the memory as it was found, its next refresh, and what was counted
    // before and since.
    std::unique_ptr<dram::Controller> found;
    dram::Tick refresh_due = 0;
    dram::ActivityCounts activity_before;
    std::array<std::vector<std::uint64_t>, 2> latencies;  // how often each occurred, by is_write
    dram::Tick begin = 0;
    std::uint32_t row_base = 0;
    std::vector<Ticket> tickets;     // in the order in which they joined
    std::vector<std::size_t> turns;  // the unit of each
  };

  [[nodiscard]] Ticket take_ticket();
  static void lay_out(Transfer& transfer);
  [[nodiscard]] dram::Tick next_edge() const;
  // Whether a unit has a burst to offer at edge_, and whether no other one has.
  [[nodiscard]] bool offers(std::size_t unit) const;
  [[nodiscard]] bool offers_alone(std::size_t unit) const;
  void hand_over(dram::Tick edge);
  dram::Tick hand_over_front(std::deque<Ticket>& transfers, bool alone);
  void note_completion(const dram::Completion& completion);
  void collect();
  void tell_commands();
  // Lets time go on until `done()`, which waits for a transfer, up to and including tick `limit`;
  // without a limit, up to `beyond_event` ticks further than the event that makes it so.
  template <class Done>
  void run(const Transfer* transfer, Done&& done, dram::Tick limit = dram::kNever,
           dram::Tick beyond_event = 0);
  template <class Done>
  void simulate(Done&& done, dram::Tick limit, dram::Tick beyond_event);
  // Hands over as much of a transfer as is offered by `limit`. Channels go on only as far as that
  // takes, since it cannot be finished before.
  void hand_over_all(const Transfer& transfer, dram::Tick limit);
  [[nodiscard]] dram::Tick beyond_event(const Transfer& transfer) const {
    return transfer.pattern.write ? 0 : read_latency_ - 1;
  }
  void give_up();

  // Runs (dram_runs.cc).
  void pass_time_to(dram::Tick edge);
  void note_start(Ticket ticket, std::size_t turn, const BurstPattern& pattern);
  void begin_run(Ticket ticket, std::size_t turn, const BurstPattern& pattern);
  void continue_run(Ticket ticket, std::size_t turn, const BurstPattern& pattern);
  void add_to_run(Ticket ticket, std::size_t turn);
  void settle_run();
  void write_refresh_key(const RememberedStreams::Run& run, const dram::Controller& found,
                         dram::Tick refresh_due);
  [[nodiscard]] RememberedStreams::Run* known_run();
  void foretell_run(RememberedStreams::Run& run);
  void simulate_run();
  [[nodiscard]] bool simulate_run_to(dram::Tick last);
  void record_run(bool at_rest);
  void record_end(RememberedStreams::Outcome& outcome);
  RememberedStreams::Transfer record(Transfer& transfer) const;
  void note_latency(const dram::Completion& completion);
  void follow_run();
  void take_back_run();
  void end_run();
  void forget_runs();

  [[nodiscard]] dram::Tick last_before_issue_after(Cycle horizon) const;
  [[nodiscard]] static bool rows_known(Transfer& transfer, std::uint32_t first, std::uint32_t last);
  [[nodiscard]] static dram::Tick last_end(Transfer& transfer, std::uint32_t first,
                                           std::uint32_t last);
  [[nodiscard]] Cycle complete_cycle(const Transfer& transfer) const {
    return clock_.cycle_at(static_cast<std::uint64_t>(transfer.finished)) + transfer.after;
  }

  dram::Controller controller_;
  ClockRatio clock_;
  dram::Tick read_latency_;  // from a read command to its last datum
  std::vector<Transfer> transfers_;
  std::vector<Ticket> released_;  // nobody asks any more, but the run at hand may need them
  std::vector<Ticket> free_;
  Turns waiting_;
  std::size_t turn_ = 0;
  TimelineListener* listener_ = nullptr;
  dram::CommandLog log_;  // commands not told yet; kept only where somebody listens
  dram::Tick edge_ = 0;   // where the next burst may be handed over at the earliest

  bool remembers_ = true;
  dram::Tick latest_start_ = 0;
  BurstPatterns patterns_;
  RememberedStreams streams_;
  std::uint64_t bursts_remembered_ = 0;
  RememberedStreams::Key key_;  // scratch
  CurrentRun current_;
};

}  // namespace plena
