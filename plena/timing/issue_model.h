// How time passes from instruction to instruction: one model for each way to overlap them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plena/dram/statistics.h"
#include "plena/timing/accounts.h"
#include "plena/timing/hbm_model.h"
#include "plena/timing/timed_program.h"
#include "plena/timing/timeline.h"

namespace plena {

class IssueModel {
 public:
  /// `program` and `hbm` must outlive the model.
  IssueModel(const TimedProgram& program, HbmModel& hbm)
      : program_(program), hbm_(hbm), accounts_(program.timed.size()) {}
  IssueModel(const IssueModel&) = delete;
  IssueModel& operator=(const IssueModel&) = delete;
  virtual ~IssueModel() = default;

  /// The instruction at `pc` has retired on `machine`. `rs1_before` is what gp<rs1> held before
  /// it; only S_LD_INT, which may overwrite its address, needs it.
  virtual void retire(const Machine& machine, std::uint32_t pc, std::uint32_t rs1_before) = 0;

  /// Waits until everything is complete, transfers included; what comes later starts after that.
  virtual void drain() = 0;

  /// What is under way, for the message of a run that cannot go on.
  [[nodiscard]] virtual std::string state() const = 0;

  /// Cycles up to the last drain().
  [[nodiscard]] Cycle total() const { return total_; }
  /// Of all instructions up to the last drain(), by pc.
  [[nodiscard]] virtual std::vector<InstructionAccount> accounts() const { return accounts_; }
  /// Of all units up to the last drain(); nothing where there are as many units as wanted.
  [[nodiscard]] virtual std::optional<std::array<UnitAccount, kUnitCount>> unit_accounts()
      const = 0;

  /// Cycles from issue to completion of the transfers that are complete, by unit: load-M, load-V,
  /// store.
  [[nodiscard]] const std::array<dram::LatencyHistogram, 3>& transfer_latencies() const {
    return transfer_latencies_;
  }

  void set_listener(TimelineListener* listener) { listener_ = listener; }
  [[nodiscard]] bool listened() const { return listener_ != nullptr; }

 protected:
  void note_transfer(Unit unit, Cycle issue, Cycle complete) {
    const auto index = static_cast<std::size_t>(unit) - static_cast<std::size_t>(Unit::LoadM);
    transfer_latencies_[index].add(static_cast<dram::Tick>(complete - issue));
  }

  const TimedProgram& program_;
  HbmModel& hbm_;
  std::vector<InstructionAccount> accounts_;  // by pc
  Cycle total_ = 0;
  TimelineListener* listener_ = nullptr;

 private:
  std::array<dram::LatencyHistogram, 3> transfer_latencies_;
};

}  // namespace plena
