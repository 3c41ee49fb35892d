#include "plena/timing/serial_issue.h"

#include <algorithm>

namespace plena {

// The moment the transfer that issues now is complete.
Cycle SerialIssue::transfer(const Machine& machine, std::uint32_t pc) {
  const TimedInstruction& i = program_.timed[pc];
  const Cycle before = std::min<Cycle>(i.latency, 1);
  const TransferStart start{i.unit, total_, before, i.latency - before};
  const Ticket ticket = hbm_.start(start, transfer_rows(machine, program_.instructions[pc]));
  const Cycle done = hbm_.complete(ticket);
  hbm_.release(ticket);
  note_transfer(i.unit, total_, std::max(done, total_));
  return std::max(done, total_);
}

void SerialIssue::retire(const Machine& machine, std::uint32_t pc, std::uint32_t /*rs1_before*/) {
  const TimedInstruction& i = program_.timed[pc];
  const bool moves = is_transfer_unit(i.unit);
  const Cycle done = moves ? transfer(machine, pc) : total_ + i.latency;
  const std::uint64_t taken = done - total_;

  InstructionAccount& account = accounts_[pc];
  ++account.executions;
  if (taken != 0) {
    ++account.causes[Cause::Issue];
    account.causes[moves ? Cause::HbmData : Cause::Completion] += taken - 1;
  }
  busy_[static_cast<std::size_t>(i.unit)] += taken;
  if (listener_ != nullptr) {
    listener_->issued({pc, i.unit, total_, done, 0, Cause::Issue});
    if (moves) {
      const TransferRows rows = transfer_rows(machine, program_.instructions[pc]);
      listener_->transferred({pc, i.unit, total_, done, bursts_of(rows)});
    }
  }
  total_ = done;
}

std::string SerialIssue::state() const {
  return fmt::format("the last instruction was to start at cycle {}", total_);
}

std::optional<std::array<UnitAccount, kUnitCount>> SerialIssue::unit_accounts() const {
  std::array<UnitAccount, kUnitCount> units{};
  for (std::size_t u = 0; u < kUnitCount; ++u) {
    units[u].busy = busy_[u];
    units[u].nothing_to_do = total_ - busy_[u];
  }
  return units;
}

}  // namespace plena
