// The clock of a run: watches the functional engine and says when everything happens, and why not
// earlier. Values never change.
#pragma once

#include <memory>

#include "plena/sim/engine.h"
#include "plena/timing/issue_model.h"
#include "plena/timing/profile.h"

namespace plena {

/// The loop of Timing::own_loop(); `observer` is a Timing.
Stop run_timed(Observer& observer, Machine& machine, const PreparedProgram& program,
               const RunOptions& options);

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
    rs1_before_ = machine.gp[instruction.rs1];
  }

  void retired(const Machine& machine, std::uint64_t pc,
               const Instruction& /*instruction*/) override {
    model_->retire(machine, static_cast<std::uint32_t>(pc), rs1_before_);
  }

  /// A loop with the clock inside (timed_loop.cc), used where nothing else watches the run.
  [[nodiscard]] Loop own_loop() const override { return run_timed; }

  /// Waits until everything is complete; a run may go on after it, later in time. Fails when the
  /// memory can never answer (a deadlock), with the state of the machine's queues.
  Status drain();

  [[nodiscard]] const TimingProfile& profile() const { return profile_; }
  [[nodiscard]] const TimedProgram& program() const { return *program_; }
  [[nodiscard]] const IssueModel& model() const { return *model_; }
  [[nodiscard]] IssueModel& issue_model() { return *model_; }
  [[nodiscard]] const HbmModel& hbm() const { return *hbm_; }

  /// Tells everything in time; null: nobody. Must outlive the runs.
  void set_listener(TimelineListener* listener) {
    model_->set_listener(listener);
    hbm_->set_listener(listener);
  }

 private:
  Timing(const TimingProfile& profile, std::unique_ptr<HbmModel> hbm)
      : profile_(profile), hbm_(std::move(hbm)) {}

  TimingProfile profile_;
  std::unique_ptr<HbmModel> hbm_;
  std::unique_ptr<const TimedProgram> program_;
  std::unique_ptr<IssueModel> model_;
  std::uint32_t rs1_before_ = 0;
};

}  // namespace plena
