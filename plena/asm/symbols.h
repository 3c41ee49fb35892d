// The names constant expressions may use: settings and `.equ`.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "plena/asm/integer.h"

namespace plena {

struct Symbol {
  Integer value;
  bool known = true;  // false: its definition failed and was reported; uses of it stay silent
};

class SymbolTable {
 public:
  /// False when the name is taken.
  bool add(std::string_view name, Symbol symbol);
  [[nodiscard]] const Symbol* find(std::string_view name) const;
  /// `did you mean MLEN?`, or an empty string.
  [[nodiscard]] std::string suggest(std::string_view name) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>()(name);
    }
  };
  std::unordered_map<std::string, Symbol, Hash, std::equal_to<>> symbols_;
};

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Letters and underscores start a name; digits may follow.
inline bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
inline bool is_name_character(char c) {
  return is_name_start(c) || is_digit(c);
}

bool is_symbol_name(std::string_view text);

}  // namespace plena
