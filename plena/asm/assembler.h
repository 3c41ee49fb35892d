// Assembly text to a Program (semantics 2). Text streams through: nothing of it is kept but a
// line that is not complete yet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plena/asm/line_scanner.h"
#include "plena/asm/line_splitter.h"
#include "plena/asm/mnemonics.h"
#include "plena/asm/operands.h"
#include "plena/asm/symbols.h"
#include "plena/asm/syntax_error.h"
#include "plena/base/error.h"
#include "plena/isa/dialect.h"
#include "plena/isa/encoding.h"

namespace plena {

struct AssemblyOptions {
  std::string source_name;  // what errors and the Program call the text
  Dialect dialect;
  std::vector<std::pair<std::string, std::int64_t>> symbols;  // of the settings
};

struct Assembly {
  Program program;                  // complete only when ok()
  std::vector<SyntaxError> errors;  // of all lines, in order; the first kMostErrors of them
  std::size_t error_count = 0;      // all, kept or not

  [[nodiscard]] bool ok() const { return error_count == 0; }
};
inline constexpr std::size_t kMostErrors = 100;

/// All of a text at once.
Assembly assemble(std::string_view text, const AssemblyOptions& options);

/// A file, piece by piece. The Error is one of reading it; what is wrong with the text is in the
/// Assembly.
Result<Assembly> assemble_file(const std::string& path, AssemblyOptions options);

/// The first of an Assembly's errors, which says how many more there are.
Error first_error(const Assembly& assembly);

class Assembler {
 public:
  explicit Assembler(const AssemblyOptions& options);
  Assembler(const Assembler&) = delete;
  Assembler& operator=(const Assembler&) = delete;

  /// Address space for the words of that much text, so that they need not move as they grow.
  void expect_bytes(std::uint64_t text_bytes);

  /// The next piece of the text, cut anywhere.
  void feed(std::string_view text);

  /// False once the text has turned out to be no text; what follows would be ignored.
  [[nodiscard]] bool wants_more() const { return !stopped_; }

  /// Ends the text; the Assembler is spent.
  Assembly finish();

 private:
  struct OpenRegion {
    std::size_t index = 0;  // in program.regions
    SourcePlace place;
  };

  void one_line(std::string_view text);
  void begin_region(const TextLine& line);
  void end_region(const TextLine& line);
  void define_symbol(const TextLine& line);
  void load_immediate(const TextLine& line);
  void raw_word(const TextLine& line);
  void instruction(const TextLine& line, const InstructionRow& row);
  bool loop_can_run(const TextLine& line, const Instruction& loop);

  bool takes(const TextLine& line, std::size_t least, std::size_t most, std::string_view format);
  void unknown_mnemonic(const TextLine& line);
  void emit(std::uint32_t word);
  void report(const TextLine& line, const Fault& fault);
  void report(SyntaxKind kind, SourcePlace place, std::string message, std::string hint);

  Dialect dialect_;
  MnemonicTable mnemonics_;
  SymbolTable symbols_;
  OperandParser operands_;
  Assembly assembly_;
  std::vector<OpenRegion> open_regions_;
  LineSplitter splitter_;
  bool stopped_ = false;  // the text turned out to be no text
  std::uint32_t line_number_ = 0;
};

}  // namespace plena
