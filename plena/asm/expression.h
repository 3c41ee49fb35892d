// Constant expressions (semantics 2): decimal, 0x, 0b, names, + - * / % << >> ( ), with C's
// precedence and truncating division, on unbounded integers.
#pragma once

#include <string_view>

#include <tl/expected.hpp>

#include "plena/asm/integer.h"
#include "plena/asm/symbols.h"
#include "plena/asm/syntax_error.h"

namespace plena {

/// Results longer than this are refused: no field holds them, and a line could ask for gigabytes.
inline constexpr std::uint64_t kLongestInteger = 1U << 16;  // bits

/// The value of `text`, or why it has none, pointing into `text`. A symbol whose definition failed
/// gives a Fault with an empty message: it was reported where it was defined.
tl::expected<Integer, Fault> evaluate(std::string_view text, const SymbolTable& symbols);

}  // namespace plena
