// The profile kind `pipelined`: one issue a cycle in program order, units side by side, transfers
// in the background (timing.md, rules 1 to 7).
#pragma once

#include <algorithm>

#include "plena/timing/issue_model.h"
#include "plena/timing/operand_ranges.h"
#include "plena/timing/sram_times.h"

namespace plena {

class PipelinedIssue final : public IssueModel {
 public:
  static Result<std::unique_ptr<PipelinedIssue>> create(const TimedProgram& program, HbmModel& hbm,
                                                        const Settings& settings,
                                                        const Dialect& dialect,
                                                        std::uint32_t queue_depth);

  void retire(const Machine& machine, std::uint32_t pc, std::uint32_t rs1_before) override {
    count_passage(pc, pc);
    place_in_time(machine, pc, rs1_before);
  }

  /// retire() in two halves: executions are counted a straight piece of program at a time.
  void count_passage(std::uint64_t first, std::uint64_t last) {
    ++passages_[first].begun;
    ++passages_[last].ended;
  }
  void place_in_time(const Machine& machine, std::uint32_t pc, std::uint32_t rs1_before);

  /// Where the issue stands. The inner loop keeps it in registers and gives it back whenever
  /// anything but the functions below is called.
  struct Front {
    Cycle next_issue = 0;  // one behind the last issue
    Cycle latest = 0;      // completion that is known
    const TimedInstruction* latest_of = nullptr;
  };
  Front& front() { return front_; }

  /// place_in_time() of what inner loops are made of: kinds Registers and Nothing; SetSpecial;
  /// LoopStart; LoopEnd.
  template <bool kListened>
  void retire_registers(Front& front, std::uint64_t pc);
  /// retire_registers() of arithmetic on gp for nobody to hear, where integer_unit_is_free().
  void retire_integer(Front& front, std::uint64_t pc);
  template <bool kListened>
  void retire_special(Front& front, std::uint64_t pc);
  template <bool kListened>
  void retire_loop_start(Front& front, std::uint64_t pc);
  template <bool kListened>
  void retire_loop_end(Front& front, std::uint64_t pc);

  /// Whether the integer unit takes an instruction a cycle, whatever it is, and so holds up none,
  /// and gp0 is never written.
  [[nodiscard]] bool integer_unit_is_free() const { return integer_unit_is_free_; }

  void drain() override;
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] std::vector<InstructionAccount> accounts() const override;
  [[nodiscard]] std::optional<std::array<UnitAccount, kUnitCount>> unit_accounts() const override;

 private:
  struct WaitForRanges;
  struct MarkRanges;

  // What holds an instruction back beside the one issued before it: the first cycle at which each
  // condition no longer does.
  struct Conditions {
    Cycle registers = 0;
    Stamp ranges = 0;
    Cycle queue = 0;
  };

  // Of one static instruction: stalls by Cause, in one cache line.
  struct alignas(64) Stalls {
    std::array<std::uint64_t, kStallCauseCount> cycles{};
  };
  // How often a straight piece of program that was passed through began or ended here.
  struct Passages {
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
  };

  // A transfer that may not be complete yet.
  struct LiveTransfer {
    Ticket ticket = 0;
    std::uint32_t pc = 0;
    Cycle issue = 0;
    std::uint64_t sram_first = 0;  // element its row 0 goes to or comes from
    TransferRows rows;
  };

  PipelinedIssue(const TimedProgram& program, HbmModel& hbm, const Settings& settings,
                 const Dialect& dialect, std::uint32_t queue_depth, VramTimes vram, MramTimes mram);

  template <bool kTwoSources, bool kWritesRow>
  void retire_rows(const Machine& machine, std::uint32_t pc, const TimedInstruction& i);
  template <TimedKind kKind>
  void retire_ranges(const Machine& machine, std::uint32_t pc, const TimedInstruction& i,
                     std::uint32_t rs1_before = 0);
  void retire_row_product(const Machine& machine, std::uint32_t pc, const TimedInstruction& i);
  void retire_transfer(const Machine& machine, std::uint32_t pc, const TimedInstruction& i);

