#include "plena/timing/pipelined_issue.h"

namespace plena {

// ------------------------------------------------------------ ranges of the on-chip memories

// The stamp a read or write of each range waits for (rule 2).
struct PipelinedIssue::WaitForRanges {
  PipelinedIssue& p;
  Stamp latest = 0;

  void vram_read(std::uint64_t first, std::uint32_t lanes, std::uint32_t rows, std::uint64_t step) {
    for (std::uint32_t r = 0; r < rows; ++r, first += step) {
      latest = std::max(latest,
                        p.vram_.written(first, lanes, [&](Stamp s) { return p.row_delivered(s); }));
    }
  }
  void vram_write(std::uint64_t first, std::uint32_t lanes, std::uint32_t rows,
                  std::uint64_t step) {
    for (std::uint32_t r = 0; r < rows; ++r, first += step) {
      latest = std::max(latest,
                        p.vram_.touched(first, lanes, [&](Stamp s) { return p.row_delivered(s); }));
    }
  }
  // A tile in flight is awaited only as far as the rows that are read.
  void tile_read(std::uint64_t address, std::uint32_t first_row, std::uint32_t rows) {
    Stamp written = p.mram_.tile(address).written;
    if (is_in_flight(written)) {
      const std::uint32_t row = row_of_ticket(written) + first_row;
      written = stamp_at(p.hbm_.delivered(ticket_of(written), row, row + rows - 1), true);
    }
    latest = std::max(latest, written);
  }
  void fp_read(std::uint64_t first, std::uint64_t count) {
    latest = std::max(latest, p.fp_mem_.written(first, count));
  }
  void fp_write(std::uint64_t first, std::uint64_t count) {
    latest = std::max(latest, p.fp_mem_.touched(first, count));
  }
  void int_read(std::uint64_t first, std::uint64_t count) {
    latest = std::max(latest, p.int_mem_.written(first, count));
  }
  void int_write(std::uint64_t first, std::uint64_t count) {
    latest = std::max(latest, p.int_mem_.touched(first, count));
  }
};

// What an instruction leaves behind in its ranges (rule 3). A read that ends with the issue cycle
// holds up nobody, since the next instruction issues later.
struct PipelinedIssue::MarkRanges {
  PipelinedIssue& p;
  bool reads_last;  // beyond the issue cycle
  Stamp read;
  Stamp done;

