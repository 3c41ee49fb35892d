// The profile kind `ideal`: no issue limit, every unit as many times as wanted, only
// read-after-write dependences and HBM bandwidth. A lower bound.
#pragma once

#include <map>

#include "plena/timing/issue_model.h"
#include "plena/timing/lazy_array.h"
#include "plena/timing/operand_ranges.h"

namespace plena {

/// When the value that a read of each part of a row would see is there: of its last writer in
/// program order, not of the latest one, since writes do not wait for each other here.
class RowValues {
 public:
  static Result<RowValues> create(std::uint64_t rows, std::uint32_t lanes, std::uint32_t granule);

  [[nodiscard]] Cycle ready(std::uint64_t first, std::uint32_t lanes) const;
  void write(std::uint64_t first, std::uint32_t lanes, Cycle done);

 private:
  struct Row {
    Cycle whole;             // by the last whole-row write
    std::uint64_t granules;  // 1 + index of the first granule; 0: none
    bool in_part;            // granules hold, and `whole` does not
  };

  LazyArray<Row> rows_;
  std::vector<Cycle> granules_;
  std::uint32_t lanes_ = 1;
  std::uint32_t granule_ = 1;
};

/// Bytes of HBM by the cycle at which their last store was accepted.
class StoredBytes {
 public:
  void write(std::uint64_t first, std::uint64_t bytes, Cycle accepted);
  [[nodiscard]] Cycle ready(std::uint64_t first, std::uint64_t bytes) const;

 private:
  struct Stored {
    std::uint64_t end;
    Cycle accepted;
  };
  std::map<std::uint64_t, Stored> ranges_;  // by first byte; never overlapping
};

/// Cycles are charged to the instruction that pushes the end of the run further: Completion, or
/// HbmData where that is a transfer.
class DataflowIssue final : public IssueModel {
 public:
  static Result<std::unique_ptr<DataflowIssue>> create(const TimedProgram& program, HbmModel& hbm,
                                                       const Settings& settings,
                                                       const Dialect& dialect);

  void retire(const Machine& machine, std::uint32_t pc, std::uint32_t rs1_before) override;
  void drain() override;
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] std::optional<std::array<UnitAccount, kUnitCount>> unit_accounts() const override {
    return std::nullopt;
  }

 private:
  struct ReadRanges;
  struct WriteRanges;

  DataflowIssue(const TimedProgram& program, HbmModel& hbm, const RangeRules& rules, RowValues vram,
                RowValues mram);

  [[nodiscard]] Cycle sources_ready(const TimedInstruction& i) const;
  [[nodiscard]] Cycle result_done(const TimedInstruction& i, Cycle at);
  Cycle load(const TimedInstruction& i, const TransferRows& rows, Cycle at, std::uint64_t to);
  Cycle store(const TimedInstruction& i, const TransferRows& rows, Cycle at, std::uint64_t from);
  [[nodiscard]] Cycle stored(const TransferRows& rows, Cycle at) const;
  void write_register(const TimedInstruction& i, Cycle done);
  void push_end(std::uint32_t pc, const TimedInstruction& i, Cycle issue, Cycle done);

  RangeRules rules_;
  PeakRate peak_;
  Cycle start_ = 0;  // nothing starts earlier: the last drain()
  Cycle end_ = 0;
  std::uint64_t bursts_ = 0;  // since start_
  std::array<Cycle, kSlotCount> ready_{};
  std::array<Cycle, 8> computed_{};  // by ArrayShape: computes since the last write-out
  RowValues vram_;
  RowValues mram_;
  std::vector<Cycle> fp_mem_;
  std::vector<Cycle> int_mem_;
  StoredBytes stored_;
};

}  // namespace plena
