// A program prepared for timing: for each instruction its unit, cycles and registers, looked up
// once, so that the inner loop meets neither tables nor expressions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plena/machine/machine.h"
#include "plena/timing/profile.h"
#include "plena/timing/unit.h"

namespace plena {

/// Registers of all files in one numbering.
using Slot = std::uint8_t;
inline constexpr Slot kGpSlot = 0;     // gp0 … gp15
inline constexpr Slot kFpSlot = 16;    // f0 … f7
inline constexpr Slot kAddrSlot = 24;  // a0 … a15
inline constexpr Slot kScaleSlot = 40;
inline constexpr Slot kStrideSlot = 41;
inline constexpr Slot kMaskSlot = 42;
inline constexpr Slot kSinkSlot = 43;  // takes writes to gp0 and f0, is never read
inline constexpr std::size_t kSlotCount = 44;
inline constexpr Slot kAlwaysReady = kGpSlot;  // gp0

/// What an instruction reads and writes beside gp and f registers.
enum class TimedKind : std::uint8_t {
  Registers,  // nothing: scalar arithmetic
  LoopStart,
  LoopEnd,
  SetSpecial,  // an address register, SCALE_REG, STRIDE_REG or V_MASK
  Nothing,     // C_BREAK
  LoadInt,
  StoreInt,
  LoadFp,
  StoreFp,
  MapFp,
  VectorRow,   // reads row rs1, writes row rd
  VectorRows,  // reads rows rs1 and rs2, writes row rd
  Reduce,      // reads row rs1
  TopK,
  Compute,   // into the array
  WriteOut,  // of the array
  Load,      // H_PREFETCH_M, H_PREFETCH_V
  Store,     // H_STORE_V
};

struct alignas(32) TimedInstruction {
  TimedKind kind{};
  Unit unit{};
  Slot destination = kSinkSlot;
  std::array<Slot, 5> sources{};  // kAlwaysReady where there are fewer
  std::uint32_t latency = 0;
  std::uint32_t interval = 0;
  std::uint32_t imm = 0;
  std::uint8_t rd = 0;
  std::uint8_t rs1 = 0;
  std::uint8_t rs2 = 0;
  std::uint8_t select = 0;
  Op op{};
  bool accumulates = false;  // V_RED_SUM, V_RED_MAX: adds to its destination
  ArrayShape shape{};        // of a compute or write-out
};

struct TimedProgram {
  std::vector<Instruction> instructions;
  std::vector<TimedInstruction> timed;  // one an instruction
  std::vector<double> picojoules;       // one an instruction; empty where the profile has none

  /// Evaluates the profile for every instruction; a cost that makes no sense is an error.
  static Result<TimedProgram> create(std::vector<Instruction> instructions,
                                     const Settings& settings, const Dialect& dialect,
                                     const TimingProfile& profile);
};

/// Cycles of an M_MM in the array, behind those that fetch its operands: BLEN + 4 (timing.md; 8, 12
/// and 20 at BLEN 4, 8 and 16 are the RTL's).
constexpr std::uint32_t array_cycles(const Settings& settings) {
  return settings.blen + 4;
}

/// Cycles in which it fetches them.
constexpr std::uint32_t fetch_cycles(const Settings& settings) {
  return settings.blen + 5;
}

}  // namespace plena
