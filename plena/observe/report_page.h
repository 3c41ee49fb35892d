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

/// Of a larger program the page has what took most: so many instructions, regions and loops, and
/// no source text beyond so many lines and bytes.
inline constexpr std::size_t kMostListed = 20'000;
inline constexpr std::size_t kMostStretches = 1'000;
inline constexpr std::size_t kMostSourceBytes = std::size_t{4} << 20;

/// What the page's script reads; page/report.js says what each part means.
nlohmann::ordered_json report_json(const ReportInput& input);

/// The page. Nothing in the program or its source can end the script it is embedded in.
std::string report_page(const ReportInput& input);

}  // namespace plena
