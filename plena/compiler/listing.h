// A program as a list of lines: instructions with their comments, and what stands between them.
// Kernels write it, the scheduler reorders it, print() makes words and assembly text of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plena/isa/encoding.h"
#include "plena/isa/instruction.h"

namespace plena {

/// Bits below those that S_LUI_INT loads (semantics 2).
inline constexpr unsigned kLuiShift = 12;
inline constexpr std::uint32_t kLuiLowMask = (1U << kLuiShift) - 1;

struct Line {
  enum class Kind : std::uint8_t {
    Code,       // an instruction; `text` is its comment
    Comment,    // on a line of its own
    Blank,      // an empty line
    Region,     // `text` names the region that opens
    EndRegion,  // the innermost open region ends
    Entry,      // a run may start behind this line, with registers nobody set
  };
  Kind kind = Kind::Code;
  Instruction instruction;
  std::string text;

  [[nodiscard]] bool is_code() const { return kind == Kind::Code; }
};

using Listing = std::vector<Line>;

struct EmittedProgram {
  Program program;                     // with its regions and the line of `text` of each word
  std::string text;                    // assembles to program.words
  std::vector<std::uint32_t> entries;  // pc behind each Line::Kind::Entry
};

/// Words and commented text, loop bodies indented; constants as `LI`.
EmittedProgram print(const Listing& listing);

}  // namespace plena
