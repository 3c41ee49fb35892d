#include "plena/isa/encoding.h"

#include <fmt/format.h>

namespace plena {

namespace {

constexpr unsigned kRdShift = 6;
constexpr unsigned kRs1Shift = 10;
constexpr unsigned kRs2Shift = 14;
constexpr unsigned kSelectShift = 18;
constexpr unsigned kOrderShift = 22;
constexpr std::uint32_t kOpcodeMask = 0x3F;
constexpr std::uint32_t kFieldMask = 0xF;

constexpr std::uint32_t nibble(std::uint32_t word, unsigned shift) {
  return (word >> shift) & kFieldMask;
}

// Registers above 7 do not exist in the f and a files; rs-registers adds a8 … a15, and rs-decode
// defers the fault of the others to the moment they are reached.
bool register_exists(const Operand& operand, std::uint32_t value, const Dialect& dialect) {
  switch (operand.kind) {
    case OperandKind::Fp:
      return value < 8 || dialect.has(RsSwitch::Decode);
    case OperandKind::Addr:
      return value < 8 || dialect.has(RsSwitch::Registers) || dialect.has(RsSwitch::Decode);
    default:
      return true;
  }
}

bool value_allowed(const Operand& operand, std::uint32_t value, const Dialect& dialect) {
  switch (operand.kind) {
    case OperandKind::Flag:
      return value <= 1 || dialect.has(RsSwitch::Decode);
    case OperandKind::RowStride:
      return value == 0 || dialect.has(Extension::WoStride);
    case OperandKind::Zero:
    case OperandKind::ZeroOpt:
      return value == 0 || dialect.has(RsSwitch::Decode);
    default:
      return register_exists(operand, value, dialect);
  }
}

// Splits a word by its form, without judging it.
Instruction split(std::uint32_t word, const InstructionRow& row, const Dialect& dialect) {
  Instruction out;
  out.op = row.op;
  out.rd = static_cast<std::uint8_t>(nibble(word, kRdShift));
  switch (row.form) {
    case Form::R:
      out.rs1 = static_cast<std::uint8_t>(nibble(word, kRs1Shift));
      out.rs2 = static_cast<std::uint8_t>(nibble(word, kRs2Shift));
      out.select = static_cast<std::uint8_t>(nibble(word, kSelectShift));
      out.order = static_cast<std::uint8_t>(nibble(word, kOrderShift));
      break;
    case Form::I18:
      out.rs1 = static_cast<std::uint8_t>(nibble(word, kRs1Shift));
      out.imm = word >> kRs2Shift;
      break;
    case Form::I22: {
      const bool write_out =
          row.op == Op::M_BMM_WO || row.op == Op::M_MV_WO || row.op == Op::M_BMV_WO;
      out.imm = word >> (write_out && dialect.has(RsSwitch::Decode) ? kRs2Shift : kRs1Shift);
      break;
    }
  }
  return out;
}

// The instruction with only the fields its operands name; the rest is 0.
Instruction keep_operands(const Instruction& raw, const InstructionRow& row) {
  Instruction out;
  out.op = raw.op;
  for (const Operand& operand : row.operands()) {
    set_field(out, operand.field, field_value(raw, operand.field));
  }
  return out;
}

}  // namespace

std::uint32_t encode(const Instruction& instruction) {
  const auto& row = row_of(instruction.op);
  std::uint32_t word = static_cast<std::uint32_t>(instruction.op) |
                       static_cast<std::uint32_t>(instruction.rd) << kRdShift;
  switch (row.form) {
    case Form::R:
      return word | static_cast<std::uint32_t>(instruction.rs1) << kRs1Shift |
             static_cast<std::uint32_t>(instruction.rs2) << kRs2Shift |
             static_cast<std::uint32_t>(instruction.select) << kSelectShift |
             static_cast<std::uint32_t>(instruction.order) << kOrderShift;
    case Form::I18:
      return word | static_cast<std::uint32_t>(instruction.rs1) << kRs1Shift |
             instruction.imm << kRs2Shift;
    case Form::I22:
      return word | instruction.imm << kRs1Shift;
  }
  return word;
}

std::optional<Instruction> decode(std::uint32_t word, const Dialect& dialect) {
  const InstructionRow* row = find_row(static_cast<std::uint8_t>(word & kOpcodeMask));
  if (row == nullptr || !dialect.has(row->extension)) return std::nullopt;
  const Instruction raw = split(word, *row, dialect);
  for (const Operand& operand : row->operands()) {
    if (!value_allowed(operand, field_value(raw, operand.field), dialect)) return std::nullopt;
  }
  const Instruction out = keep_operands(raw, *row);
  if (dialect.has(RsSwitch::Decode)) {
    if (refused_at_load(word)) return std::nullopt;
    Instruction lenient = out;
    if (row->op == Op::V_RED_SUM) lenient.select = raw.select;  // it has an rmask there
    return lenient;
  }
  if (encode(out) != word) return std::nullopt;
  return out;
}

bool refused_at_load(std::uint32_t word) {
  const auto op = static_cast<Op>(word & kOpcodeMask);
  return (op == Op::M_BMM || op == Op::M_BTMM) && nibble(word, kRdShift) != 0;
}

std::string explain_illegal(std::uint32_t word, const Dialect& dialect) {
  const auto opcode = word & kOpcodeMask;
  const InstructionRow* row = find_row(static_cast<std::uint8_t>(opcode));
  if (row == nullptr) return fmt::format("opcode 0x{:02X} is not assigned", opcode);
  if (!dialect.has(row->extension)) {
    return fmt::format("{} belongs to the extension '{}', which is off", row->mnemonic,
                       extension_name(row->extension));
  }
  const Instruction raw = split(word, *row, dialect);
  for (const Operand& operand : row->operands()) {
    const std::uint32_t value = field_value(raw, operand.field);
    if (value_allowed(operand, value, dialect)) continue;
    switch (operand.kind) {
      case OperandKind::Fp:
        return fmt::format("{}: f{} does not exist (f0 to f7)", row->mnemonic, value);
      case OperandKind::Addr:
        return fmt::format("{}: a{} does not exist (a0 to a7)", row->mnemonic, value);
      case OperandKind::Flag:
        return fmt::format("{}: {} is {}, but only 0 and 1 have a meaning", row->mnemonic,
                           operand.name, value);
      case OperandKind::RowStride:
        return fmt::format("{}: a row stride needs the extension 'wostride'", row->mnemonic);
      default:
        return fmt::format("{}: the field of the fixed operand 0 holds {}", row->mnemonic, value);
    }
  }
  return fmt::format("{}: unused bits are set (0x{:08X})", row->mnemonic,
                     word & ~encode(keep_operands(raw, *row)));
}

}  // namespace plena
