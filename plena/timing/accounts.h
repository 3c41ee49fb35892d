// Where the cycles went: for each instruction and each unit, by cause (timing.md, rule 7).
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "plena/timing/unit.h"

namespace plena {

/// Cycles by Cause.
struct CauseCycles {
  std::array<std::uint64_t, kCauseCount> cycles{};

  std::uint64_t& operator[](Cause cause) { return cycles[static_cast<std::size_t>(cause)]; }
  std::uint64_t operator[](Cause cause) const { return cycles[static_cast<std::size_t>(cause)]; }
  CauseCycles& operator+=(const CauseCycles& other) {
    for (std::size_t i = 0; i < kCauseCount; ++i) cycles[i] += other.cycles[i];
    return *this;
  }
  [[nodiscard]] std::uint64_t total() const {
    return std::accumulate(cycles.begin(), cycles.end(), std::uint64_t{0});
  }

  friend bool operator==(const CauseCycles&, const CauseCycles&) = default;
};

/// One static instruction.
struct InstructionAccount {
  std::uint64_t executions = 0;
  CauseCycles causes;
};

/// One unit: every cycle of the run is in exactly one of the three.
struct UnitAccount {
  std::uint64_t busy = 0;  // working on an instruction, or moving a transfer
  CauseCycles waiting;     // free, and the next instruction is its own and stalls
  std::uint64_t nothing_to_do = 0;
};

}  // namespace plena