  void vram_read(std::uint64_t first, std::uint32_t lanes, std::uint32_t rows, std::uint64_t step) {
    if (!reads_last) return;
    for (std::uint32_t r = 0; r < rows; ++r, first += step) p.vram_.read(first, lanes, read);
  }
  void vram_write(std::uint64_t first, std::uint32_t lanes, std::uint32_t rows,
                  std::uint64_t step) {
    for (std::uint32_t r = 0; r < rows; ++r, first += step) p.vram_.write(first, lanes, done);
  }
  void tile_read(std::uint64_t address, std::uint32_t /*first_row*/, std::uint32_t /*rows*/) {
    if (!reads_last) return;
    Stamp& tile_read = p.mram_.tile(address).read;
    tile_read = std::max(tile_read, read);
  }
  void fp_read(std::uint64_t first, std::uint64_t count) {
    if (reads_last) p.fp_mem_.read(first, count, read);
  }
  void fp_write(std::uint64_t first, std::uint64_t count) { p.fp_mem_.write(first, count, done); }
  void int_read(std::uint64_t first, std::uint64_t count) {
    if (reads_last) p.int_mem_.read(first, count, read);
  }
  void int_write(std::uint64_t first, std::uint64_t count) { p.int_mem_.write(first, count, done); }
};

// ------------------------------------------------------------ construction

Result<std::unique_ptr<PipelinedIssue>> PipelinedIssue::create(const TimedProgram& program,
                                                               HbmModel& hbm,
                                                               const Settings& settings,
                                                               const Dialect& dialect,
                                                               std::uint32_t queue_depth) {
  auto vram = VramTimes::create(settings);
  if (!vram) return tl::unexpected(std::move(vram).error());
  auto mram = MramTimes::create(settings);
  if (!mram) return tl::unexpected(std::move(mram).error());
  return std::unique_ptr<PipelinedIssue>(new PipelinedIssue(
      program, hbm, settings, dialect, queue_depth, std::move(*vram), std::move(*mram)));
}

PipelinedIssue::PipelinedIssue(const TimedProgram& program, HbmModel& hbm, const Settings& settings,
                               const Dialect& dialect, std::uint32_t queue_depth, VramTimes vram,
                               MramTimes mram)
    : IssueModel(program, hbm),
      timed_(program.timed.data()),
      integer_unit_is_free_(!dialect.has(RsSwitch::Registers) &&
                            std::ranges::none_of(program.timed,
                                                 [](const auto& i) {
                                                   return i.unit == Unit::ScalarInt &&
                                                          i.interval > 1;
                                                 })),
      rules_(settings, dialect),
      products_use_whole_rows_(rules_.mlen == rules_.vlen && !rules_.transposed_rows),
      queue_depth_(queue_depth),
      stalls_(program.timed.size()),
      passages_(program.timed.size()),
      vram_(std::move(vram)),
      mram_(std::move(mram)),
      fp_mem_(rules_.fp_entries),
      int_mem_(rules_.int_entries) {}

// ------------------------------------------------------------ issue

[[gnu::always_inline]] inline Cycle PipelinedIssue::issue(std::uint32_t pc,
                                                          const TimedInstruction& i,
                                                          const Conditions& conditions) {
  Cycle& unit_free = unit_free_[static_cast<std::size_t>(i.unit)];
  const Cycle at = std::max(
      std::max(front_.next_issue, unit_free),
      std::max(std::max(conditions.registers, cycle_of(conditions.ranges)), conditions.queue));
  stalled_ = at - front_.next_issue;
  if (stalled_ != 0) note_stall(pc, i, at, unit_free, conditions);
  unit_free = at + i.interval;
  front_.next_issue = at + 1;
  return at;
}

void PipelinedIssue::note_stall(std::uint32_t pc, const TimedInstruction& i, Cycle at,
                                Cycle unit_free, const Conditions& conditions) {
  stall_cause_ = stall_cause(i, at, conditions);
  const Cycle busy = is_transfer_unit(i.unit) ? transfers_busy_until(i.unit, at) : unit_free;
  charge_stall(pc, i.unit, stall_cause_, front_.next_issue, busy, at);
}

// The condition that held last (rule 7).
Cause PipelinedIssue::stall_cause(const TimedInstruction& i, Cycle at,
                                  const Conditions& conditions) const {
  const bool range = cycle_of(conditions.ranges) == at;
  if (range && is_of_transfer(conditions.ranges)) return Cause::HbmData;
  if (conditions.registers == at) return Cause::Register;
  if (range) return Cause::SramRange;
  const bool unit = unit_free_[static_cast<std::size_t>(i.unit)] == at;
  if (unit && i.unit != Unit::Control) return Cause::BusyUnit;
  return unit ? Cause::Control : Cause::FullQueue;
}

// ------------------------------------------------------------ one instruction

void PipelinedIssue::place_in_time(const Machine& machine, std::uint32_t pc,
                                   std::uint32_t rs1_before) {
  const TimedInstruction& i = timed_[pc];
  switch (i.kind) {
    case TimedKind::Registers:
    case TimedKind::Nothing:
      return listener_ == nullptr ? retire_registers<false>(front_, pc)
                                  : retire_registers<true>(front_, pc);
    case TimedKind::SetSpecial:
      return listener_ == nullptr ? retire_special<false>(front_, pc)
                                  : retire_special<true>(front_, pc);
    case TimedKind::LoopStart:
      return listener_ == nullptr ? retire_loop_start<false>(front_, pc)
                                  : retire_loop_start<true>(front_, pc);
    case TimedKind::LoopEnd:
      return listener_ == nullptr ? retire_loop_end<false>(front_, pc)
                                  : retire_loop_end<true>(front_, pc);
    case TimedKind::VectorRows:
      return retire_rows<true, true>(machine, pc, i);
    case TimedKind::VectorRow:
      return retire_rows<false, true>(machine, pc, i);
    case TimedKind::Reduce:
      return retire_rows<false, false>(machine, pc, i);
    case TimedKind::Load:
    case TimedKind::Store:
      return retire_transfer(machine, pc, i);
    case TimedKind::Compute:
      if (products_use_whole_rows_ && (i.op == Op::M_MV || i.op == Op::M_TMV))
        return retire_row_product(machine, pc, i);
      return retire_ranges<TimedKind::Compute>(machine, pc, i);
    case TimedKind::WriteOut:
      return retire_ranges<TimedKind::WriteOut>(machine, pc, i);
    case TimedKind::LoadFp:
      return retire_ranges<TimedKind::LoadFp>(machine, pc, i);
    case TimedKind::StoreFp:
      return retire_ranges<TimedKind::StoreFp>(machine, pc, i);
    case TimedKind::LoadInt:
      return retire_ranges<TimedKind::LoadInt>(machine, pc, i, rs1_before);
    case TimedKind::StoreInt:
      return retire_ranges<TimedKind::StoreInt>(machine, pc, i);
    case TimedKind::MapFp:
      return retire_ranges<TimedKind::MapFp>(machine, pc, i);
    case TimedKind::TopK:
      return retire_ranges<TimedKind::TopK>(machine, pc, i);
  }
}

// retire_ranges() for the vector instructions, which use whole rows: each record is looked up once.
template <bool kTwoSources, bool kWritesRow>
void PipelinedIssue::retire_rows(const Machine& machine, std::uint32_t pc,
                                 const TimedInstruction& i) {
  const auto resolve = [&](Stamp code) { return row_delivered(code); };
  VramTimes::Row& first = vram_.row(machine.gp[i.rs1]);
  VramTimes::Row& second = kTwoSources ? vram_.row(machine.gp[i.rs2]) : first;
  VramTimes::Row& out = kWritesRow ? vram_.row(machine.gp[i.rd]) : first;
  Stamp ranges = first.all_written(resolve);
  if constexpr (kTwoSources) ranges = std::max(ranges, second.all_written(resolve));
  if constexpr (kWritesRow) ranges = std::max(ranges, out.all_touched(resolve));

  const Cycle at = issue(pc, i, {.registers = sources_ready(i), .ranges = ranges});
  const Cycle done = complete(front_, i, at + i.latency);
  if (i.interval > 1) {
    first.read = std::max(first.read, stamp_at(at + i.interval));
    second.read = std::max(second.read, stamp_at(at + i.interval));
    mark_special_reads(i, at + i.interval);
  }
  if constexpr (kWritesRow) out.written = stamp_at(done);
  if (listener_ != nullptr) [[unlikely]]
    tell_issue(pc, i, at, done, stalled_, stall_cause_);
}

// One function a kind, so that each meets only its own ranges.
template <TimedKind kKind>
void PipelinedIssue::retire_ranges(const Machine& machine, std::uint32_t pc,
                                   const TimedInstruction& i, std::uint32_t rs1_before) {
  WaitForRanges wait{*this};
  visit_ranges_of(kKind, i, machine, rules_, rs1_before, wait);
  const Cycle at = issue(pc, i, {.registers = sources_ready(i), .ranges = wait.latest});
  Cycle done = compute_done(i, at);
  MarkRanges mark{*this, i.interval > 1, stamp_at(at + i.interval), stamp_at(done)};
  visit_ranges_of(kKind, i, machine, rules_, rs1_before, mark);
  if (i.interval > 1) mark_special_reads(i, at + i.interval);
  done = complete(front_, i, done);
  if (listener_ != nullptr) [[unlikely]]
    tell_issue(pc, i, at, done, stalled_, stall_cause_);
}

// retire_ranges() for what models spend their time on: a row of V and a tile, each looked up once.
void PipelinedIssue::retire_row_product(const Machine& machine, std::uint32_t pc,
                                        const TimedInstruction& i) {
  const std::uint32_t rs1 = machine.gp[i.rs1];
  const std::uint32_t rs2 = machine.gp[i.rs2];
  VramTimes::Row& row = vram_.row(rules_.matrix_first ? rs2 : rs1);
  MramTimes::Tile& tile = mram_.tile(rules_.matrix_first ? rs1 : rs2);
  Stamp tile_written = tile.written;
  if (is_in_flight(tile_written)) {
    const std::uint32_t first = row_of_ticket(tile_written);
    tile_written =
        stamp_at(hbm_.delivered(ticket_of(tile_written), first, first + rules_.mlen - 1), true);
  }
  const Stamp row_written = row.all_written([&](Stamp code) { return row_delivered(code); });

  const Cycle at =
      issue(pc, i, {.registers = sources_ready(i), .ranges = std::max(row_written, tile_written)});
  if (i.interval > 1) {
    row.read = std::max(row.read, stamp_at(at + i.interval));
    tile.read = std::max(tile.read, stamp_at(at + i.interval));
    mark_special_reads(i, at + i.interval);
  }
  const Cycle done = complete(front_, i, compute_done(i, at));
  if (listener_ != nullptr) [[unlikely]]
    tell_issue(pc, i, at, done, stalled_, stall_cause_);
}

// A write-out is ready `latency` after both its issue and the last compute into the array (rule 4).
Cycle PipelinedIssue::compute_done(const TimedInstruction& i, Cycle at) {
  Cycle& computed = computed_[static_cast<std::size_t>(i.shape)];
  if (i.kind == TimedKind::WriteOut) return std::max(at, computed) + i.latency;
  if (i.kind == TimedKind::Compute) computed = std::max(computed, at + i.latency);
  return at + i.latency;
}

Cycle PipelinedIssue::sources_ready(const TimedInstruction& i) const {
  Cycle latest = ready_[i.sources[0]];
  for (std::size_t n = 1; n < i.sources.size(); ++n)
    latest = std::max(latest, ready_[i.sources[n]]);
  return latest;
}

void PipelinedIssue::mark_special_reads(const TimedInstruction& i, Cycle until) {
  for (const Slot slot : i.sources) {
    if (slot >= kAddrSlot) special_read_[slot] = std::max(special_read_[slot], until);
  }
}

void PipelinedIssue::tell_issue(std::uint32_t pc, const TimedInstruction& i, Cycle at, Cycle done,
                                std::uint64_t stall, Cause cause) {
  listener_->issued({pc, i.unit, at, done, stall, cause});
}

// ------------------------------------------------------------ transfers

void PipelinedIssue::retire_transfer(const Machine& machine, std::uint32_t pc,
                                     const TimedInstruction& i) {
  LiveTransfer transfer{.pc = pc,
                        .sram_first = machine.gp[i.rd],
                        .rows = transfer_rows(machine, program_.instructions[pc])};
  Conditions conditions{.registers = sources_ready(i)};
  conditions.ranges = std::max(wait_for_sram(i, transfer), wait_for_stores(transfer.rows));
  conditions.queue = wait_for_place(i.unit);

  const Cycle at = issue(pc, i, conditions);
  if (live(i.unit).size() >= queue_depth_) land_complete(i.unit, at);
  transfer.issue = at;
  const Cycle before = 1;
  transfer.ticket = hbm_.start({i.unit, at, before, i.latency - before}, transfer.rows);
  mark_sram(i, transfer);
  if (i.interval > 1) mark_special_reads(i, at + i.interval);
  live(i.unit).push_back(transfer);
  if (listener_ != nullptr) [[unlikely]]
    tell_issue(pc, i, at, 0, stalled_, stall_cause_);
}

namespace {

// Rows of a transfer that fit into Vector SRAM; under rs-hbm-bytes the others are dropped.
std::uint32_t rows_inside(const TransferRows& rows, std::uint64_t first,
                          std::uint64_t vram_elements) {
  const std::uint64_t room = vram_elements > first ? (vram_elements - first) / rows.length : 0;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(rows.count, room));
}

}  // namespace

