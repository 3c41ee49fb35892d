#include "plena/observe/report_page.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include "plena/asm/disassembler.h"
#include "plena/config/keys.h"
#include "plena/machine/work.h"
#include "plena/observe/page_source.h"
#include "plena/timing/roofline.h"

namespace plena {

namespace {

using Json = nlohmann::ordered_json;

Json names_json(std::size_t count, std::string_view (*name)(std::size_t)) {
  Json names = Json::array();
  for (std::size_t i = 0; i < count; ++i) names.push_back(name(i));
  return names;
}

Json cycles_json(const CauseCycles& causes) {
  return Json(causes.cycles);
}

// ------------------------------------------------------------ the program

// What a stretch of the program did besides taking cycles.
struct StretchWork {
  std::uint64_t multiply_adds = 0;
  std::uint64_t bytes = 0;
};

std::vector<StretchWork> work_by_pc(const ReportInput& in) {
  std::vector<StretchWork> work(in.report.instructions.size());
  for (std::size_t pc = 0; pc < work.size(); ++pc) {
    const Op op = in.timing.program().timed[pc].op;
    work[pc] = {
        in.report.instructions[pc].executions * multiply_adds_of(op, in.settings, in.dialect),
        in.timeline.bytes()[pc]};
  }
  return work;
}

Json stretch_json(std::string name, std::uint64_t begin, std::uint64_t end,
                  const CauseCycles& causes, const std::vector<StretchWork>& work) {
  StretchWork sum;
  for (std::uint64_t pc = begin; pc < end; ++pc) {
    sum.multiply_adds += work[pc].multiply_adds;
    sum.bytes += work[pc].bytes;
  }
  return {{"name", std::move(name)},
          {"begin", begin},
          {"end", end},
          {"causes", cycles_json(causes)},
          {"multiply_adds", sum.multiply_adds},
          {"bytes", sum.bytes}};
}

// Indices of the stretches that are shown, in program order.
template <class Account>
std::vector<std::size_t> shown(const std::vector<Account>& accounts) {
  std::vector<std::size_t> indices(accounts.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  if (indices.size() <= kMostStretches) return indices;
  std::ranges::stable_sort(indices, std::ranges::greater{},
                           [&](std::size_t i) { return accounts[i].causes.total(); });
  indices.resize(kMostStretches);
  std::ranges::sort(indices);
  return indices;
}

Json regions_json(const ReportInput& in, const std::vector<StretchWork>& work) {
  Json regions = Json::array();
  std::vector<std::uint64_t> open;  // ends of the regions around
  for (const std::size_t index : shown(in.report.regions)) {
    const RegionAccount& region = in.report.regions[index];
    while (!open.empty() && open.back() <= region.region.begin) open.pop_back();
    Json json = stretch_json(region.region.name, region.region.begin, region.region.end,
                             region.causes, work);
    json["depth"] = open.size();
    regions.push_back(std::move(json));
    open.push_back(region.region.end);
  }
  return regions;
}

std::string place(const Program& program, std::uint64_t pc) {
  return pc < program.lines.size() ? fmt::format("line {}", program.lines[pc])
                                   : fmt::format("pc {}", pc);
}

Json loops_json(const ReportInput& in, const std::vector<StretchWork>& work) {
  Json loops = Json::array();
  for (const LoopAccount& loop : in.report.loops) {
    Json json = stretch_json(
        fmt::format("{} to {}", place(in.program, loop.start), place(in.program, loop.end)),
        loop.start, loop.end + std::uint64_t{1}, loop.causes, work);
    json["depth"] = loop.depth;
    json["entries"] = loop.entries;
    json["iterations"] = loop.iterations;
    loops.push_back(std::move(json));
  }
  return loops;
}

// pcs of the listing in program order: all, or those that took most.
std::vector<std::uint32_t> listed_instructions(const TimingReport& report) {
  std::vector<std::uint32_t> listed;
  if (report.instructions.size() <= kMostListed) {
    listed.resize(report.instructions.size());
    std::iota(listed.begin(), listed.end(), 0U);
    return listed;
  }
  listed = top_instructions(report, kMostListed);
  std::ranges::sort(listed);
  return listed;
}

Json instructions_json(const ReportInput& in, const std::vector<StretchWork>& work) {
  Json instructions = Json::array();
  for (const std::uint32_t pc : listed_instructions(in.report)) {
    const InstructionAccount& account = in.report.instructions[pc];
    instructions.push_back({{"pc", pc},
                            {"line", pc < in.program.lines.size() ? in.program.lines[pc] : 0},
                            {"text", disassemble(in.program.words[pc], in.dialect)},
                            {"unit", in.timing.program().timed[pc].unit},
                            {"times", account.executions},
                            {"causes", cycles_json(account.causes)},
                            {"bytes", work[pc].bytes}});
  }
  return instructions;
}

// Lines of the source; of a long one none, since the listing has the instructions anyway.
Json source_json(const ReportInput& in) {
  Json lines = Json::array();
  if (in.program.lines.empty() || in.source.size() > kMostSourceBytes) return lines;
  std::string_view rest = in.source;
  while (!rest.empty()) {
    if (lines.size() == kMostListed) return Json::array();
    const std::size_t end = rest.find('\n');
    lines.push_back(std::string(rest.substr(0, end)));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return lines;
}

// ------------------------------------------------------------ time

Json series_json(const BinnedSeries& series, Cycle width) {
  Json amounts = Json::array();
  for (const double amount : series.widened(width))
    amounts.push_back(static_cast<std::uint64_t>(std::llround(amount)));
  return amounts;
}

// Places in the list of regions; null where there is none, or none that is shown.
Json region_series_json(const ReportInput& in, Cycle width) {
  Json series = Json::array();
  if (in.report.regions.empty()) return series;
  const std::vector<std::size_t> regions = shown(in.report.regions);
  for (const std::uint32_t region : in.timeline.regions().widened(width)) {
    const auto place = std::ranges::lower_bound(regions, std::size_t{region});
    const bool is_shown = region != kNoRegion && place != regions.end() && *place == region;
    series.push_back(is_shown ? Json(place - regions.begin()) : Json());
  }
  return series;
}

Json timeline_json(const ReportInput& in) {
  const Cycle width = in.timeline.width();
  Json busy = Json::array();
  for (std::size_t u = 0; u < kUnitCount; ++u)
    busy.push_back(series_json(in.timeline.busy(static_cast<Unit>(u)), width));
  Json waiting = Json::array();
  for (std::size_t c = 0; c < kStallCauseCount; ++c)
    waiting.push_back(series_json(in.timeline.waiting(static_cast<Cause>(c)), width));
  Json moved = Json::array();
  for (const BinnedSeries& channel : in.timeline.moved())
    moved.push_back(series_json(channel, width));
  Json details = Json::array();
  for (const TimelineBins::Detail& d : in.timeline.details())
    details.push_back({d.pc, d.unit, d.issue, d.end, d.stall, d.cause});
  return {{"width", width},
          {"regions", region_series_json(in, width)},
          {"busy", std::move(busy)},
          {"waiting", std::move(waiting)},
          {"moved", std::move(moved)},
          {"channels", in.timeline.has_channels()},
          {"details", std::move(details)},
          {"details_end", in.timeline.details().size() < TimelineBins::kMostDetailed
                              ? in.report.total
                              : in.timeline.details().back().issue}};
}

// ------------------------------------------------------------ memory

Json rows_json(const dram::DirectionStatistics& direction) {
  return {{"hits", direction.rows.hits},
          {"misses", direction.rows.misses},
          {"conflicts", direction.rows.conflicts}};
}

// How often which latency occurred, in at most 48 equal steps.
Json histogram_json(const dram::LatencyHistogram& latency) {
  constexpr std::uint64_t kSteps = 48;
  const auto step = static_cast<std::uint64_t>(latency.max()) / kSteps + 1;
  std::vector<std::uint64_t> counts(static_cast<std::uint64_t>(latency.max()) / step + 1);
  for (const auto& [cycles, times] : latency.counts())
    counts[static_cast<std::uint64_t>(cycles) / step] += times;
  return {{"step", step}, {"counts", counts}};
}

Json hbm_json(const ReportInput& in) {
  const TimingReport& report = in.report;
  Json json = {{"memory", report.memory},
               {"read", report.traffic.read * kBurstBytes},
               {"written", report.traffic.written * kBurstBytes},
               {"rate", report.bytes_per_cycle()},
               {"peak", report.peak_bytes_per_cycle},
               {"transfers", Json::array()}};
  if (report.controller) {
    json["reads"] = rows_json(report.controller->reads());
    json["writes"] = rows_json(report.controller->writes());
  }
  for (std::size_t t = 0; t < report.transfer_latencies.size(); ++t) {
    const dram::LatencyHistogram& latency = report.transfer_latencies[t];
    if (latency.count() == 0) continue;
    json["transfers"].push_back({{"unit", static_cast<std::size_t>(Unit::LoadM) + t},
                                 {"count", latency.count()},
                                 {"mean", latency.mean()},
                                 {"median", latency.percentile(0.5)},
                                 {"p95", latency.percentile(0.95)},
                                 {"most", latency.max()},
                                 {"histogram", histogram_json(latency)}});
  }
  return json;
}

// ------------------------------------------------------------ settings

Json settings_json(const ReportInput& in) {
  const TimingProfile& profile = in.timing.profile();
  Json rows = Json::array();
  const auto row = [&](std::string_view name, std::string value) {
    rows.push_back({name, std::move(value)});
  };
  row("profile", profile.name);
  row("overlap", std::string(overlap_name(profile.overlap)));
  row("clock", fmt::format("{} MHz", profile.clock_mhz));
  row("transfers a unit", fmt::format("{}", profile.queue_depth));
  row("memory", in.report.memory);
  if (in.report.controller) {
    row("channels", fmt::format("{}", profile.hbm.channels));
    row("refresh", std::string(dram::name(profile.hbm.refresh)));
  }
  row("instruction set", in.dialect.name());
  for (const IntegerKey& key : integer_keys())
    row(key.name, fmt::format("{}", key.get(in.settings)));
  for (const TypeKey& key : type_keys()) row(key.name, (in.settings.*key.member).name());
  return rows;
}

Json roofline_json(const ReportInput& in) {
  const Roofline& roofline = in.report.roofline;
  Json bounds = Json::array();
  for (std::size_t b = 0; b < kBoundCount; ++b)
    bounds.push_back({bound_name(static_cast<Bound>(b)), roofline.cycles[b]});
  return {{"bounds", std::move(bounds)},
          {"binding", roofline.binding()},
          {"array_peak", std::uint64_t{in.settings.blen} * in.settings.mlen},
          {"memory_peak", in.report.peak_bytes_per_cycle}};
}

// Text from outside ends neither the script element nor the JSON in it: `<` stands nowhere else in
// JSON than in strings.
std::string embedded(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

Json report_json(const ReportInput& in) {
  const std::vector<StretchWork> work = work_by_pc(in);
  Json program = stretch_json(in.title, 0, in.report.instructions.size(), in.report.causes, work);
  program["instructions"] = in.report.roofline.work.instructions;
  Json units = Json::array();
  if (in.report.units) {
    for (const UnitAccount& unit : *in.report.units)
      units.push_back({{"busy", unit.busy},
                       {"waiting", cycles_json(unit.waiting)},
                       {"nothing_to_do", unit.nothing_to_do}});
  }
  Json json = {
      {"title", in.title},
      {"cycles", in.report.total},
      {"clock_mhz", in.report.clock_mhz},
      {"profile", in.report.profile},
      {"overlap", overlap_name(in.report.overlap)},
      {"cause_names",
       names_json(kCauseCount, [](std::size_t c) { return cause_name(static_cast<Cause>(c)); })},
      {"unit_names",
       names_json(kUnitCount, [](std::size_t u) { return unit_name(static_cast<Unit>(u)); })},
      {"program", std::move(program)},
      {"regions", regions_json(in, work)},
      {"loops", loops_json(in, work)},
      {"instructions", instructions_json(in, work)},
      {"listed_of", in.report.instructions.size()},
      {"regions_of", in.report.regions.size()},
      {"loops_of", in.report.loops.size()},
      {"source_name", in.program.source_name},
      {"source", source_json(in)},
      {"units", std::move(units)},
      {"timeline", timeline_json(in)},
      {"roofline", roofline_json(in)},
      {"hbm", hbm_json(in)},
      {"settings", settings_json(in)}};
  if (in.report.picojoules) json["picojoules"] = *in.report.picojoules;
  return json;
}

std::string report_page(const ReportInput& input) {
  return page_before_data() + embedded(report_json(input)) + page_after_data();
}

}  // namespace plena
