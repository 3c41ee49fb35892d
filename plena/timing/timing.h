// The clock of a run: watches the functional engine and says when everything happens, and why not
// earlier. Values never change.
#pragma once

#include <memory>

#include "plena/sim/engine.h"
#include "plena/timing/issue_model.h"
#include "plena/timing/operand_ranges.h"
#include "plena/timing/profile.h"

namespace plena {

class Timing final : public Observer {
 public:
  /// For runs of `instructions` on machines of these settings and dialect. A cost of the profile
  /// that makes no sense for them is an error.
  static Result<std::unique_ptr<Timing>> create(const TimingProfile& profile,
                                                std::unique_ptr<HbmModel> hbm,
                                                const std::vector<Instruction>& instructions,
                                                const Settings& settings, const Dialect& dialect);

  void about_to_run(const Machine& machine, std::uint64_t /*pc*/,
                    const Instruction& instruction) override {
    // The one instruction that can overwrite the register it takes an address from.
    if (instruction.op == Op::S_LD_INT)
      int_address_ = rules_.sum(machine.gp[instruction.rs1], instruction.imm);
  }

  void retired(const Machine& machine, std::uint64_t pc,
               const Instruction& /*instruction*/) override {
    if (!stuck_) [[likely]] {
      model_->retire(machine, static_cast<std::uint32_t>(pc), int_address_);
      stuck_ = hbm_->failure().has_value();
    }
  }

  /// Waits until everything is complete; a run may go on after it, later in time. Fails when the
  /// memory can never answer (a deadlock), with the state of the machine's queues.
  Status drain();

  [[nodiscard]] const TimingProfile& profile() const { return profile_; }
  [[nodiscard]] const TimedProgram& program() const { return *program_; }
  [[nodiscard]] const IssueModel& model() const { return *model_; }
  [[nodiscard]] const HbmModel& hbm() const { return *hbm_; }

  /// Tells everything in time; null: nobody. Must outlive the runs.
  void set_listener(TimelineListener* listener) { model_->set_listener(listener); }

 private:
  Timing(const TimingProfile& profile, std::unique_ptr<HbmModel> hbm, const RangeRules& rules)
      : profile_(profile), hbm_(std::move(hbm)), rules_(rules) {}

  TimingProfile profile_;
  std::unique_ptr<HbmModel> hbm_;
  std::unique_ptr<const TimedProgram> program_;
  std::unique_ptr<IssueModel> model_;
  RangeRules rules_;
  std::uint64_t int_address_ = 0;
  bool stuck_ = false;
};

}  // namespace plena
