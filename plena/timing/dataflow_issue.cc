#include "plena/timing/dataflow_issue.h"

#include <algorithm>

namespace plena {

// ------------------------------------------------------------ values in the memories

Result<RowValues> RowValues::create(std::uint64_t rows, std::uint32_t lanes,
                                    std::uint32_t granule) {
  auto records = LazyArray<Row>::create(rows);
  if (!records) return tl::unexpected(std::move(records).error());
  RowValues values;
  values.rows_ = std::move(*records);
  values.lanes_ = lanes;
  values.granule_ = granule;
  return values;
}

Cycle RowValues::ready(std::uint64_t first, std::uint32_t lanes) const {
  const Row& row = rows_[first / lanes_];
  if (!row.in_part) return row.whole;
  const std::uint64_t begin = row.granules - 1 + first % lanes_ / granule_;
  const auto* granules = granules_.data() + begin;
  return *std::max_element(granules, granules + lanes / granule_);
}

void RowValues::write(std::uint64_t first, std::uint32_t lanes, Cycle done) {
  Row& row = rows_[first / lanes_];
  if (lanes == lanes_) {
    row.whole = done;
    row.in_part = false;
    return;
  }
  const std::uint64_t count = lanes_ / granule_;
  if (row.granules == 0) {
    row.granules = granules_.size() + 1;
    granules_.resize(granules_.size() + count);
  }
  auto* granules = granules_.data() + (row.granules - 1);
  if (!row.in_part) std::fill_n(granules, count, row.whole);
  row.in_part = true;
  std::fill_n(granules + first % lanes_ / granule_, lanes / granule_, done);
}

void StoredBytes::write(std::uint64_t first, std::uint64_t bytes, Cycle accepted) {
  if (bytes == 0) return;
  const std::uint64_t end = first + bytes;
  auto at = ranges_.lower_bound(first);
  if (at != ranges_.begin() && std::prev(at)->second.end > first) --at;
  while (at != ranges_.end() && at->first < end) {
    const auto [old_first, old] = *at;
    at = ranges_.erase(at);
    if (old_first < first) ranges_.emplace(old_first, Stored{first, old.accepted});
    if (old.end > end) at = ranges_.emplace(end, old).first;
  }
  ranges_.emplace(first, Stored{end, accepted});
}

Cycle StoredBytes::ready(std::uint64_t first, std::uint64_t bytes) const {
  if (ranges_.empty()) return 0;
  Cycle latest = 0;
  auto at = ranges_.upper_bound(first);
  if (at != ranges_.begin()) --at;
  for (; at != ranges_.end() && at->first < first + bytes; ++at) {
    if (at->second.end > first) latest = std::max(latest, at->second.accepted);
  }
  return latest;
}

// ------------------------------------------------------------ ranges of the on-chip memories

struct DataflowIssue::ReadRanges {
  DataflowIssue& d;
  Cycle latest = 0;

  void vram_read(std::uint64_t first, std::uint32_t lanes, std::uint32_t rows, std::uint64_t step) {
    for (std::uint32_t r = 0; r < rows; ++r, first += step)
      latest = std::max(latest, d.vram_.ready(first, lanes));
  }
  void vram_write(std::uint64_t, std::uint32_t, std::uint32_t, std::uint64_t) {}
  void tile_read(std::uint64_t address, std::uint32_t first_row, std::uint32_t rows) {
    const std::uint64_t tile_elements = std::uint64_t{d.rules_.mlen} * d.rules_.mlen;
    std::uint64_t first =
        address / tile_elements * tile_elements + std::uint64_t{first_row} * d.rules_.mlen;
    for (std::uint32_t r = 0; r < rows; ++r, first += d.rules_.mlen)
      latest = std::max(latest, d.mram_.ready(first, d.rules_.mlen));
  }
  void fp_read(std::uint64_t first, std::uint64_t count) { read(d.fp_mem_, first, count); }
  void fp_write(std::uint64_t, std::uint64_t) {}
  void int_read(std::uint64_t first, std::uint64_t count) { read(d.int_mem_, first, count); }
  void int_write(std::uint64_t, std::uint64_t) {}

