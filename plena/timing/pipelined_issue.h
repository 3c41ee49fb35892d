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

  void retire(const Machine& machine, std::uint32_t pc, std::uint64_t int_address) override;
  void drain() override;
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

  // A transfer that may not be complete yet.
  struct LiveTransfer {
    Ticket ticket = 0;
    std::uint32_t pc = 0;
    Cycle issue = 0;
    std::uint64_t sram_first = 0;  // element its row 0 goes to or comes from
    TransferRows rows;
  };

  PipelinedIssue(const TimedProgram& program, HbmModel& hbm, const RangeRules& rules,
                 std::uint32_t queue_depth, VramTimes vram, MramTimes mram);

  void retire_registers(std::uint32_t pc, const TimedInstruction& i);
  void retire_loop_end(std::uint32_t pc, const TimedInstruction& i);
  void retire_ranges(const Machine& machine, std::uint32_t pc, const TimedInstruction& i,
                     std::uint64_t int_address);
  void retire_transfer(const Machine& machine, std::uint32_t pc, const TimedInstruction& i);

  Cycle issue(std::uint32_t pc, const TimedInstruction& i, const Conditions& conditions);
  void stall(std::uint32_t pc, const TimedInstruction& i, Cycle at, const Conditions& conditions);
  void complete(std::uint32_t pc, const TimedInstruction& i, Cycle done);
  void tell_issue(std::uint32_t pc, const TimedInstruction& i, Cycle at, Cycle done);

  [[nodiscard]] Cycle sources_ready(const TimedInstruction& i) const;
  [[nodiscard]] Cycle destination_free(const TimedInstruction& i) const;
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

  RangeRules rules_;
  std::uint32_t queue_depth_;

  Cycle next_issue_ = 0;  // one behind the last issue
  Cycle latest_ = 0;      // completion that is known
  std::uint32_t latest_pc_ = 0;
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
  std::uint64_t stalled_ = 0;  // of the instruction being placed, for the listener
  Cause stall_cause_{};
};

}  // namespace plena