Stamp PipelinedIssue::wait_for_sram(const TimedInstruction& i, const LiveTransfer& transfer) {
  Stamp latest = 0;
  if (i.unit == Unit::LoadM) {
    const std::uint64_t tile_elements = std::uint64_t{rules_.mlen} * rules_.mlen;
    for (std::uint32_t row = 0; row < transfer.rows.count; row += rules_.mlen) {
      MramTimes::Tile& tile = mram_.tile(transfer.sram_first + row / rules_.mlen * tile_elements);
      Stamp written = tile.written;
      if (is_in_flight(written)) {
        const std::uint32_t first = row_of_ticket(written);
        written =
            stamp_at(hbm_.delivered(ticket_of(written), first, first + rules_.mlen - 1), true);
      }
      latest = std::max(latest, std::max(written, tile.read));
    }
    return latest;
  }
  WaitForRanges wait{*this};
  const std::uint32_t rows = rows_inside(transfer.rows, transfer.sram_first, rules_.vram_elements);
  if (i.unit == Unit::LoadV) {
    wait.vram_write(transfer.sram_first, rules_.vlen, rows, rules_.vlen);
  } else {
    wait.vram_read(transfer.sram_first, rules_.vlen, rows, rules_.vlen);
  }
  return wait.latest;
}

