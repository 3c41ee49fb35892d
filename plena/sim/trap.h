// Why the simulated machine stopped, as a value (semantics 7).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plena/base/error.h"
#include "plena/isa/encoding.h"

namespace plena {

/// In the order of semantics 7: of two faults of one instruction the earlier is reported.
enum class TrapCause : std::uint8_t {
  IllegalInstruction,
  LoopStructure,
  LoopLimit,
  UnsetRegister,
  MisalignedAddress,
  MxBlockMisaligned,
  AddressOutOfRange,
  HbmOutOfRange,
  ArrayShape,
  Breakpoint,
  InstructionBudget,  // --max-instructions was used up
};

/// `illegal_instruction`, … as the test cases name them.
std::string_view trap_name(TrapCause cause);

struct Trap {
  TrapCause cause{};
  std::uint64_t pc = 0;  // index of the word
  std::string values;    // what was found: operand values and addresses
  std::string rule;      // the rule it breaks and its section
};

/// The trap as an Error: pc, source line, disassembly, values and rule.
Error to_error(const Trap& trap, const Program& program, const Dialect& dialect);

}  // namespace plena
