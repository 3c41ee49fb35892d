// Words to instructions and back (semantics 2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plena/isa/dialect.h"
#include "plena/isa/instruction.h"

namespace plena {

/// The word of an instruction whose fields are in range.
std::uint32_t encode(const Instruction& instruction);

/// The instruction of a word, or nothing for a word this dialect does not have: unassigned opcode,
/// extension off, an unused bit set, a register or selector out of range. Under rs-decode reserved
/// bits are ignored, selectors may be any value and write-out immediates have 18 bits.
std::optional<Instruction> decode(std::uint32_t word, const Dialect& dialect);

/// Words the public emulator refuses while it loads a program, whatever else rs-decode forgives:
/// M_BMM and M_BTMM with a non-zero rd field (dialect-plena-rs.md 0).
bool refused_at_load(std::uint32_t word);

/// Why decode() refuses a word, as a sentence for people.
std::string explain_illegal(std::uint32_t word, const Dialect& dialect);

/// A named stretch of a program, `.region NAME` … `.endregion` in assembly text.
struct ProgramRegion {
  std::string name;
  std::uint64_t begin = 0;  // index of its first word
  std::uint64_t end = 0;    // one past its last

  friend bool operator==(const ProgramRegion&, const ProgramRegion&) = default;
};

/// A program as it is loaded: its words, and where each came from when it was assembled.
struct Program {
  std::vector<std::uint32_t> words;
  std::vector<std::uint32_t> lines;    // source line of each word, or empty
  std::string source_name;             // file the lines count in, or empty
  std::vector<ProgramRegion> regions;  // in the order they open; they may nest
};

}  // namespace plena
