// The memory behind a DRAM controller: bursts handed over clock by clock, channels that refuse
// (timing.md, rule 6).
//
// What follows a state of the memory that was met before is foretold (remembered_states.h): the
// memory itself stands still until something new happens, and is then put into the state it has to
// be in. What was not met is simulated burst by burst, and what is seen of it remembered.
#pragma once

#include <array>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "plena/dram/controller.h"
#include "plena/timing/burst_patterns.h"
#include "plena/timing/hbm_model.h"
#include "plena/timing/remembered_states.h"

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
  /// Whether streams are remembered; the cycles are the same. On unless switched off, before the
  /// first transfer.
  void remember_streams(bool on) { remembers_ = on && controller_.has_states(); }
  /// How much memory that may take; then everything is forgotten. 256 MiB unless set.
  void remember_at_most(std::size_t bytes) { states_.set_most_bytes(bytes); }
  [[nodiscard]] std::uint64_t queued_bursts() const override;
  /// Bursts of transfers that took known steps and were not simulated.
  [[nodiscard]] std::uint64_t bursts_remembered() const { return bursts_remembered_; }
  void set_listener(TimelineListener* listener) override;

 private:
  using State = RememberedStates::State;
  using Step = RememberedStates::Step;
  using Passage = RememberedStates::Passage;

  static constexpr std::int32_t kUnknown = std::numeric_limits<std::int32_t>::max();

  // How far a transfer is.
  struct Progress {
    std::uint32_t handed = 0;      // bursts the memory has accepted
    std::uint32_t unfinished = 0;  // bursts without a known end
    dram::Tick accepted = 0;       // of the last burst, when all are
    dram::Tick finished = 0;       // latest end that is known
  };
  struct ToldEnds {
    const Passage* passage = nullptr;
    std::size_t place = 0;  // of the transfer
    dram::Tick from = 0;
  };
  struct Transfer {
    std::shared_ptr<const BurstPattern> pattern;
    PatternOrigin origin;
    bool write = false;
    std::uint8_t place = 0;  // in current_.live, while it is there
    std::size_t turn = 0;    // of its unit
    Cycle after = 0;
    dram::Tick start = 0;  // the clock edge of its first offer
    std::uint32_t bursts = 0;
    Progress progress;  // as far as was simulated or is behind the state at hand
    // When its bursts end, from `start` on; kUnknown: not known. Empty, and what steps have told of
    // it a list, until somebody asks.
    std::vector<std::int32_t> ends;
    std::vector<ToldEnds> told;
  };
  // Transfers with bursts to hand over, oldest first, of load-M, load-V and store.
  using Turns = std::array<std::deque<Ticket>, 3>;

  // A passage, or that of a step.
  struct Told {
    dram::Tick until = 0;  // 0: nothing is told
    bool whole = false;
    std::span<const RememberedStates::Progress> transfers;
    const std::shared_ptr<const Passage>* passage = nullptr;
  };
  // Which passages were looked for: what followed last time, and all that is known.
  enum class Asked : std::uint8_t { Nothing, Expected, All };
  // The state at hand, and what is known and was seen of what follows it.
  struct Current {
    State* state = nullptr;  // null: nothing is remembered
    bool controlled = true;  // the controller is in it, or further
    bool simulated = false;  // the controller is further
    Asked asked = Asked::Nothing;
    Told told;                 // what is
    Step* expected = nullptr;  // that followed last time
    Step* latest = nullptr;    // that led here; null: none
    dram::Tick begin = 0;
    dram::Tick refresh_due = dram::kNever;  // the next one at `begin`
    std::vector<Ticket> live;               // unfinished at `begin`, by age
    std::vector<dram::BankState> banks;     // at `begin`; by kMaxBanks * channel + bank
    // Since `begin`, by simulation; the ends by place of their transfer.
    std::vector<std::vector<RememberedStates::KnownEnd>> ends;
    dram::ActivityCounts activity_before;
    std::array<std::vector<std::uint64_t>, 2> latencies;  // how often each occurred, by is_write
  };

  [[nodiscard]] Ticket take_ticket();
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
    return transfer.write ? 0 : read_latency_ - 1;
  }
  void give_up();

  // Whether all that happens up to a tick is foretold.
  [[nodiscard]] bool tells(dram::Tick limit) const {
    return current_.told.whole ||
           (limit != dram::kNever && limit < current_.begin + current_.told.until);
  }
  // What is foretold included.
  [[nodiscard]] Progress progress(const Transfer& transfer) const {
    return current_.told.until == 0 || !is_live(transfer) ? transfer.progress : foretold(transfer);
  }
  [[nodiscard]] bool is_live(const Transfer& transfer) const {
    return transfer.place < current_.live.size() &&
           &transfers_[current_.live[transfer.place]] == &transfer;
  }
  [[nodiscard]] Progress foretold(const Transfer& transfer) const;
  // When the last of some rows has ended; nothing where that is not known.
  [[nodiscard]] std::optional<dram::Tick> rows_end(Transfer& transfer, std::uint32_t first,
                                                   std::uint32_t last);
  static void write_ends(Transfer& transfer);

  // States (dram_states.cc).
  [[nodiscard]] bool remembering() const { return remembers_ && listener_ == nullptr; }
  void join(Ticket ticket);
  void pass_time_to(dram::Tick edge);
  void take(Step& step, dram::Tick from, dram::Tick at);
  void drop_finished();
  void stop_remembering();
  [[nodiscard]] dram::Tick rest_base() const;
  void write_rest_key(bool refreshed);
  void write_passage_key();
  [[nodiscard]] bool refresh_was_seen() const;
  [[nodiscard]] Step* find_step();
  [[nodiscard]] Step* known_rest_step(dram::Tick edge);
  void write_banks(dram::Tick at);
  void write_start_key(const Transfer& transfer, dram::Tick edge, bool refreshed);
  [[nodiscard]] Step* known_start_step(const Transfer& transfer, dram::Tick edge);
  [[nodiscard]] Told known_passage();
  [[nodiscard]] Told expected_passage() const;
  void simulate_to(dram::Tick edge);
  [[nodiscard]] bool simulate_to_rest(dram::Tick edge);
  [[nodiscard]] Step seen_step(dram::Tick from, dram::Tick at, bool whole);
  void find_changed_banks(dram::Tick at);
  void write_changed_banks(dram::Tick at);
  void note_seen(std::shared_ptr<const Passage> passage);
  void add_step(Step step);
  void forget_states();
  void enter_state(dram::Tick at);
  void begin_to_see();
  void write_state(dram::Tick at);
  void control();

  [[nodiscard]] dram::Tick last_before_issue_after(Cycle horizon) const;
  [[nodiscard]] Cycle complete_cycle(const Transfer& transfer) const {
    return clock_.cycle_at(static_cast<std::uint64_t>(progress(transfer).finished)) +
           transfer.after;
  }

  dram::Controller controller_;
  ClockRatio clock_;
  dram::Tick open_row_reach_;
  dram::Tick read_latency_;  // from a read command to its last datum
  std::vector<Transfer> transfers_;
  std::vector<Ticket> released_;  // nobody asks any more, but the memory may still be at work
  std::vector<Ticket> free_;
  Turns waiting_;  // as the controller has it
  std::size_t turn_ = 0;
  TimelineListener* listener_ = nullptr;
  dram::CommandLog log_;  // commands not told yet; kept only where somebody listens
  dram::Tick edge_ = 0;   // where the next burst may be handed over at the earliest

  bool remembers_;
  dram::Tick latest_start_ = 0;
  BurstPatterns patterns_;
  RememberedStates states_;
  std::uint64_t bursts_remembered_ = 0;
  RememberedStates::Key key_;                                // scratch
  RememberedStates::Key unsettled_;                          // scratch
  dram::StateWords words_;                                   // scratch
  std::vector<dram::RowNames> names_;                        // scratch, by channel
  std::vector<RememberedStates::ChangedBank> changed_;       // scratch
  std::vector<std::uint8_t> left_;                           // scratch
  std::vector<dram::BankState> banks_;                       // scratch
  std::vector<RememberedStates::ChangedBank> place_of_row_;  // scratch, by bank
  std::vector<dram::BankSet> at_work_;                       // scratch, by channel
  Current current_;
};

}  // namespace plena
