#include "plena/timing/testing/timed_run.h"

#include <map>

#include <gtest/gtest.h>

#include "plena/asm/assembler.h"
#include "plena/sim/engine.h"

namespace plena {

namespace {

class Recorder final : public TimelineListener {
 public:
  explicit Recorder(TimedRun& run) : run_(run) {}
  void issued(const IssueEvent& event) override {
    if (is_transfer_unit(event.unit)) transfers_[{event.pc, event.issue}] = run_.issues.size();
    run_.issues.push_back(event.issue);
    run_.completes.push_back(event.complete);
    run_.stalls.push_back(event.stall);
    run_.causes.push_back(event.cause);
  }
  void transferred(const TransferEvent& event) override {
    run_.completes[transfers_.at({event.pc, event.issue})] = event.complete;
  }

 private:
  TimedRun& run_;
  std::map<std::pair<std::uint32_t, Cycle>, std::size_t> transfers_;
};

}  // namespace

TimedRunOptions run_with(const std::string& profile) {
  return {.profile = *load_profile(profile)};
}

TimedRun timed_run(const std::vector<std::uint32_t>& words, const TimedRunOptions& options) {
  TimedRun run;
  auto machine = Machine::create(options.settings, options.dialect);
  EXPECT_TRUE(machine) << machine.error().render();
  const auto prepared = prepare(words, options.settings, options.dialect);
  EXPECT_TRUE(prepared) << prepared.error().values << ": " << prepared.error().rule;

  std::unique_ptr<HbmModel> memory =
      options.make_memory ? options.make_memory()
                          : std::make_unique<IdealHbm>(options.hbm, options.profile.clock_mhz);
  auto timing = Timing::create(options.profile, std::move(memory), instructions(**prepared),
                               options.settings, options.dialect);
  EXPECT_TRUE(timing) << timing.error().render();
  run.timing = std::move(*timing);
  Recorder recorder(run);
  if (options.listen) run.timing->set_listener(&recorder);
  const Stop stop = plena::run(*machine, **prepared, {.observer = run.timing.get()});
  EXPECT_NE(stop.reason, StopReason::Interrupted);
  const Status drained = run.timing->drain();
  EXPECT_TRUE(drained) << drained.error().render();
  run.timing->set_listener(nullptr);
  run.total = run.timing->model().total();
  return run;
}

TimedRun timed_run(std::string_view text, const TimedRunOptions& options) {
  const Assembly assembly =
      assemble(text, {.dialect = options.dialect, .symbols = integer_symbols(options.settings)});
  EXPECT_TRUE(assembly.ok()) << first_error(assembly).render();
  return timed_run(assembly.program.words, options);
}

}  // namespace plena
