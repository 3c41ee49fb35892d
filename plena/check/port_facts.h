// What one walk over a plena-rs program shows of each instruction: whether it is reached, and which
// differences between the dialect and the specification its operands can make visible.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plena/check/register_walk.h"
#include "plena/config/settings.h"

namespace plena {

/// A difference that depends on where an instruction is and what its registers hold.
enum class PortIssue : std::uint8_t {
  ColumnCountsRows,     // M_MM's offset in its tile is not 0
  RowIsTheOffset,       // M_BMM's offset in its tile is not 0
  VectorNearStart,      // M_MV's vector has fewer than BLEN - 1 rows before it
  AccumulatorsOverlap,  // another accumulator holds something
  MaskSelectsAll,
  MaskSelectsSome,
  MaskVaries,
  UnsetStride,
  UnsetScale,
  UnsetAddress,
  ScaleFloors,     // a row does not start on a block
  ScaleCut,        // scales beyond their 64-byte block read 0
  PastHbm,         // what lies past the end reads 0
  PastVectorSram,  // rows past the end are dropped
  PastScalars,     // an entry the settings' memories do not have
  AddressWraps,
  WritesGp0,
  UnknownAddress,
};
inline constexpr std::size_t kPortIssueCount = 18;

struct PortFacts {
  bool reached = false;
  std::bitset<kPortIssueCount> issues;
  std::uint32_t v_mask = 0;  // of the first masked execution

  [[nodiscard]] bool has(PortIssue issue) const { return issues[static_cast<std::size_t>(issue)]; }
};

struct ProgramFacts {
  std::vector<PortFacts> at;  // by pc
  RegisterWalk::End end{};    // Running: the walk took too long and stopped at stop_pc
  std::uint64_t stop_pc = 0;
  std::uint64_t vector_elements_used = 0;  // one past the last element touched
  bool all_vector_addresses_known = true;
};

/// Walks `program` as plena-rs runs it; `legal[pc]` is false for words that trap when reached.
ProgramFacts gather_facts(std::span<const Instruction> program, const std::vector<bool>& legal,
                          const Settings& settings);

/// Instructions a walk follows at most.
inline constexpr std::uint64_t kLongestWalk = 400'000'000;

}  // namespace plena
