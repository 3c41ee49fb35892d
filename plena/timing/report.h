// What a timed run comes to: totals, where the cycles went, lower bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plena/isa/encoding.h"
#include "plena/timing/roofline.h"
#include "plena/timing/timing.h"

namespace plena {

/// A loop as it stands in the program, everything in it included.
struct LoopAccount {
  std::uint32_t start = 0;  // pc of its C_LOOP_START
  std::uint32_t end = 0;    // pc of its C_LOOP_END
  std::uint32_t depth = 0;  // 0: in no other loop
  std::uint64_t entries = 0;
  std::uint64_t iterations = 0;  // of all entries together
  CauseCycles causes;
};

struct RegionAccount {
  ProgramRegion region;
  std::uint64_t instructions = 0;  // executed
  CauseCycles causes;
};

struct TimingReport {
  std::string profile;
  Overlap overlap{};
  std::uint32_t clock_mhz = 0;
  Cycle total = 0;
  CauseCycles causes;                            // of the program; they sum to the total
  std::vector<InstructionAccount> instructions;  // by pc; they sum to the program's
  std::vector<LoopAccount> loops;                // in the order of their starts
  std::vector<RegionAccount> regions;            // in the order they open
  std::optional<std::array<UnitAccount, kUnitCount>> units;
  BurstTraffic traffic;
  double peak_bytes_per_cycle = 0;
  std::string memory;                                        // its preset
  std::optional<dram::ChannelStatistics> controller;         // of a memory with banks
  std::array<dram::LatencyHistogram, 3> transfer_latencies;  // load-M, load-V, store, in cycles
  Roofline roofline;
  std::optional<double> picojoules;  // where the profile says what things cost

  [[nodiscard]] double seconds() const {
    return static_cast<double>(total) / (1e6 * static_cast<double>(clock_mhz));
  }
  [[nodiscard]] std::uint64_t hbm_bytes() const { return traffic.total() * kBurstBytes; }
  [[nodiscard]] double bytes_per_cycle() const {
    return total == 0 ? 0 : static_cast<double>(hbm_bytes()) / static_cast<double>(total);
  }
};

/// Up to the last drain() of `timing`, whose runs were on machines of these settings and dialect.
TimingReport make_report(const Timing& timing, const Settings& settings, const Dialect& dialect,
                         const std::vector<ProgramRegion>& regions = {});

/// The sum of instructions `begin` … `end` - 1.
CauseCycles causes_of(const TimingReport& report, std::uint64_t begin, std::uint64_t end);

/// pcs of the most expensive instructions, most cycles first; of equal ones the lower pc. Those
/// that took none are left out.
std::vector<std::uint32_t> top_instructions(const TimingReport& report, std::size_t count);
/// Indices into report.loops, likewise.
std::vector<std::size_t> top_loops(const TimingReport& report, std::size_t count);

}  // namespace plena
