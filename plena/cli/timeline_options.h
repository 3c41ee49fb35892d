// The options that draw a timed run: --trace and --report (cli.md).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "plena/base/files.h"
#include "plena/cli/context.h"
#include "plena/cli/timing_options.h"
#include "plena/observe/timeline_bins.h"
#include "plena/observe/timeline_listeners.h"
#include "plena/observe/timeline_trace.h"

namespace plena {

struct TimelineOptions {
  std::string trace;   // file; empty: none
  std::string report;  // file; empty: none

  [[nodiscard]] bool wanted() const { return !trace.empty() || !report.empty(); }
};

void add_timeline_options(CLI::App& command, TimelineOptions& options);
/// `timing`, with the profile `pipelined` where a drawing is wanted and no profile was named.
TimingOptions with_clock_for(const TimelineOptions& options, TimingOptions timing);

/// What draws a run while it goes on.
class Timeline {
 public:
  /// Listens to `clock`, which was made for `program`; all must outlive it. Null where nothing is
  /// wanted. `title` is what the drawings call the run. A trace that can no longer be written stops
  /// the run as Ctrl-C does.
  static Result<std::unique_ptr<Timeline>> attach(const TimelineOptions& options, Timing& clock,
                                                  const Program& program, const Settings& settings,
                                                  const Dialect& dialect, const std::string& title);

  /// After the run: waits until everything is complete and ends the trace, also that of a run that
  /// was interrupted. Says where writing failed.
  Status finish();
  /// Writes the report, where one is wanted, of a run that came to its end; after finish().
  /// `source` is the text that the program's lines count in; without it the page lists
  /// instructions.
  Status write_report(std::string source);

 private:
  Timeline(Timing& clock, const Program& program, const Settings& settings, const Dialect& dialect,
           std::string title)
      : clock_(clock),
        program_(program),
        settings_(settings),
        dialect_(dialect),
        title_(std::move(title)) {}

  Timing& clock_;
  const Program& program_;
  const Settings& settings_;
  const Dialect& dialect_;
  std::string title_;
  std::unique_ptr<TimelineTrace> trace_;
  std::optional<TimelineBins> bins_;
  std::optional<FileWriter> report_;
  TimelineListeners listeners_;
};

}  // namespace plena
