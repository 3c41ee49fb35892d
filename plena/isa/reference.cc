#include "plena/isa/reference.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace plena {

namespace {

struct BitRange {
  unsigned high = 0;
  unsigned low = 0;
};

BitRange bits_of(Field field) {
  switch (field) {
    case Field::Rd:
      return {9, 6};
    case Field::Rs1:
      return {13, 10};
    case Field::Rs2:
      return {17, 14};
    case Field::Select:
      return {21, 18};
    case Field::Order:
      return {25, 22};
    case Field::Imm18:
      return {31, 14};
    case Field::Imm22:
      return {31, 10};
  }
  return {};
}

struct ClassHeading {
  InstructionClass instruction_class;
  std::string_view title;
  std::string_view introduction;
};

constexpr std::array kHeadings = {
    ClassHeading{InstructionClass::Matrix, "Matrix instructions",
                 "They drive the systolic array. Computing instructions accumulate into it; a "
                 "write-out (`_WO`) copies the result to Vector SRAM and clears it."},
    ClassHeading{InstructionClass::Vector, "Vector instructions",
                 "They work on rows of VLEN elements; every address is a multiple of VLEN. `rmask` "
                 "0 or gp0 selects every lane; any other register stands for V_MASK, whose bit b "
                 "selects lanes b·HLEN to (b+1)·HLEN−1, and a lane not selected becomes +0."},
    ClassHeading{InstructionClass::Scalar, "Scalar instructions",
                 "Integers are 32 bits and wrap; scalars are floating-point values of SCALAR_FP."},
    ClassHeading{InstructionClass::Memory, "Memory instructions",
                 "They move rows between HBM and the tile SRAMs. Offsets and strides count "
                 "elements. `rstride` 0 is contiguous rows, 1 rows STRIDE_REG apart; `precision` "
                 "picks the HBM type: 0 weights or activations, 1 keys and values."},
    ClassHeading{InstructionClass::Control, "Control instructions",
                 "They set special registers and close hardware loops. Loops nest and pair up by "
                 "their counter register."},
};

// A table cell must not end at a bar of the text.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

// Where a Markdown page puts the heading of a mnemonic.
std::string anchor(std::string_view mnemonic) {
  std::string lower;
  for (const char c : mnemonic) lower += static_cast<char>(std::tolower(c));
  return lower;
}

void add_overview(std::string& text) {
  text += "| opcode | mnemonic | operands | extension | meaning |\n|---|---|---|---|---|\n";
  for (const auto& row : instruction_table()) {
    const std::string format = format_line(row);
    const std::string operands = format.substr(std::min(format.size(), row.mnemonic.size() + 1));
    text += fmt::format(
        "| 0x{:02X} | [`{}`](#{}) | {} | {} | {} |\n", static_cast<unsigned>(row.op), row.mnemonic,
        anchor(row.mnemonic), operands.empty() ? "" : "`" + operands + "`",
        row.extension == Extension::Base ? "" : extension_name(row.extension), cell(row.summary));
  }
}

void add_instruction(std::string& text, const InstructionRow& row) {
  text += fmt::format("### {}\n\n", row.mnemonic);
  text += fmt::format("    {}\n\n", format_line(row));
  text += fmt::format("{}{}.\n\n", static_cast<char>(std::toupper(row.summary[0])),
                      row.summary.substr(1));
  text += fmt::format("- operation: `{}`\n- word: `{}`\n", row.operation, encoding_line(row));
  for (const auto& operand : row.operands()) {
    text += fmt::format("- `{}`: {}\n", operand.name, operand_values(operand, row));
  }
  text += fmt::format("- rule: {}\n", instruction_rules(row.op));
  if (row.extension != Extension::Base) {
    text += fmt::format("- extension: needs `--isa plena+{}`\n", extension_name(row.extension));
  }
  text += "\n";
}

}  // namespace

std::string format_line(const InstructionRow& row) {
  std::string line(row.mnemonic);
  bool first = true;
  for (const auto& operand : row.operands()) {
    const bool optional = operand.kind == OperandKind::ZeroOpt;
    if (optional) {
      line += fmt::format(" [, {}]", operand.name);
    } else {
      line += fmt::format("{}{}", first ? " " : ", ", operand.name);
    }
    first = false;
  }
  return line;
}

std::string encoding_line(const InstructionRow& row) {
  std::string line;
  unsigned above = 32;  // lowest bit described so far
  std::vector<Operand> from_top(row.operands().rbegin(), row.operands().rend());
  std::ranges::sort(from_top, [](const Operand& a, const Operand& b) {
    return bits_of(a.field).high > bits_of(b.field).high;
  });
  constexpr unsigned kOpcodeBits = 6;
  const auto add_unused = [&](unsigned end) {
    if (above > end) line += fmt::format("{}:{} 0 | ", above - 1, end);
  };
  for (const auto& operand : from_top) {
    const BitRange bits = bits_of(operand.field);
    add_unused(bits.high + 1);
    line += fmt::format("{}:{} {} | ", bits.high, bits.low, operand.name);
    above = bits.low;
  }
  add_unused(kOpcodeBits);
  return line + fmt::format("5:0 0x{:02X}", static_cast<unsigned>(row.op));
}

namespace {

std::string value_range(const Operand& operand, const InstructionRow& row) {
  switch (operand.kind) {
    case OperandKind::Gp:
      return row.op == Op::C_LOOP_START ? "gp1 to gp15" : "gp0 to gp15";
    case OperandKind::Fp:
      return "f0 to f7";
    case OperandKind::Addr:
      return "a0 to a7";
    case OperandKind::Immediate:
      return fmt::format("a constant expression, {} to {}", row.op == Op::C_LOOP_START ? 1 : 0,
                         operand.field == Field::Imm18 ? kImm18Max : kImm22Max);
    case OperandKind::Mask:
      return "0 or gp0 for every lane; 1 or gp1 to gp15 for the lanes V_MASK selects";
    case OperandKind::Flag:
      return "0 or 1";
    case OperandKind::Zero:
      return "the literal 0";
    case OperandKind::ZeroOpt:
      return "the literal 0, which may be left out";
    case OperandKind::RowStride:
      return "the literal 0; with the extension `wostride` also gp0 to gp15, the row stride of the "
             "destination";
  }
  return {};
}

std::string_view access_note(const Operand& operand) {
  if (operand.kind == OperandKind::RowStride) return "";
  switch (operand.access) {
    case Access::None:
      return "";
    case Access::Read:
      return ", read";
    case Access::Write:
      return ", written";
    case Access::ReadWrite:
      return ", read and written";
  }
  return "";
}

}  // namespace

std::string operand_values(const Operand& operand, const InstructionRow& row) {
  return value_range(operand, row) + std::string(access_note(operand));
}

std::string markdown_reference() {
  std::string text =
      "# Instruction set reference\n\n"
      "Generated from the instruction table by `plena isa --markdown > docs/isa.md`; do not "
      "edit.\n\n"
      "`V[x]` is Vector SRAM, `M[x]` Matrix SRAM, both at element address x; `array` is the\n"
      "systolic array's accumulators; `H` is MLEN/HLEN; `@` is a matrix product. A word is 32 "
      "bits,\n"
      "little-endian; unused bits are 0. Sections refer to the machine semantics.\n\n";
  add_overview(text);
  for (const auto& heading : kHeadings) {
    text += fmt::format("\n## {}\n\n{}\n\n", heading.title, heading.introduction);
    for (const auto& row : instruction_table()) {
      if (row.instruction_class == heading.instruction_class) add_instruction(text, row);
    }
    text.pop_back();
  }
  return text;
}

}  // namespace plena
