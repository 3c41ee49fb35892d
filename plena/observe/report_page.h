// The report of a timed run: one HTML file that holds everything it shows and asks no network.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "plena/config/settings.h"
#include "plena/isa/encoding.h"
#include "plena/observe/timeline_bins.h"
#include "plena/timing/report.h"

namespace plena {

/// Everything a page shows. The references must outlive the call.
struct ReportInput {
  std::string title;   // what ran
  std::string source;  // text of program.source_name; may be empty
  const Program& program;
  const Timing& timing;
  const TimingReport& report;
  const TimelineBins& timeline;
  const Settings& settings;
  const Dialect& dialect;
};

/// Lines of the listing at most: a program that has more shows those that took most.
inline constexpr std::size_t kMostListed = 20'000;

/// What the page's script reads; page/report.js says what each part means.
nlohmann::ordered_json report_json(const ReportInput& input);

/// The page. Nothing in the program or its source can end the script it is embedded in.
std::string report_page(const ReportInput& input);

}  // namespace plena
