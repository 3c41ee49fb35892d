#include "plena/asm/assembler.h"

#include <algorithm>
#include <cstring>

#include "plena/asm/expression.h"
#include "plena/base/file_reader.h"
#include "plena/isa/reference.h"

namespace plena {

namespace {

constexpr unsigned kLuiShift = 12;  // S_LUI_INT loads bits 31:12
constexpr std::uint32_t kLuiLowMask = (1U << kLuiShift) - 1;

bool is_region_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_name_character(c) || c == '.' || c == '-' || c == '/' || c == ':';
  });
}

}  // namespace

Assembly assemble(std::string_view text, const AssemblyOptions& options) {
  Assembler assembler(options);
  assembler.feed(text);
  return assembler.finish();
}

Result<Assembly> assemble_file(const std::string& path, AssemblyOptions options) {
  auto reader = FileReader::open(path);
  if (!reader) return forward_error(reader);
  if (options.source_name.empty()) options.source_name = path;
  Assembler assembler(options);
  assembler.expect_bytes(reader->size());
  for (;;) {
    const auto piece = reader->next();
    if (!piece) return tl::unexpected(piece.error());
    if (piece->empty()) return assembler.finish();
    assembler.feed(*piece);
    if (!assembler.wants_more()) return assembler.finish();
  }
}

Error first_error(const Assembly& assembly) {
  Error error = assembly.errors.front();
  if (assembly.error_count > 1) {
    error.message += fmt::format(" (and {} more)", assembly.error_count - 1);
  }
  return error;
}

Assembler::Assembler(const AssemblyOptions& options)
    : dialect_(options.dialect), operands_(dialect_, symbols_) {
  for (const auto& [name, value] : options.symbols) symbols_.add(name, {value, true});
  assembly_.program.source_name = options.source_name;
}

// Pages nobody writes cost nothing, so the densest text there can be is assumed.
void Assembler::expect_bytes(std::uint64_t text_bytes) {
  constexpr std::uint64_t kFewestBytesPerWord = 7;  // `LI gp1,300001` is two words
  constexpr std::uint64_t kMostWords = std::uint64_t{1} << 28;
  const auto words =
      static_cast<std::size_t>(std::min(text_bytes / kFewestBytesPerWord, kMostWords));
  assembly_.program.words.reserve(words);
  assembly_.program.lines.reserve(words);
}

void Assembler::feed(std::string_view text) {
  splitter_.feed(text, [this](std::string_view line) { one_line(line); });
  if (splitter_.too_long()) splitter_.finish([this](std::string_view line) { one_line(line); });
}

Assembly Assembler::finish() {
  splitter_.finish([this](std::string_view line) { one_line(line); });
  for (auto& open : open_regions_) {
    report(SyntaxKind::BadRegion, std::move(open.place), "this region is never closed",
           "add .endregion");
  }
  return std::move(assembly_);
}

void Assembler::one_line(std::string_view text) {
  if (stopped_) return;
  ++line_number_;
  if (line_number_ == 1) text = without_byte_order_mark(text);
  if (text.ends_with('\r')) text.remove_suffix(1);
  TextLine line;
  line.text = text;
  if (text.size() > kLongestLine) {
    report(line, {SyntaxKind::LineTooLong,
                  text.substr(0, 1),
                  fmt::format("a line of more than {} characters", kLongestLine),
                  {}});
    stopped_ = true;
    return;
  }
  if (const void* nul = std::memchr(text.data(), 0, text.size()); !text.empty() && nul != nullptr) {
    report(line, {SyntaxKind::NotText,
                  {static_cast<const char*>(nul), 1},
                  "a NUL byte: this is not assembly text",
                  "plena disasm reads .mem files"});
    stopped_ = true;
    return;
  }
  line = scan_line(text);
  if (line.mnemonic.empty()) return;
  const Mnemonic* mnemonic = mnemonics_.find(line.mnemonic);
  if (mnemonic == nullptr) {
    unknown_mnemonic(line);
    return;
  }
  switch (mnemonic->kind) {
    case Mnemonic::Kind::Instruction:
      return instruction(line, *mnemonic->row);
    case Mnemonic::Kind::LoadImmediate:
      return load_immediate(line);
    case Mnemonic::Kind::Equ:
      return define_symbol(line);
    case Mnemonic::Kind::Word:
      return raw_word(line);
    case Mnemonic::Kind::RegionBegin:
      return begin_region(line);
    case Mnemonic::Kind::RegionEnd:
      return end_region(line);
  }
}