 private:
  void read(const std::vector<Cycle>& entries, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = first; i < first + count; ++i) latest = std::max(latest, entries[i]);
  }
};

struct DataflowIssue::WriteRanges {
  DataflowIssue& d;
  Cycle done;

  void vram_read(std::uint64_t, std::uint32_t, std::uint32_t, std::uint64_t) {}
  void vram_write(std::uint64_t first, std::uint32_t lanes, std::uint32_t rows,
                  std::uint64_t step) {
    for (std::uint32_t r = 0; r < rows; ++r, first += step) d.vram_.write(first, lanes, done);
  }
  void tile_read(std::uint64_t, std::uint32_t, std::uint32_t) {}
  void fp_read(std::uint64_t, std::uint64_t) {}
  void fp_write(std::uint64_t first, std::uint64_t count) { write(d.fp_mem_, first, count); }
  void int_read(std::uint64_t, std::uint64_t) {}
  void int_write(std::uint64_t first, std::uint64_t count) { write(d.int_mem_, first, count); }

 private:
  void write(std::vector<Cycle>& entries, std::uint64_t first, std::uint64_t count) const {
    std::fill_n(entries.begin() + static_cast<std::ptrdiff_t>(first), count, done);
  }
};

// ------------------------------------------------------------ construction

Result<std::unique_ptr<DataflowIssue>> DataflowIssue::create(const TimedProgram& program,
                                                             HbmModel& hbm,
                                                             const Settings& settings,
                                                             const Dialect& dialect) {
  auto vram = RowValues::create(settings.vector_sram_size, settings.vlen, settings.blen);
  if (!vram) return tl::unexpected(std::move(vram).error());
  auto mram = RowValues::create(settings.matrix_sram_size, settings.mlen, settings.mlen);
  if (!mram) return tl::unexpected(std::move(mram).error());
  return std::unique_ptr<DataflowIssue>(new DataflowIssue(
      program, hbm, RangeRules(settings, dialect), std::move(*vram), std::move(*mram)));
}

DataflowIssue::DataflowIssue(const TimedProgram& program, HbmModel& hbm, const RangeRules& rules,
                             RowValues vram, RowValues mram)
    : IssueModel(program, hbm),
      rules_(rules),
      peak_(hbm.peak()),
      vram_(std::move(vram)),
      mram_(std::move(mram)),
      fp_mem_(rules.fp_entries),
      int_mem_(rules.int_entries) {}

// ------------------------------------------------------------ one instruction

void DataflowIssue::retire(const Machine& machine, std::uint32_t pc, std::uint32_t rs1_before) {
  const TimedInstruction& i = program_.timed[pc];
  ++accounts_[pc].executions;
  if (is_transfer_unit(i.unit)) {
    const TransferRows rows = transfer_rows(machine, program_.instructions[pc]);
    const Cycle at = std::max(start_, sources_ready(i));
    const Cycle done =
        rows.write ? store(i, rows, at, machine.gp[i.rd]) : load(i, rows, at, machine.gp[i.rd]);
    note_transfer(i.unit, at, done);
    push_end(pc, i, at, done);
    if (listener_ != nullptr) [[unlikely]]
      listener_->transferred({pc, i.unit, at, done, bursts_of(rows)});
    return;
  }
  ReadRanges reads{*this};
  visit_ranges(i, machine, rules_, rs1_before, reads);
  const Cycle at = std::max(start_, std::max(reads.latest, sources_ready(i)));
  const Cycle done = result_done(i, at);
  WriteRanges writes{*this, done};
  visit_ranges(i, machine, rules_, rs1_before, writes);
  write_register(i, done);
  push_end(pc, i, at, done);
}

Cycle DataflowIssue::sources_ready(const TimedInstruction& i) const {
  Cycle latest = 0;
  for (const Slot slot : i.sources) {
    // Accumulations are no dependences.
    if (!i.accumulates || slot != i.destination) latest = std::max(latest, ready_[slot]);
  }
  return latest;
}