void PipelinedIssue::mark_sram(const TimedInstruction& i, const LiveTransfer& transfer) {
  if (i.unit == Unit::LoadM) {
    const std::uint64_t tile_elements = std::uint64_t{rules_.mlen} * rules_.mlen;
    for (std::uint32_t row = 0; row < transfer.rows.count; row += rules_.mlen) {
      mram_.tile(transfer.sram_first + row / rules_.mlen * tile_elements).written =
          in_flight(transfer.ticket, row);
    }
    return;
  }
  const std::uint32_t rows = rows_inside(transfer.rows, transfer.sram_first, rules_.vram_elements);
  for (std::uint32_t row = 0; row < rows; ++row) {
    const std::uint64_t first = transfer.sram_first + std::uint64_t{row} * rules_.vlen;
    if (i.unit == Unit::LoadV) {
      vram_.write(first, rules_.vlen, in_flight(transfer.ticket, row));
    } else {
      vram_.read(first, rules_.vlen, stamp_at(transfer.issue + 1 + row));
    }
  }
}

namespace {

bool meet(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

bool rows_meet(const HbmRow& a, const HbmRow& b) {
  return meet(a.element_address, a.element_bytes, b.element_address, b.element_bytes) ||
         meet(a.element_address, a.element_bytes, b.scale_address, b.scale_bytes) ||
         meet(a.scale_address, a.scale_bytes, b.element_address, b.element_bytes) ||
         meet(a.scale_address, a.scale_bytes, b.scale_address, b.scale_bytes);
}

bool overlap(const TransferRows& a, const TransferRows& b) {
  const HbmRow b_extent = b.extent();
  if (!rows_meet(a.extent(), b_extent)) return false;
  for (std::uint32_t i = 0; i < a.count; ++i) {
    const HbmRow row = a.row(i);
    if (!rows_meet(row, b_extent)) continue;
    for (std::uint32_t j = 0; j < b.count; ++j) {
      if (rows_meet(row, b.row(j))) return true;
    }
  }
  return false;
}

}  // namespace

// A transfer waits until every earlier store to its bytes has been accepted (rules 2 and 6).
Stamp PipelinedIssue::wait_for_stores(const TransferRows& rows) {
  Stamp latest = 0;
  for (const LiveTransfer& store : live(Unit::Store)) {
    if (hbm_.accepted_by(store.ticket, front_.next_issue) || !overlap(rows, store.rows)) continue;
    latest = std::max(latest, stamp_at(hbm_.accepted(store.ticket), true));
  }
  return latest;
}

// When a place among a unit's transfers is free.
Cycle PipelinedIssue::wait_for_place(Unit unit) {
  const auto& transfers = live(unit);
  if (transfers.size() < queue_depth_) return 0;
  std::vector<Ticket> tickets;
  tickets.reserve(transfers.size());
  for (const LiveTransfer& transfer : transfers) tickets.push_back(transfer.ticket);
  return hbm_.first_complete(tickets);
}

void PipelinedIssue::land_complete(Unit unit, Cycle horizon) {
  auto& transfers = live(unit);
  bool oldest = true;
  std::erase_if(transfers, [&](const LiveTransfer& transfer) {
    if (!hbm_.complete_by(transfer.ticket, horizon)) {
      oldest = false;
      return false;
    }
    land(transfer, unit, oldest);
    return true;
  });
}

// A transfer is complete: its rows get their final times. One that overtook an older one adds
// nothing to the time its unit has been moving, since the older one still is.
void PipelinedIssue::land(const LiveTransfer& transfer, Unit unit, bool oldest) {
  const Cycle done = hbm_.complete(transfer.ticket);
  if (unit == Unit::LoadM) {
    const std::uint64_t tile_elements = std::uint64_t{rules_.mlen} * rules_.mlen;
    for (std::uint32_t row = 0; row < transfer.rows.count; row += rules_.mlen) {
      Stamp& written = mram_.tile(transfer.sram_first + row / rules_.mlen * tile_elements).written;
      if (written == in_flight(transfer.ticket, row)) written = stamp_at(done, true);
    }
  } else if (unit == Unit::LoadV) {
    const std::uint32_t rows =
        rows_inside(transfer.rows, transfer.sram_first, rules_.vram_elements);
    for (std::uint32_t row = 0; row < rows; ++row) {
      vram_.land(transfer.sram_first + std::uint64_t{row} * rules_.vlen,
                 in_flight(transfer.ticket, row), stamp_at(done, true));
    }
  }
  if (oldest) {
    Cycle& covered = covered_[static_cast<std::size_t>(unit)];
    const Cycle from = std::max(transfer.issue, covered);
    if (done > from) moving_[static_cast<std::size_t>(unit)] += done - from;
    covered = std::max(covered, done);
  }
  if (done > front_.latest) {
    front_.latest = done;
    front_.latest_of = &timed_[transfer.pc];
  }
  note_transfer(unit, transfer.issue, done);
  if (listener_ != nullptr) [[unlikely]]
    listener_->transferred({transfer.pc, unit, transfer.issue, done, bursts_of(transfer.rows)});
  hbm_.release(transfer.ticket);
}

Cycle PipelinedIssue::transfers_busy_until(Unit unit, Cycle horizon) {
  Cycle latest = std::min(covered_[static_cast<std::size_t>(unit)], horizon);
  for (const LiveTransfer& transfer : live(unit)) {
    if (!hbm_.complete_by(transfer.ticket, horizon)) return horizon;
    latest = std::max(latest, hbm_.complete(transfer.ticket));
  }
  return latest;
}

// ------------------------------------------------------------ the end

// Cycles after the last issue go to the instruction that completes last (rule 7).
void PipelinedIssue::drain() {
  for (const Unit unit : {Unit::LoadM, Unit::LoadV, Unit::Store}) {
    for (const LiveTransfer& transfer : live(unit)) land(transfer, unit, true);
    live(unit).clear();
  }
  if (front_.latest > front_.next_issue) {
    const std::uint64_t tail = front_.latest - front_.next_issue;
    const std::uint32_t pc = pc_of(*front_.latest_of);
    if (is_transfer_unit(front_.latest_of->unit)) {
      stalls_[pc].cycles[static_cast<std::size_t>(Cause::HbmData)] += tail;
    } else {
      accounts_[pc].causes[Cause::Completion] += tail;
    }
    front_.next_issue = front_.latest;
  }
  total_ = front_.next_issue;
}

std::vector<InstructionAccount> PipelinedIssue::accounts() const {
  std::vector<InstructionAccount> all = accounts_;
  std::uint64_t passing = 0;  // pieces of program that have begun and not ended
  for (std::size_t pc = 0; pc < all.size(); ++pc) {
    InstructionAccount& account = all[pc];
    passing += passages_[pc].begun;
    account.executions = passing;
    account.causes[Cause::Issue] = passing;
    passing -= passages_[pc].ended;
    std::copy_n(stalls_[pc].cycles.begin(), kStallCauseCount, account.causes.cycles.begin());
  }
  return all;
}

std::string PipelinedIssue::state() const {
  std::string text =
      fmt::format("the next instruction was to issue at cycle {}", front_.next_issue);
  for (std::size_t u = 0; u < kUnitCount; ++u) {
    for (const LiveTransfer& transfer : live_[u]) {
      text += fmt::format("; {}: pc {} issued at cycle {}", unit_name(static_cast<Unit>(u)),
                          transfer.pc, transfer.issue);
    }
  }
  return text;
}

std::optional<std::array<UnitAccount, kUnitCount>> PipelinedIssue::unit_accounts() const {
  std::array<UnitAccount, kUnitCount> units{};
  const std::vector<InstructionAccount> all = accounts();
  for (std::size_t pc = 0; pc < all.size(); ++pc) {
    const TimedInstruction& i = timed_[pc];
    units[static_cast<std::size_t>(i.unit)].busy += all[pc].executions * i.interval;
  }
  for (std::size_t u = 0; u < kUnitCount; ++u) {
    if (is_transfer_unit(static_cast<Unit>(u))) units[u].busy = moving_[u];
    units[u].waiting = waiting_[u];
    units[u].nothing_to_do = total_ - units[u].busy - waiting_[u].total();
  }
  return units;
}

}  // namespace plena