void Assembler::instruction(const TextLine& line, const InstructionRow& row) {
  if (!dialect_.has(row.extension)) {
    const auto extension = extension_name(row.extension);
    report(line,
           {SyntaxKind::ExtensionOff, line.mnemonic,
            fmt::format("{} belongs to the extension '{}', which is off", row.mnemonic, extension),
            fmt::format("--isa {}+{}", dialect_.name(), extension)});
    return;
  }
  const auto operands = row.operands();
  const bool last_optional = !operands.empty() && operands.back().kind == OperandKind::ZeroOpt;
  const std::size_t most = operands.size();
  if (line.operand_count < most - (last_optional ? 1 : 0) || line.operand_count > most) {
    takes(line, most - (last_optional ? 1 : 0), most, format_line(row));
    return;
  }
  Instruction out{.op = row.op};
  bool complete = true;
  for (std::size_t i = 0; i < line.operand_count; ++i) {
    const auto value = operands_.parse(row, operands[i], line.operands[i]);
    if (value) {
      set_field(out, operands[i].field, *value);
    } else {
      report(line, value.error());
      complete = false;
    }
  }
  if (complete && (row.op != Op::C_LOOP_START || loop_can_run(line, out))) emit(encode(out));
}

bool Assembler::loop_can_run(const TextLine& line, const Instruction& loop) {
  if (loop.rd == 0) {
    report(line, {SyntaxKind::LoopCounter, line.operands[0],
                  "gp0 cannot count a loop: it is always 0", "gp1 to gp15"});
  }
  if (loop.imm == 0) {
    report(line, {SyntaxKind::LoopZero, line.operands[1], "a loop of 0 iterations",
                  "a loop runs at least once"});
  }
  return loop.rd != 0 && loop.imm != 0;
}

// semantics 2: the shortest of S_ADDI_INT, S_LUI_INT or both.
void Assembler::load_immediate(const TextLine& line) {
  if (!takes(line, 2, 2, "LI rd, value")) return;
  const auto rd = operands_.gp_register(line.operands[0]);
  const auto value = operands_.immediate(line.operands[1], UINT32_MAX, {});
  if (!rd) report(line, rd.error());
  if (!value) report(line, value.error());
  if (!rd || !value) return;
  const auto target = static_cast<std::uint8_t>(*rd);
  if (*value <= kImm18Max) {
    emit(encode({.op = Op::S_ADDI_INT, .rd = target, .imm = *value}));
    return;
  }
  emit(encode({.op = Op::S_LUI_INT, .rd = target, .imm = *value >> kLuiShift}));
  if ((*value & kLuiLowMask) != 0) {
    emit(encode({.op = Op::S_ADDI_INT, .rd = target, .rs1 = target, .imm = *value & kLuiLowMask}));
  }
}

void Assembler::define_symbol(const TextLine& line) {
  if (!takes(line, 2, 2, ".equ NAME, expression")) return;
  const std::string_view name = line.operands[0];
  if (!is_symbol_name(name)) {
    report(line, {SyntaxKind::BadSymbol, name, fmt::format("'{}' is not a name", quotable(name)),
                  "a letter or underscore, then letters, digits and underscores"});
    return;
  }
  if (symbols_.find(name) != nullptr) {
    report(line, {SyntaxKind::RedefinedSymbol, name,
                  fmt::format("'{}' is already defined", quotable(name)),
                  "symbols are never redefined, and settings' names are taken"});
    return;
  }
  auto value = evaluate(line.operands[1], symbols_);
  if (!value) report(line, value.error());
  const bool known = value.has_value();
  symbols_.add(name, {known ? *std::move(value) : Integer(), known});
}

