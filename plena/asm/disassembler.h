// Words to text that assembles to the same words.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "plena/base/error.h"
#include "plena/isa/dialect.h"
#include "plena/isa/encoding.h"

namespace plena {

/// `V_ADD_VV gp1, gp2, gp3, 0`: an instruction as the specification writes it. An instruction the
/// assembler would refuse (a loop of 0 iterations, f9) has a text as well, for traps and traces.
std::string disassemble(const Instruction& instruction);

/// The line for a word that decodes: its instruction, or, where that text would not assemble to
/// this very word, `.word 0x0000002F ; C_LOOP_START gp0, 0`.
std::string disassemble(std::uint32_t word, const Dialect& dialect);

/// Appends the lines of a whole program to `out`, loop bodies indented, and hands `out` to `sink`
/// whenever it is long. The first word that does not decode is an error that names its index.
Status disassemble(std::span<const std::uint32_t> words, const Dialect& dialect,
                   const std::function<Status(std::string_view)>& sink);

}  // namespace plena
