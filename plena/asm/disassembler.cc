#include "plena/asm/disassembler.h"

#include <algorithm>

namespace plena {

namespace {

constexpr std::size_t kSinkBytes = std::size_t{1} << 18;
constexpr std::size_t kDeepestIndent = 16;  // loops that never close shall not fill the line

void append_number(std::string& out, std::uint32_t value) {
  char digits[10];
  char* at = digits + sizeof digits;
  do {
    *--at = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  out.append(at, static_cast<std::size_t>(digits + sizeof digits - at));
}

void append_operand(std::string& out, const Operand& operand, std::uint32_t value) {
  switch (operand.kind) {
    case OperandKind::Gp:
      out += "gp";
      break;
    case OperandKind::Fp:
      out += 'f';
      break;
    case OperandKind::Addr:
      out += 'a';
      break;
    case OperandKind::Mask:
    case OperandKind::RowStride:
      if (value != 0) out += "gp";
      break;
    default:
      break;
  }
  append_number(out, value);
}

void append_instruction(std::string& out, const Instruction& instruction) {
  const InstructionRow& row = row_of(instruction.op);
  out += row.mnemonic;
  bool first = true;
  for (const auto& operand : row.operands()) {
    out += first ? " " : ", ";
    first = false;
    append_operand(out, operand, field_value(instruction, operand.field));
  }
}

// The machine without the tolerance of rs-decode: what text can say.
Dialect strict(const Dialect& dialect) {
  if (!dialect.has(RsSwitch::Decode)) return dialect;
  Dialect out;
  for (std::size_t i = 1; i < kExtensionCount; ++i) {
    const auto extension = static_cast<Extension>(i);
    if (dialect.has(extension)) out.enable(extension);
  }
  if (dialect.has(RsSwitch::Registers)) out.enable(RsSwitch::Registers);
  return out;
}

bool has_text(const Instruction& instruction) {
  return instruction.op != Op::C_LOOP_START || (instruction.rd != 0 && instruction.imm != 0);
}

void append_word(std::string& out, std::uint32_t word, const Instruction& lenient,
                 const Dialect& strict_dialect) {
  const auto instruction = decode(word, strict_dialect);
  if (instruction && has_text(*instruction)) {
    append_instruction(out, *instruction);
    return;
  }
  out += fmt::format(".word 0x{:08X} ; ", word);
  append_instruction(out, lenient);
}

tl::unexpected<Error> illegal(std::size_t index, std::uint32_t word, const Dialect& dialect) {
  return fail_with_hint(
      ErrorCode::Format,
      fmt::format("word {} (0x{:08X}) is no instruction: {}", index, word,
                  explain_illegal(word, dialect)),
      fmt::format("read as {}; --isa names extensions and dialects", dialect.name()));
}

}  // namespace

std::string disassemble(const Instruction& instruction) {
  std::string out;
  append_instruction(out, instruction);
  return out;
}

std::string disassemble(std::uint32_t word, const Dialect& dialect) {
  std::string out;
  if (const auto instruction = decode(word, dialect)) {
    append_word(out, word, *instruction, strict(dialect));
  } else {
    out = fmt::format(".word 0x{:08X} ; {}", word, explain_illegal(word, dialect));
  }
  return out;
}

Status disassemble(std::span<const std::uint32_t> words, const Dialect& dialect,
                   const std::function<Status(std::string_view)>& sink) {
  // First all of it is judged, so that nothing is written of a program that is none.
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!decode(words[i], dialect)) return illegal(i, words[i], dialect);
  }
  const Dialect strict_dialect = strict(dialect);
  std::string out;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto instruction = decode(words[i], dialect);
    if (instruction->op == Op::C_LOOP_END && depth > 0) --depth;
    out.append(2 * std::min(depth, kDeepestIndent), ' ');
    append_word(out, words[i], *instruction, strict_dialect);
    out += '\n';
    if (instruction->op == Op::C_LOOP_START) ++depth;
    if (out.size() < kSinkBytes) continue;
    if (auto sent = sink(out); !sent) return sent;
    out.clear();
  }
  return sink(out);
}

}  // namespace plena
