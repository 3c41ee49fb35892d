// The units of the machine and the causes a cycle can have (timing.md, rules of counting).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plena/isa/instruction.h"

namespace plena {

/// A cycle of the machine's clock, counted from 0.
using Cycle = std::uint64_t;

enum class Unit : std::uint8_t {
  Matrix,
  Vector,
  ScalarFp,
  ScalarInt,
  LoadM,
  LoadV,
  Store,
  Control,
};
inline constexpr std::size_t kUnitCount = 8;

std::string_view unit_name(Unit unit);
Unit unit_of(Op op);

/// Whether a unit moves data between HBM and the machine in the background.
constexpr bool is_transfer_unit(Unit unit) {
  return unit == Unit::LoadM || unit == Unit::LoadV || unit == Unit::Store;
}

/// What a cycle of an instruction went to. The order of the stall causes is that of rule 7: of two
/// conditions that held equally long, the earlier one is charged.
enum class Cause : std::uint8_t {
  HbmData,     // a range that a transfer has yet to deliver or take
  Register,    // gp, f, a, SCALE_REG, STRIDE_REG or V_MASK
  SramRange,   // Vector SRAM, Matrix SRAM, INT_MEM or FP_MEM
  BusyUnit,    // the unit, or the array, still works on the one before
  FullQueue,   // no place among the unit's transfers
  Control,     // the control unit still works on the one before
  Issue,       // the cycle in which it issued
  Completion,  // waiting for nothing but its own result
};
inline constexpr std::size_t kCauseCount = 8;
inline constexpr std::size_t kStallCauseCount = 6;  // all but the last two

std::string_view cause_name(Cause cause);

}  // namespace plena