  template <bool kListened>
  void place(Front& front, const TimedInstruction& i, Cycle registers);
  Cycle issue(std::uint32_t pc, const TimedInstruction& i, const Conditions& conditions);
  void note_stall(std::uint32_t pc, const TimedInstruction& i, Cycle at, Cycle unit_free,
                  const Conditions& conditions);
  void charge_stall(std::uint32_t pc, Unit unit, Cause cause, Cycle next_issue, Cycle unit_free,
                    Cycle at);
  [[nodiscard]] Cause stall_cause(const TimedInstruction& i, Cycle at,
                                  const Conditions& conditions) const;
  Cycle complete(Front& front, const TimedInstruction& i, Cycle done);
  void note_latest(Front& front, const TimedInstruction& i, Cycle done);
  [[nodiscard]] std::uint32_t pc_of(const TimedInstruction& i) const {
    return static_cast<std::uint32_t>(&i - timed_);
  }
  void tell_issue(std::uint32_t pc, const TimedInstruction& i, Cycle at, Cycle done,
                  std::uint64_t stall, Cause cause);

  [[nodiscard]] Cycle sources_ready(const TimedInstruction& i) const;
  void mark_special_reads(const TimedInstruction& i, Cycle until);
  [[nodiscard]] Cycle compute_done(const TimedInstruction& i, Cycle at);

  Stamp wait_for_sram(const TimedInstruction& i, const LiveTransfer& transfer);
  void mark_sram(const TimedInstruction& i, const LiveTransfer& transfer);
  Stamp wait_for_stores(const TransferRows& rows);
  Cycle wait_for_place(Unit unit);
  void land_complete(Unit unit, Cycle horizon);
  void land(const LiveTransfer& transfer, Unit unit, bool oldest);
  Stamp row_delivered(Stamp code) {
    const Ticket ticket = ticket_of(code);
    const std::uint32_t row = row_of_ticket(code);
    return stamp_at(hbm_.delivered(ticket, row, row), true);
  }
  [[nodiscard]] Cycle transfers_busy_until(Unit unit, Cycle horizon);

  [[nodiscard]] std::vector<LiveTransfer>& live(Unit unit) {
    return live_[static_cast<std::size_t>(unit)];
  }

  const TimedInstruction* timed_;  // by pc
  bool integer_unit_is_free_;
  RangeRules rules_;
  bool products_use_whole_rows_;  // M_MV and M_TMV: one row of V, one tile
  std::uint32_t queue_depth_;

  Front front_;
  std::vector<Stalls> stalls_;                    // by pc
  std::vector<Passages> passages_;                // by pc
  std::array<Cycle, kSlotCount> ready_{};         // when a register may be read
  std::array<Cycle, kSlotCount> special_read_{};  // until when a special register is being read
  std::array<Cycle, 16> loop_written_{};  // ready_ as the last loop instruction left its counter
  std::array<Cycle, kUnitCount> unit_free_{};
  std::array<Cycle, 8> computed_{};  // by ArrayShape: completion of the last compute into it
  VramTimes vram_;
  MramTimes mram_;
  EntryTimes fp_mem_;
  EntryTimes int_mem_;
  std::array<std::vector<LiveTransfer>, kUnitCount> live_;  // oldest first

  std::array<CauseCycles, kUnitCount> waiting_{};
  std::array<std::uint64_t, kUnitCount> moving_{};  // cycles with a transfer, up to covered_
  std::array<Cycle, kUnitCount> covered_{};
  std::uint64_t stalled_ = 0;  // by the last issue(), for the listener
  Cause stall_cause_{};
};

// ------------------------------------------------------------ the inner loop

template <bool kListened>
[[gnu::always_inline]] inline void PipelinedIssue::retire_registers(Front& front,
                                                                    std::uint64_t pc) {
  const TimedInstruction& i = timed_[pc];
  place<kListened>(front, i, std::max(ready_[i.sources[0]], ready_[i.sources[1]]));
}

