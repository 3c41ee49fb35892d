#include "plena/timing/timing.h"

#include "plena/timing/dataflow_issue.h"
#include "plena/timing/pipelined_issue.h"
#include "plena/timing/serial_issue.h"

namespace plena {

namespace {

template <class Model>
Result<std::unique_ptr<IssueModel>> as_issue_model(Result<std::unique_ptr<Model>> made) {
  if (!made) return forward_error(made);
  return std::unique_ptr<IssueModel>(std::move(*made));
}

Result<std::unique_ptr<IssueModel>> make_model(const TimingProfile& profile,
                                               const TimedProgram& program, HbmModel& hbm,
                                               const Settings& settings, const Dialect& dialect) {
  switch (profile.overlap) {
    case Overlap::Serial:
      return std::unique_ptr<IssueModel>(std::make_unique<SerialIssue>(program, hbm));
    case Overlap::Pipelined:
      return as_issue_model(
          PipelinedIssue::create(program, hbm, settings, dialect, profile.queue_depth));
    case Overlap::Ideal:
      return as_issue_model(DataflowIssue::create(program, hbm, settings, dialect));
  }
  return fail(ErrorCode::Usage, "the profile does not say how instructions overlap");
}

}  // namespace

Result<std::unique_ptr<Timing>> Timing::create(const TimingProfile& profile,
                                               std::unique_ptr<HbmModel> hbm,
                                               const std::vector<Instruction>& instructions,
                                               const Settings& settings, const Dialect& dialect) {
  std::unique_ptr<Timing> timing(new Timing(profile, std::move(hbm)));
  auto program = TimedProgram::create(instructions, settings, dialect, timing->profile_);
  if (!program) return forward_error(program);
  timing->program_ = std::make_unique<const TimedProgram>(std::move(*program));
  auto model = make_model(timing->profile_, *timing->program_, *timing->hbm_, settings, dialect);
  if (!model) return forward_error(model);
  timing->model_ = std::move(*model);
  return timing;
}

Status Timing::drain() {
  const std::string state = model_->state();
  if (!hbm_->failure()) {
    model_->drain();
    hbm_->catch_up();
  }
  if (!hbm_->failure()) return {};
  Error error = *hbm_->failure();
  error.hint = state;
  return tl::unexpected(std::move(error));
}

}  // namespace plena
