#include "plena/cli/timeline_options.h"

#include "plena/cli/interrupt.h"

namespace plena {

void add_timeline_options(CLI::App& command, TimelineOptions& options) {
  command
      .add_option("--trace", options.trace,
                  "Write the run in time to FILE.pftrace, for the Perfetto viewer; counts cycles "
                  "with pipelined unless --timing says otherwise")
      ->type_name("FILE")
      ->group("Timing");
}

TimingOptions with_clock_for(const TimelineOptions& options, TimingOptions timing) {
  if (options.wanted() && !timing.wanted()) timing.profile = "pipelined";
  return timing;
}

Result<std::unique_ptr<Timeline>> Timeline::attach(const TimelineOptions& options, Timing& clock,
                                                   const Program& program, const Settings& settings,
                                                   const Dialect& dialect,
                                                   const std::string& title) {
  if (!options.wanted()) return std::unique_ptr<Timeline>();
  std::unique_ptr<Timeline> timeline(new Timeline(clock));
  auto trace = TimelineTrace::create({options.trace, title, request_stop}, program, clock, settings,
                                     dialect);
  if (!trace) return forward_error(trace);
  timeline->trace_ = std::move(*trace);
  clock.set_listener(timeline->trace_.get());
  return timeline;
}

// Transfers are drawn when they are complete: an interrupted run lets those it has begun arrive.
Status Timeline::finish() {
  const Status drained = clock_.drain();
  clock_.set_listener(nullptr);
  if (auto finished = trace_->finish(); !finished) return finished;
  return drained;
}

}  // namespace plena