// Only registers can hold it up, and the time of its unit is of no interest to anybody. What writes
// gp0 is no arithmetic to the engine.
[[gnu::always_inline]] inline void PipelinedIssue::retire_integer(Front& front, std::uint64_t pc) {
  const TimedInstruction& i = timed_[pc];
  const Cycle registers = std::max(ready_[i.sources[0]], ready_[i.sources[1]]);
  if (registers > front.next_issue) {
    const std::uint64_t stall = registers - front.next_issue;
    stalls_[pc].cycles[static_cast<std::size_t>(Cause::Register)] += stall;
    waiting_[static_cast<std::size_t>(Unit::ScalarInt)][Cause::Register] += stall;
    front.next_issue = registers;
  }
  Cycle& ready = ready_[i.destination];
  ready = std::max(front.next_issue++ + i.latency, ready + 1);
  note_latest(front, i, ready);
}

// Special registers are written only after earlier writes and reads, like ranges (rule 3).
template <bool kListened>
[[gnu::always_inline]] inline void PipelinedIssue::retire_special(Front& front, std::uint64_t pc) {
  const TimedInstruction& i = timed_[pc];
  const Cycle sources = std::max(ready_[i.sources[0]], ready_[i.sources[1]]);
  const Cycle before = std::max(ready_[i.destination], special_read_[i.destination]);
  place<kListened>(front, i, std::max(sources, before));
}

template <bool kListened>
[[gnu::always_inline]] inline void PipelinedIssue::retire_loop_start(Front& front,
                                                                     std::uint64_t pc) {
  const TimedInstruction& i = timed_[pc];
  place<kListened>(front, i, 0);
  loop_written_[i.rd] = ready_[i.rd];
}

// The loop unit forwards a counter that it wrote itself; one that the body wrote is awaited
// (rule 5).
template <bool kListened>
[[gnu::always_inline]] inline void PipelinedIssue::retire_loop_end(Front& front, std::uint64_t pc) {
  const TimedInstruction& i = timed_[pc];
  const Cycle ready = ready_[i.rd];
  place<kListened>(front, i, ready == loop_written_[i.rd] ? 0 : ready);
  loop_written_[i.rd] = ready_[i.rd];
}

// Issues an instruction that waits for its unit and registers only.
template <bool kListened>
[[gnu::always_inline]] inline void PipelinedIssue::place(Front& front, const TimedInstruction& i,
                                                         Cycle registers) {
  Cycle& unit_free = unit_free_[static_cast<std::size_t>(i.unit)];
  const Cycle at = std::max(std::max(front.next_issue, unit_free), registers);
  const std::uint64_t stall = at - front.next_issue;
  Cause cause = Cause::Issue;
  if (stall != 0) {
    cause = registers == at           ? Cause::Register
            : i.unit == Unit::Control ? Cause::Control
                                      : Cause::BusyUnit;
    charge_stall(pc_of(i), i.unit, cause, front.next_issue, unit_free, at);
  }
  unit_free = at + i.interval;
  front.next_issue = at + 1;
  const Cycle done = complete(front, i, at + i.latency);
  if constexpr (kListened) tell_issue(pc_of(i), i, at, done, stall, cause);
}

// The unit waits where it is not still busy with its own last instruction (rule 7).
inline void PipelinedIssue::charge_stall(std::uint32_t pc, Unit unit, Cause cause, Cycle next_issue,
                                         Cycle unit_free, Cycle at) {
  stalls_[pc].cycles[static_cast<std::size_t>(cause)] += at - next_issue;
  const Cycle free = std::max(next_issue, unit_free);
  if (at > free) waiting_[static_cast<std::size_t>(unit)][cause] += at - free;
}

// A later write to the same register completes after the earlier one (rule 3).
[[gnu::always_inline]] inline Cycle PipelinedIssue::complete(Front& front,
                                                             const TimedInstruction& i,
                                                             Cycle done) {
  Cycle& ready = ready_[i.destination];
  done = std::max(done, ready + 1);
  ready = done;
  ready_[kSinkSlot] = 0;
  note_latest(front, i, done);
  return done;
}

[[gnu::always_inline]] inline void PipelinedIssue::note_latest(Front& front,
                                                               const TimedInstruction& i,
                                                               Cycle done) {
  if (done < front.latest) return;
  front.latest = done;
  front.latest_of = &i;
}

}  // namespace plena