void Assembler::raw_word(const TextLine& line) {
  if (!takes(line, 1, 1, ".word value")) return;
  const auto value = operands_.immediate(line.operands[0], UINT32_MAX, {});
  if (value) {
    emit(*value);
  } else {
    report(line, value.error());
  }
}

void Assembler::begin_region(const TextLine& line) {
  if (!takes(line, 1, 1, ".region NAME")) return;
  const std::string_view name = line.operands[0];
  if (!is_region_name(name)) {
    report(line,
           {SyntaxKind::BadRegion, name, fmt::format("'{}' does not name a region", quotable(name)),
            "letters, digits and _ . - / :"});
    return;
  }
  auto& regions = assembly_.program.regions;
  open_regions_.push_back({regions.size(), place_in_line(assembly_.program.source_name,
                                                         line_number_, line.text, line.mnemonic)});
  regions.push_back({std::string(name), assembly_.program.words.size(), 0});
}

void Assembler::end_region(const TextLine& line) {
  if (!takes(line, 0, 0, ".endregion")) return;
  if (open_regions_.empty()) {
    report(line, {SyntaxKind::BadRegion, line.mnemonic, "no region is open here",
                  ".region NAME opens one"});
    return;
  }
  assembly_.program.regions[open_regions_.back().index].end = assembly_.program.words.size();
  open_regions_.pop_back();
}

bool Assembler::takes(const TextLine& line, std::size_t least, std::size_t most,
                      std::string_view format) {
  if (line.operand_count >= least && line.operand_count <= most) return true;
  const bool missing = line.operand_count < least;
  report(line, {SyntaxKind::OperandCount, missing ? line.mnemonic : line.operands[most],
                fmt::format("{} takes {} operand{}, not {}", quotable(line.mnemonic),
                            missing ? least : most, (missing ? least : most) == 1 ? "" : "s",
                            line.operand_count),
                std::string(format)});
  return false;
}

void Assembler::unknown_mnemonic(const TextLine& line) {
  if (assembly_.errors.size() == kMostErrors) {  // no time for suggestions nobody sees
    ++assembly_.error_count;
    return;
  }
  std::string hint = mnemonics_.suggest(line.mnemonic);
  if (hint.empty()) hint = "plena isa lists the instructions";
  report(line,
         {SyntaxKind::UnknownMnemonic, line.mnemonic,
          fmt::format("there is no instruction '{}'", quotable(line.mnemonic)), std::move(hint)});
}

void Assembler::emit(std::uint32_t word) {
  assembly_.program.words.push_back(word);
  assembly_.program.lines.push_back(line_number_);
}

void Assembler::report(const TextLine& line, const Fault& fault) {
  if (fault.message.empty()) return;  // follows from an error that was reported
  if (assembly_.errors.size() == kMostErrors) {
    ++assembly_.error_count;
    return;
  }
  std::string hint = fault.hint;
  if (fault.kind == SyntaxKind::UndefinedSymbol) {
    if (auto near = symbols_.suggest(fault.token); !near.empty()) hint = std::move(near);
  }
  report(fault.kind,
         place_in_line(assembly_.program.source_name, line_number_, line.text, fault.token),
         fault.message, std::move(hint));
}

void Assembler::report(SyntaxKind kind, SourcePlace place, std::string message, std::string hint) {
  ++assembly_.error_count;
  if (assembly_.errors.size() == kMostErrors) return;
  assembly_.errors.push_back(
      {{ErrorCode::Syntax, std::move(message), std::move(place), std::move(hint)}, kind});
}

}  // namespace plena
