#include "plena/asm/syntax_error.h"

#include <algorithm>
#include <array>

namespace plena {

namespace {

constexpr std::size_t kLongestShownLine = 400;
constexpr std::size_t kLongestQuote = 40;

constexpr std::array<std::string_view, 17> kNames = {
    "unknown_mnemonic", "extension_off",    "operand_count",   "bad_register",   "register_range",
    "fixed_operand",    "bad_selector",     "immediate_range", "loop_zero",      "loop_counter",
    "undefined_symbol", "redefined_symbol", "bad_symbol",      "bad_expression", "bad_region",
    "not_text",         "line_too_long"};

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Bytes of the UTF-8 character that starts `text`, or 0 when it is none.
std::size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues_character(text[i])) return 0;
  }
  return length;
}

// UTF-8 stays; every other byte becomes a question mark.
std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const bool control =
        text[0] != '\t' && (static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7F);
    if (length == 0 || control) {
      out += '?';
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

std::uint32_t characters(std::string_view text) {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(text, [](char c) { return !continues_character(c); }));
}

}  // namespace

std::string_view syntax_kind_name(SyntaxKind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

SourcePlace place_in_line(const std::string& file, std::uint32_t line_number, std::string_view line,
                          std::string_view token) {
  const auto offset = static_cast<std::size_t>(token.data() - line.data());
  SourcePlace place;
  place.file = file;
  place.line = line_number;
  place.column = characters(line.substr(0, offset)) + 1;
  place.length = std::clamp(characters(token), 1U, static_cast<std::uint32_t>(kLongestShownLine));
  if (line.size() <= kLongestShownLine) place.source_line = printable(line);
  return place;
}

std::string quotable(std::string_view token) {
  const bool cut = token.size() > kLongestQuote;
  return printable(token.substr(0, kLongestQuote)) + (cut ? "…" : "");
}

}  // namespace plena
