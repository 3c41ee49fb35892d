#include "plena/cli/timeline_options.h"

#include "plena/cli/interrupt.h"
#include "plena/observe/report_page.h"

namespace plena {

void add_timeline_options(CLI::App& command, TimelineOptions& options) {
  constexpr const char* kGroup = "Timing";
  command
      .add_option("--trace", options.trace,
                  "Write the run in time to FILE.pftrace, for the Perfetto viewer; --timing "
                  "pipelined where none is named")
      ->type_name("FILE")
      ->group(kGroup);
  command
      .add_option("--report", options.report,
                  "Write a page to FILE.html that shows where the cycles went; --timing pipelined "
                  "where none is named")
      ->type_name("FILE")
      ->group(kGroup);
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
  std::unique_ptr<Timeline> timeline(new Timeline(clock, program, settings, dialect, title));
  if (!options.trace.empty()) {
    auto trace = TimelineTrace::create({options.trace, title, request_stop}, program, clock,
                                       settings, dialect);
    if (!trace) return forward_error(trace);
    timeline->trace_ = std::move(*trace);
    timeline->listeners_.add(*timeline->trace_);
  }
  if (!options.report.empty()) {
    // Now, so that a long run does not end in a complaint that could have come first.
    auto file = FileWriter::create(options.report);
    if (!file) return forward_error(file);
    timeline->report_ = std::move(*file);
    timeline->listeners_.add(timeline->bins_.emplace(clock, program));
  }
  clock.set_listener(timeline->listeners_.listener());
  return timeline;
}

// Transfers are told when they are complete: an interrupted run lets those it has begun arrive.
Status Timeline::finish() {
  const Status drained = clock_.drain();
  clock_.set_listener(nullptr);
  if (trace_) {
    if (auto finished = trace_->finish(); !finished) return finished;
  }
  return drained;
}

Status Timeline::write_report(std::string source) {
  if (!report_) return {};
  const TimingReport report = make_report(clock_, settings_, dialect_, program_.regions);
  const std::string page = report_page({.title = title_,
                                        .source = std::move(source),
                                        .program = program_,
                                        .timing = clock_,
                                        .report = report,
                                        .timeline = *bins_,
                                        .settings = settings_,
                                        .dialect = dialect_});
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(page.data());
  if (auto written = report_->append({bytes, page.size()}); !written) return written;
  return report_->commit();
}

}  // namespace plena
