// Errors as values: what went wrong, where, and what would be right.
//
// Nothing in the library prints, exits or throws across its surface; a function that can fail
// returns Result<T>, and the command line renders the Error it carries.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <tl/expected.hpp>

namespace plena {

enum class ErrorCode : std::uint8_t {
  Usage,        // an option or argument makes no sense
  Io,           // a file cannot be read or written
  Format,       // a file's content is not what its format demands
  Syntax,       // assembly text
  Settings,     // a setting is missing, unknown or contradicts another
  Unsupported,  // well-formed, but outside what this build or dialect does
  Trap,         // the simulated machine stopped with a fault
  Mismatch,     // a comparison that was asked for failed
  Interrupted,  // Ctrl-C
};

/// The exit status a command ends with when it fails with this error (cli.md: 1 when what was
/// asked about failed, 2 for usage or unreadable input, 130 after Ctrl-C).
int exit_status(ErrorCode code);

/// A place in a text file. Lines and columns count from 1; 0 means unknown.
struct SourcePlace {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t length = 1;  // columns the caret underlines
  std::string source_line;   // text of the line, without its newline
};

struct Error {
  ErrorCode code = ErrorCode::Usage;
  std::string message;  // one sentence, lower case, no full stop
  SourcePlace place;    // place.file empty: no place
  std::string hint;     // what would be right; may be empty

  /// Several lines: `file:line:column: error: message`, the source line, a caret, the hint.
  [[nodiscard]] std::string render(bool color = false) const;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

/// `return fail(ErrorCode::Io, "cannot open {}", path);`
template <class... Args>
tl::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(
      Error{code, fmt::format(format, std::forward<Args>(args)...), {}, {}});
}

/// The same with a hint, which says what would be right.
inline tl::unexpected<Error> fail_with_hint(ErrorCode code, std::string message, std::string hint) {
  return tl::unexpected<Error>(Error{code, std::move(message), {}, std::move(hint)});
}

/// Passes the error of one Result on as the error of another type.
template <class T>
tl::unexpected<Error> forward_error(Result<T>& failed) {
  return tl::unexpected<Error>(std::move(failed).error());
}

}  // namespace plena
