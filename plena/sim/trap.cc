#include "plena/sim/trap.h"

#include <fmt/format.h>

#include "plena/asm/disassembler.h"

namespace plena {

std::string_view trap_name(TrapCause cause) {
  switch (cause) {
    case TrapCause::IllegalInstruction:
      return "illegal_instruction";
    case TrapCause::LoopStructure:
      return "loop_structure";
    case TrapCause::LoopLimit:
      return "loop_limit";
    case TrapCause::UnsetRegister:
      return "unset_register";
    case TrapCause::MisalignedAddress:
      return "misaligned_address";
    case TrapCause::MxBlockMisaligned:
      return "mx_block_misaligned";
    case TrapCause::AddressOutOfRange:
      return "address_out_of_range";
    case TrapCause::HbmOutOfRange:
      return "hbm_out_of_range";
    case TrapCause::ArrayShape:
      return "array_shape";
    case TrapCause::Breakpoint:
      return "breakpoint";
    case TrapCause::InstructionBudget:
      return "instruction_budget";
  }
  return "";
}

namespace {

std::string disassembly_at(const Trap& trap, const Program& program, const Dialect& dialect) {
  if (trap.pc >= program.words.size()) return "(past the end)";
  const std::uint32_t word = program.words[trap.pc];
  const auto instruction = decode(word, dialect);
  return instruction ? disassemble(*instruction) : fmt::format("0x{:08X}", word);
}

}  // namespace

Error to_error(const Trap& trap, const Program& program, const Dialect& dialect) {
  Error error{ErrorCode::Trap, {}, {}, trap.rule};
  error.message = fmt::format("trap {} at pc {}: {}", trap_name(trap.cause), trap.pc,
                              disassembly_at(trap, program, dialect));
  if (!trap.values.empty()) error.message += " (" + trap.values + ")";
  if (trap.pc < program.lines.size()) {
    error.place.file = program.source_name;
    error.place.line = program.lines[trap.pc];
  }
  return error;
}

}  // namespace plena
