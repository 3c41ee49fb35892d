// The options that draw a timed run: --trace (cli.md).
#pragma once

#include <memory>
#include <string>

#include "plena/cli/context.h"
#include "plena/cli/timing_options.h"
#include "plena/observe/timeline_trace.h"

namespace plena {

struct TimelineOptions {
  std::string trace;  // file; empty: none

  [[nodiscard]] bool wanted() const { return !trace.empty(); }
};

/// Adds them beside those of `timing`, which count with `pipelined` where a drawing is wanted and
/// no profile was named.
void add_timeline_options(CLI::App& command, TimelineOptions& options);
TimingOptions with_clock_for(const TimelineOptions& options, TimingOptions timing);

/// What draws a run while it goes on.
class Timeline {
 public:
  /// Listens to `clock`, which was made for `program`; both must outlive it. Null where nothing is
  /// wanted. A file that can no longer be written stops the run as Ctrl-C does.
  static Result<std::unique_ptr<Timeline>> attach(const TimelineOptions& options, Timing& clock,
                                                  const Program& program, const Settings& settings,
                                                  const Dialect& dialect, const std::string& title);

  /// Ends the trace, also of a run that was interrupted, and says where writing failed.
  Status finish();

 private:
  explicit Timeline(Timing& clock) : clock_(clock) {}

  Timing& clock_;
  std::unique_ptr<TimelineTrace> trace_;
};

}  // namespace plena