// The array's accumulators are clear after a write-out; what comes later has nothing to do with
// what was before.
Cycle DataflowIssue::result_done(const TimedInstruction& i, Cycle at) {
  Cycle& computed = computed_[static_cast<std::size_t>(i.shape)];
  if (i.kind == TimedKind::WriteOut) return std::max(at, std::exchange(computed, 0)) + i.latency;
  if (i.kind == TimedKind::Compute) computed = std::max(computed, at + i.latency);
  return at + i.latency;
}

void DataflowIssue::write_register(const TimedInstruction& i, Cycle done) {
  if (i.destination == kSinkSlot) return;
  Cycle& ready = ready_[i.destination];
  if (i.kind == TimedKind::LoopStart || i.kind == TimedKind::LoopEnd) {
    ready = 0;  // counters are no dependences
  } else {
    ready = i.accumulates ? std::max(ready, done) : done;
  }
}

// From `at` on, when the memory has every store to the bytes of a transfer.
Cycle DataflowIssue::stored(const TransferRows& rows, Cycle at) const {
  const auto ready = [&](const HbmRow& row) {
    return std::max(stored_.ready(row.element_address, row.element_bytes),
                    stored_.ready(row.scale_address, row.scale_bytes));
  };
  if (ready(rows.extent()) <= at) return at;
  for (std::uint32_t r = 0; r < rows.count; ++r) at = std::max(at, ready(rows.row(r)));
  return at;
}

Cycle DataflowIssue::load(const TimedInstruction& i, const TransferRows& rows, Cycle at,
                          std::uint64_t to) {
  at = stored(rows, at);
  const bool matrix = i.unit == Unit::LoadM;
  const std::uint32_t lanes = matrix ? rules_.mlen : rules_.vlen;
  std::uint64_t bursts = 0;
  Cycle done = at;
  const auto deliver = [&](std::uint32_t r) {
    done = at + i.latency + peak_.cycles_for(bursts);
    const std::uint64_t element = to + std::uint64_t{r} * lanes;
    if (matrix) {
      mram_.write(element, lanes, done);
    } else if (element + lanes <= rules_.vram_elements) {
      vram_.write(element, lanes, done);
    }
  };
  if (const std::uint32_t uniform = rows.uniform_bursts(); uniform != 0) {
    for (std::uint32_t r = 0; r < rows.count; ++r) {
      bursts += uniform;
      deliver(r);
    }
  } else {
    for_each_burst(
        rows, [&](std::uint64_t, std::uint32_t) { ++bursts; },
        [&](std::uint32_t r, const HbmRow&) { deliver(r); });
  }
  bursts_ += bursts;
  hbm_.note_traffic(rows.write, bursts);
  return done;
}

Cycle DataflowIssue::store(const TimedInstruction& i, const TransferRows& rows, Cycle at,
                           std::uint64_t from) {
  for (std::uint32_t r = 0; r < rows.count; ++r)
    at = std::max(at, vram_.ready(from + std::uint64_t{r} * rules_.vlen, rules_.vlen));
  const std::uint64_t bursts = bursts_of(rows);
  bursts_ += bursts;
  hbm_.note_traffic(rows.write, bursts);
  const Cycle accepted = at + peak_.cycles_for(bursts);
  for (std::uint32_t r = 0; r < rows.count; ++r) {
    const HbmRow row = rows.row(r);
    stored_.write(row.scale_address, row.scale_bytes, accepted);
    stored_.write(row.element_address, row.element_bytes, accepted);
  }
  return accepted + i.latency;
}

// All traffic together takes at least bytes / peak.
void DataflowIssue::push_end(std::uint32_t pc, const TimedInstruction& i, Cycle issue, Cycle done) {
  const bool moves = is_transfer_unit(i.unit);
  const Cycle end = moves ? std::max(done, start_ + peak_.cycles_for(bursts_)) : done;
  if (end > end_) {
    accounts_[pc].causes[moves ? Cause::HbmData : Cause::Completion] += end - end_;
    end_ = end;
  }
  if (listener_ != nullptr) [[unlikely]]
    listener_->issued({pc, i.unit, issue, done, 0, Cause::Issue});
}

std::string DataflowIssue::state() const {
  return fmt::format("the latest result is complete at cycle {}", end_);
}

void DataflowIssue::drain() {
  start_ = end_;
  bursts_ = 0;
  total_ = end_;
}

}  // namespace plena
