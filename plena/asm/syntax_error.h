// What can be wrong with assembly text, by kind, and the list of all that is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plena/base/error.h"

namespace plena {

enum class SyntaxKind : std::uint8_t {
  UnknownMnemonic,
  ExtensionOff,
  OperandCount,
  BadRegister,    // not a register of the right file
  RegisterRange,  // gp16, f8, a8
  FixedOperand,   // must be the literal 0
  BadSelector,    // rmask, rstride, precision, rorder, policy
  ImmediateRange,
  LoopZero,     // a loop of 0 iterations
  LoopCounter,  // C_LOOP_START gp0
  UndefinedSymbol,
  RedefinedSymbol,
  BadSymbol,
  BadExpression,
  BadRegion,  // .region and .endregion that do not match
  NotText,    // a NUL byte
  LineTooLong,
};

/// `unknown_mnemonic`, `extension_off`, …
std::string_view syntax_kind_name(SyntaxKind kind);

struct SyntaxError : Error {
  SyntaxKind kind{};
};

/// A stretch of one line and what is wrong with it; its line and file are the caller's to know.
struct Fault {
  SyntaxKind kind{};
  std::string_view token;  // where in the line; empty: the caret goes to token.data()
  std::string message;
  std::string hint;
};

/// The place of `token` in its line, with the line as people can read it: bytes that are no text
/// are replaced, and a very long line is left out.
SourcePlace place_in_line(const std::string& file, std::uint32_t line_number, std::string_view line,
                          std::string_view token);

/// A token as a message can quote it: control characters replaced, long ones cut.
std::string quotable(std::string_view token);

}  // namespace plena
