#include "plena/timing/report.h"

#include <algorithm>
#include <numeric>

#include "plena/machine/work.h"

namespace plena {

namespace {

// Loops pair up lexically by their counters; under rs-loops one may have no partner and is no loop
// here.
std::vector<LoopAccount> find_loops(const TimedProgram& program) {
  std::vector<LoopAccount> loops;
  std::vector<std::size_t> open;
  for (std::uint32_t pc = 0; pc < program.timed.size(); ++pc) {
    const TimedInstruction& i = program.timed[pc];
    if (i.kind == TimedKind::LoopStart) {
      open.push_back(loops.size());
      loops.push_back({.start = pc, .depth = static_cast<std::uint32_t>(open.size() - 1)});
    } else if (i.kind == TimedKind::LoopEnd && !open.empty() &&
               program.timed[loops[open.back()].start].rd == i.rd) {
      loops[open.back()].end = pc;
      open.pop_back();
    }
  }
  std::erase_if(loops, [](const LoopAccount& loop) { return loop.end == 0; });
  return loops;
}

Work work_of(const Timing& timing, const Settings& settings, const Dialect& dialect) {
  Work work;
  const auto& accounts = timing.model().accounts();
  for (std::size_t pc = 0; pc < accounts.size(); ++pc) {
    const TimedInstruction& i = timing.program().timed[pc];
    const std::uint64_t executions = accounts[pc].executions;
    work.instructions += executions;
    work.multiply_adds += executions * multiply_adds_of(i.op, settings, dialect);
    if (i.unit == Unit::Vector) work.vector_rows += executions;
  }
  work.hbm_bytes = timing.hbm().traffic().total() * kBurstBytes;
  return work;
}

std::optional<double> energy_of(const Timing& timing, const TimingReport& report) {
  if (!timing.profile().has_energy()) return std::nullopt;
  double picojoules =
      timing.profile().picojoules_per_byte.value_or(0) * static_cast<double>(report.hbm_bytes());
  for (std::size_t pc = 0; pc < report.instructions.size(); ++pc) {
    picojoules +=
        static_cast<double>(report.instructions[pc].executions) * timing.program().picojoules[pc];
  }
  return picojoules;
}

template <class Index, class CyclesOf>
std::vector<Index> most_expensive(std::size_t all, std::size_t count, CyclesOf&& cycles_of) {
  std::vector<Index> indices(all);
  std::iota(indices.begin(), indices.end(), Index{0});
  std::erase_if(indices, [&](Index index) { return cycles_of(index) == 0; });
  std::ranges::stable_sort(indices, std::ranges::greater{}, cycles_of);
  if (indices.size() > count) indices.resize(count);
  return indices;
}

}  // namespace

TimingReport make_report(const Timing& timing, const Settings& settings, const Dialect& dialect,
                         const std::vector<ProgramRegion>& regions) {
  TimingReport report;
  report.profile = timing.profile().name;
  report.overlap = timing.profile().overlap;
  report.clock_mhz = timing.profile().clock_mhz;
  report.total = timing.model().total();
  report.instructions = timing.model().accounts();
  report.causes = causes_of(report, 0, report.instructions.size());
  report.loops = find_loops(timing.program());
  for (LoopAccount& loop : report.loops) {
    loop.entries = report.instructions[loop.start].executions;
    loop.iterations = report.instructions[loop.end].executions;
    loop.causes = causes_of(report, loop.start, loop.end + std::uint64_t{1});
  }
  for (const ProgramRegion& region : regions) {
    RegionAccount account{.region = region, .causes = causes_of(report, region.begin, region.end)};
    for (std::uint64_t pc = region.begin; pc < region.end; ++pc)
      account.instructions += report.instructions[pc].executions;
    report.regions.push_back(std::move(account));
  }
  report.units = timing.model().unit_accounts();
  report.traffic = timing.hbm().traffic();
  report.peak_bytes_per_cycle = timing.hbm().peak().bytes_per_cycle();
  report.memory = timing.profile().memory == MemoryRules::PlenaRs
                      ? "plena-rs"
                      : std::string(timing.profile().hbm.preset.name);
  report.controller = timing.hbm().controller_statistics();
  report.transfer_latencies = timing.model().transfer_latencies();
  report.roofline = make_roofline(work_of(timing, settings, dialect), settings, timing.hbm().peak(),
                                  report.overlap != Overlap::Ideal);
  report.picojoules = energy_of(timing, report);
  return report;
}

CauseCycles causes_of(const TimingReport& report, std::uint64_t begin, std::uint64_t end) {
  CauseCycles sum;
  for (std::uint64_t pc = begin; pc < end; ++pc) sum += report.instructions[pc].causes;
  return sum;
}

std::vector<std::uint32_t> top_instructions(const TimingReport& report, std::size_t count) {
  return most_expensive<std::uint32_t>(report.instructions.size(), count, [&](std::uint32_t pc) {
    return report.instructions[pc].causes.total();
  });
}

std::vector<std::size_t> top_loops(const TimingReport& report, std::size_t count) {
  return most_expensive<std::size_t>(report.loops.size(), count, [&](std::size_t index) {
    return report.loops[index].causes.total();
  });
}

}  // namespace plena
