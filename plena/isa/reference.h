// The ISA reference as text, from the instruction table: what `plena isa` shows and docs/isa.md is.
#pragma once

#include <string>
#include <string_view>

#include "plena/isa/instruction.h"

namespace plena {

/// `V_ADD_VV rd, rs1, rs2, rmask`, as the specification writes formats.
std::string format_line(const InstructionRow& row);

/// `31:22 0 | 21:18 rmask | … | 5:0 0x0D`: what each bit of the word holds.
std::string encoding_line(const InstructionRow& row);

/// What an operand may be and what becomes of it: `gp0 to gp15, read`, `0 or 1`, …
std::string operand_values(const Operand& operand, const InstructionRow& row);

/// What its addresses must keep or its result is, with the section that says so.
std::string_view instruction_rules(Op op);

/// docs/isa.md.
std::string markdown_reference();

}  // namespace plena
