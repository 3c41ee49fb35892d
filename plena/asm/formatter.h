// Canonical layout of assembly text: what `plena fmt` writes. Comments and values stay as they
// are, so the text assembles to the same words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plena/asm/line_scanner.h"
#include "plena/asm/line_splitter.h"
#include "plena/asm/mnemonics.h"
#include "plena/base/error.h"

namespace plena {

/// Mnemonics in upper and registers in lower case, `, ` between operands, single spaces around
/// binary operators, loop bodies indented by two, comments behind code in column 41, at most one
/// empty line in a row, line ends `\n`. Lines that are no instruction keep their text.
class Formatter {
 public:
  explicit Formatter(std::string source_name) : source_name_(std::move(source_name)) {}

  /// Appends the lines that end in this piece of text to `out`.
  void feed(std::string_view text, std::string& out);

  /// Appends what is left. An error, and nothing worth keeping was written, when the text holds a
  /// NUL byte or a line that is too long.
  Status finish(std::string& out);

  /// False once the text has turned out to be no text.
  [[nodiscard]] bool wants_more() const { return status_.has_value() && !splitter_.too_long(); }

  /// Whether the layout differs from what was there. Known after finish().
  [[nodiscard]] bool changed() const { return changed_; }

 private:
  void one_line(std::string_view text, std::string& out);
  void refuse(std::string message);
  [[nodiscard]] std::string code(const TextLine& line) const;

  std::string source_name_;
  MnemonicTable mnemonics_;
  LineSplitter splitter_;
  std::uint32_t line_number_ = 0;
  std::size_t depth_ = 0;       // open loops
  bool blank_pending_ = false;  // an empty line, written once text follows
  bool any_written_ = false;
  bool changed_ = false;
  Status status_;
};

/// An expression with canonical spacing; text that is none stays as it is.
std::string format_expression(std::string_view text);

}  // namespace plena
