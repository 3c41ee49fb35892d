#include "plena/timing/report_text.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plena/asm/disassembler.h"

namespace plena {

namespace {

constexpr std::size_t kListed = 10;  // instructions and loops

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

Unit transfer_unit(std::size_t index) {
  return static_cast<Unit>(static_cast<std::size_t>(Unit::LoadM) + index);
}

// Causes by their cycles, most first; those without are left out.
std::vector<Cause> by_size(const CauseCycles& causes) {
  std::vector<Cause> sorted;
  for (std::size_t c = 0; c < kCauseCount; ++c)
    if (causes.cycles[c] != 0) sorted.push_back(static_cast<Cause>(c));
  std::ranges::stable_sort(sorted, std::ranges::greater{}, [&](Cause c) { return causes[c]; });
  return sorted;
}

// `HBM data 63 %, issue 20 %, register 17 %`; what rounds to nothing is left out.
std::string shares(const CauseCycles& causes) {
  constexpr double kLeastShown = 0.5;
  std::string text;
  for (const Cause cause : by_size(causes)) {
    const double share = percent(causes[cause], causes.total());
    if (share < kLeastShown) break;
    fmt::format_to(std::back_inserter(text), "{}{} {:.0f} %", text.empty() ? "" : ", ",
                   cause_name(cause), share);
  }
  return text;
}

std::string place_of(const Program& program, std::uint64_t pc) {
  return pc < program.lines.size() ? fmt::format("line {}", program.lines[pc])
                                   : fmt::format("pc {}", pc);
}

// Sections of the text, each appended to one string.
class Writer {
 public:
  Writer(const TimingReport& report, const Program& program, const Dialect& dialect)
      : report_(report), program_(program), dialect_(dialect) {}

