// Cuts one line of assembly text into mnemonic, operands and comment; judges none of them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace plena {

/// One more than any instruction has, so that the first operand too many has a place.
inline constexpr std::size_t kOperandSlots = 6;

struct TextLine {
  std::string_view text;      // without its line end
  std::string_view mnemonic;  // empty: nothing but perhaps a comment
  std::array<std::string_view, kOperandSlots> operands;
  std::size_t operand_count = 0;  // may exceed the slots
  std::string_view comment;       // with its marker: `; …`, `# …` or `// …`
};

TextLine scan_line(std::string_view text);

}  // namespace plena