  std::string write() {
    totals();
    memory();
    bounds();
    causes();
    units();
    instructions();
    loops();
    regions();
    return std::move(text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  void totals() {
    line("{:<20} {:>16}  ({:.3f} us at {} MHz, profile {})", "cycles", report_.total,
         1e6 * report_.seconds(), report_.clock_mhz, report_.profile);
    line("{:<20} {:>16}  ({:.1f} of {:.1f} bytes a cycle, {:.1f} %)", "HBM bytes in bursts",
         report_.hbm_bytes(), report_.bytes_per_cycle(), report_.peak_bytes_per_cycle,
         100.0 * report_.bytes_per_cycle() / report_.peak_bytes_per_cycle);
    if (report_.picojoules)
      line("{:<20} {:>16.3f}  microjoules", "energy", *report_.picojoules * 1e-6);
  }

  void memory() {
    if (report_.hbm_bytes() == 0) return;
    if (report_.controller) {
      dram::RowCounts rows = report_.controller->reads().rows;
      rows.hits += report_.controller->writes().rows.hits;
      rows.misses += report_.controller->writes().rows.misses;
      rows.conflicts += report_.controller->writes().rows.conflicts;
      const std::uint64_t all = rows.hits + rows.misses + rows.conflicts;
      line("  {:<18} {:>16}  {:5.1f} %, misses {:.1f} %, conflicts {:.1f} % ({})", "row hits",
           rows.hits, percent(rows.hits, all), percent(rows.misses, all),
           percent(rows.conflicts, all), report_.memory);
    }
    for (std::size_t t = 0; t < report_.transfer_latencies.size(); ++t) {
      const dram::LatencyHistogram& latency = report_.transfer_latencies[t];
      if (latency.count() == 0) continue;
      line("  {:<18} {:>16}  transfers of {:.1f} cycles on average, median {}, 95 % {}, most {}",
           unit_name(transfer_unit(t)), latency.count(), latency.mean(), latency.percentile(0.5),
           latency.percentile(0.95), latency.max());
    }
  }

  void bounds() {
    const Roofline& roofline = report_.roofline;
    line("lower bounds");
    for (std::size_t b = 0; b < kBoundCount; ++b) {
      const auto bound = static_cast<Bound>(b);
      if (roofline[bound] == 0) continue;
      line("  {:<18} {:>16}  {:5.1f} % of the cycles{}", bound_name(bound), roofline[bound],
           percent(roofline[bound], report_.total),
           bound == roofline.binding() ? ", the binding one" : "");
    }
  }

  void causes() {
    line("where the cycles went");
    for (const Cause cause : by_size(report_.causes)) {
      line("  {:<18} {:>16}  {:5.1f} %", cause_name(cause), report_.causes[cause],
           percent(report_.causes[cause], report_.total));
    }
  }

  void units() {
    if (!report_.units) return;
    line("units                            busy   waiting   nothing to do");
    for (std::size_t u = 0; u < kUnitCount; ++u) {
      const UnitAccount& unit = (*report_.units)[u];
      if (unit.busy == 0 && unit.waiting.total() == 0) continue;
      line("  {:<26} {:6.1f} %  {:6.1f} %        {:6.1f} %{}", unit_name(static_cast<Unit>(u)),
           percent(unit.busy, report_.total), percent(unit.waiting.total(), report_.total),
           percent(unit.nothing_to_do, report_.total),
           unit.waiting.total() == 0 ? "" : "  (waiting: " + shares(unit.waiting) + ")");
    }
  }

  void instructions() {
    const auto top = top_instructions(report_, kListed);
    if (top.empty()) return;
    line("most expensive instructions");
    for (const std::uint32_t pc : top) {
      const InstructionAccount& account = report_.instructions[pc];
      line("  {:>12} cycles {:5.1f} %  {:>9} times  {:<10} {:<36} {}", account.causes.total(),
           percent(account.causes.total(), report_.total), account.executions,
           place_of(program_, pc), disassemble(program_.words[pc], dialect_),
           shares(account.causes));
    }
  }

  void loops() {
    const auto top = top_loops(report_, kListed);
    if (top.empty()) return;
    line("most expensive loops");
    for (const std::size_t index : top) {
      const LoopAccount& loop = report_.loops[index];
      line("  {:>12} cycles {:5.1f} %  {:>9} iterations  {} to {}  {}", loop.causes.total(),
           percent(loop.causes.total(), report_.total), loop.iterations,
           place_of(program_, loop.start), place_of(program_, loop.end), shares(loop.causes));
    }
  }

  void regions() {
    if (report_.regions.empty()) return;
    line("regions");
    std::vector<std::uint64_t> open;  // ends of the regions around, the innermost last
    for (const RegionAccount& region : report_.regions) {
      while (!open.empty() && open.back() <= region.region.begin) open.pop_back();
      const std::string name = std::string(2 * open.size(), ' ') + region.region.name;
      open.push_back(region.region.end);
      line("  {:>12} cycles {:5.1f} %  {:>9} instructions  {:<24} {}", region.causes.total(),
           percent(region.causes.total(), report_.total), region.instructions, name,
           region.instructions == 0 ? "did not run" : shares(region.causes));
    }
  }

  const TimingReport& report_;
  const Program& program_;
  const Dialect& dialect_;
  std::string text_;
};

nlohmann::ordered_json causes_json(const CauseCycles& causes) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (std::size_t c = 0; c < kCauseCount; ++c) {
    if (causes.cycles[c] != 0) json[cause_name(static_cast<Cause>(c))] = causes.cycles[c];
  }
  return json;
}

nlohmann::ordered_json hbm_json(const TimingReport& report) {
  nlohmann::ordered_json json = {{"memory", report.memory},
                                 {"bytes_read", report.traffic.read * kBurstBytes},
                                 {"bytes_written", report.traffic.written * kBurstBytes},
                                 {"bytes_per_cycle", report.bytes_per_cycle()},
                                 {"peak_bytes_per_cycle", report.peak_bytes_per_cycle}};
  if (report.controller) {
    const dram::DirectionStatistics& reads = report.controller->reads();
    const dram::DirectionStatistics& writes = report.controller->writes();
    json["row_hits"] = reads.rows.hits + writes.rows.hits;
    json["row_misses"] = reads.rows.misses + writes.rows.misses;
    json["row_conflicts"] = reads.rows.conflicts + writes.rows.conflicts;
  }
  for (std::size_t t = 0; t < report.transfer_latencies.size(); ++t) {
    const dram::LatencyHistogram& latency = report.transfer_latencies[t];
    if (latency.count() == 0) continue;
    json["transfers"][unit_name(transfer_unit(t))] = {{"count", latency.count()},
                                                      {"mean_cycles", latency.mean()},
                                                      {"median_cycles", latency.percentile(0.5)},
                                                      {"p95_cycles", latency.percentile(0.95)},
                                                      {"max_cycles", latency.max()}};
  }
  return json;
}

nlohmann::ordered_json roofline_json(const TimingReport& report) {
  const Roofline& roofline = report.roofline;
  nlohmann::ordered_json bounds;
  for (std::size_t b = 0; b < kBoundCount; ++b)
    bounds[bound_name(static_cast<Bound>(b))] = roofline.cycles[b];
  return {{"multiply_adds", roofline.work.multiply_adds},
          {"vector_rows", roofline.work.vector_rows},
          {"instructions", roofline.work.instructions},
          {"hbm_bytes", roofline.work.hbm_bytes},
          {"bounds_cycles", bounds},
          {"binding", bound_name(roofline.binding())},
          {"achieved", roofline.achieved(report.total)}};
}

nlohmann::ordered_json units_json(const TimingReport& report) {
  nlohmann::ordered_json units = nlohmann::ordered_json::object();
  if (!report.units) return units;
  for (std::size_t u = 0; u < kUnitCount; ++u) {
    const UnitAccount& unit = (*report.units)[u];
    units[unit_name(static_cast<Unit>(u))] = {{"busy", unit.busy},
                                              {"waiting", causes_json(unit.waiting)},
                                              {"nothing_to_do", unit.nothing_to_do}};
  }
  return units;
}

nlohmann::ordered_json instructions_json(const TimingReport& report, const Program& program,
                                         const Dialect& dialect) {
  nlohmann::ordered_json instructions = nlohmann::ordered_json::array();
  for (std::size_t pc = 0; pc < report.instructions.size(); ++pc) {
    const InstructionAccount& account = report.instructions[pc];
    if (account.executions == 0) continue;
    nlohmann::ordered_json json = {{"pc", pc}};
    if (pc < program.lines.size()) json["line"] = program.lines[pc];
    json["text"] = disassemble(program.words[pc], dialect);
    json["executions"] = account.executions;
    json["cycles"] = account.causes.total();
    json["causes"] = causes_json(account.causes);
    instructions.push_back(std::move(json));
  }
  return instructions;
}

nlohmann::ordered_json loops_json(const TimingReport& report) {
  nlohmann::ordered_json loops = nlohmann::ordered_json::array();
  for (const LoopAccount& loop : report.loops) {
    loops.push_back({{"start", loop.start},
                     {"end", loop.end},
                     {"depth", loop.depth},
                     {"entries", loop.entries},
                     {"iterations", loop.iterations},
                     {"cycles", loop.causes.total()},
                     {"causes", causes_json(loop.causes)}});
  }
  return loops;
}

nlohmann::ordered_json regions_json(const TimingReport& report) {
  nlohmann::ordered_json regions = nlohmann::ordered_json::array();
  for (const RegionAccount& region : report.regions) {
    regions.push_back({{"name", region.region.name},
                       {"begin", region.region.begin},
                       {"end", region.region.end},
                       {"instructions", region.instructions},
                       {"cycles", region.causes.total()},
                       {"causes", causes_json(region.causes)}});
  }
  return regions;
}

}  // namespace

std::string summary(const TimingReport& report) {
  const Bound bound = report.roofline.binding();
  return fmt::format(
      "{} cycles ({:.3f} us at {} MHz, profile {}), {} bytes of HBM; {} needs {} of them",
      report.total, 1e6 * report.seconds(), report.clock_mhz, report.profile, report.hbm_bytes(),
      bound_name(bound), report.roofline[bound]);
}

std::string to_text(const TimingReport& report, const Program& program, const Dialect& dialect) {
  return Writer(report, program, dialect).write();
}

nlohmann::ordered_json to_json(const TimingReport& report, const Program& program,
                               const Dialect& dialect) {
  nlohmann::ordered_json json = {{"profile", report.profile},
                                 {"overlap", overlap_name(report.overlap)},
                                 {"clock_mhz", report.clock_mhz},
                                 {"cycles", report.total},
                                 {"seconds", report.seconds()},
                                 {"causes", causes_json(report.causes)},
                                 {"hbm", hbm_json(report)},
                                 {"roofline", roofline_json(report)},
                                 {"units", units_json(report)},
                                 {"instructions", instructions_json(report, program, dialect)},
                                 {"loops", loops_json(report)},
                                 {"regions", regions_json(report)}};
  if (report.picojoules) json["picojoules"] = *report.picojoules;
  return json;
}

}  // namespace plena
