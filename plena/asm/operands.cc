#include "plena/asm/operands.h"

#include <optional>

#include "plena/asm/expression.h"
#include "plena/isa/reference.h"

namespace plena {

namespace {

using Value = tl::expected<std::uint32_t, Fault>;

struct RegisterFile {
  OperandKind kind{};
  std::string_view prefix;
  std::uint32_t count = 0;
};

constexpr RegisterFile kGpFile{OperandKind::Gp, "gp", 16};
constexpr RegisterFile kFpFile{OperandKind::Fp, "f", 8};

RegisterFile address_file(const Dialect& dialect) {
  return {OperandKind::Addr, "a", dialect.has(RsSwitch::Registers) ? 16U : 8U};
}

tl::unexpected<Fault> fault(SyntaxKind kind, std::string_view token, std::string message,
                            std::string hint) {
  return tl::unexpected(Fault{kind, token, std::move(message), std::move(hint)});
}

// The digits behind `prefix` in any case as a number, saturated; nothing when the text is no such
// register name.
std::optional<std::uint32_t> register_number(std::string_view text, std::string_view prefix) {
  if (text.size() <= prefix.size()) return std::nullopt;
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    if ((text[i] | 0x20) != prefix[i]) return std::nullopt;
  }
  std::uint32_t number = 0;
  for (const char c : text.substr(prefix.size())) {
    if (!is_digit(c)) return std::nullopt;
    number = std::min<std::uint32_t>(number * 10 + static_cast<std::uint32_t>(c - '0'), 1000);
  }
  return number;
}

std::string file_range(const RegisterFile& file) {
  return fmt::format("{0}0 to {0}{1}", file.prefix, file.count - 1);
}

// `gp5`, `gp12`, `f3`: one or two digits, nearly all there are.
std::optional<std::uint32_t> short_register(std::string_view text, const RegisterFile& file) {
  const std::size_t prefix = file.prefix.size();
  if (text.size() != prefix + 1 && text.size() != prefix + 2) return std::nullopt;
  if ((text[0] | 0x20) != file.prefix[0]) return std::nullopt;
  if (prefix == 2 && (text[1] | 0x20) != file.prefix[1]) return std::nullopt;
  if (!is_digit(text[prefix]) || !is_digit(text.back())) return std::nullopt;
  const auto first = static_cast<std::uint32_t>(text[prefix] - '0');
  if (text.size() == prefix + 1) return first;
  return first * 10 + static_cast<std::uint32_t>(text.back() - '0');
}

Value parse_register(std::string_view text, const RegisterFile& file) {
  if (const auto quick = short_register(text, file); quick && *quick < file.count) return *quick;
  const auto number = register_number(text, file.prefix);
  if (number && *number < file.count) return *number;
  if (number) {
    return fault(SyntaxKind::RegisterRange, text,
                 fmt::format("there is no register {}", quotable(text)), file_range(file));
  }
  if (text.empty()) {
    return fault(SyntaxKind::BadRegister, text, "an operand is missing", file_range(file));
  }
  return fault(SyntaxKind::BadRegister, text,
               fmt::format("'{}' is not one of the registers {}", quotable(text), file_range(file)),
               file.kind == OperandKind::Gp && is_digit(text[0])
                   ? "a number has to be loaded into a register first, with LI"
                   : "");
}

Value fixed_zero(const InstructionRow& row, std::string_view text) {
  if (text == "0") return 0U;
  return fault(SyntaxKind::FixedOperand, text,
               text.empty() ? "a fixed 0 is missing"
                            : fmt::format("'{}' stands where a fixed 0 belongs", quotable(text)),
               format_line(row));
}

// Plain decimal numbers of up to nine digits, nearly all there are.
std::optional<std::uint32_t> short_decimal(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return value;
}

std::string_view advice_for(const InstructionRow& row) {
  switch (row.op) {
    case Op::S_ADDI_INT:
      return "LI loads any value of 32 bits";
    case Op::C_LOOP_START:
      return "nest two loops for more iterations";
    case Op::S_LUI_INT:
      return "one unit is 4096; LI loads any value of 32 bits";
    default:
      return "add the rest to the register";
  }
}

}  // namespace

Value OperandParser::parse(const InstructionRow& row, const Operand& operand,
                           std::string_view text) const {
  switch (operand.kind) {
    case OperandKind::Gp:
      return parse_register(text, kGpFile);
    case OperandKind::Fp:
      return parse_register(text, kFpFile);
    case OperandKind::Addr:
      return parse_register(text, address_file(dialect_));
    case OperandKind::Immediate:
      return immediate(text, operand.field == Field::Imm18 ? kImm18Max : kImm22Max,
                       advice_for(row));
    case OperandKind::Mask:
      return mask(text);
    case OperandKind::Flag:
      return flag(operand, text);
    case OperandKind::Zero:
    case OperandKind::ZeroOpt:
      return fixed_zero(row, text);
    case OperandKind::RowStride:
      return row_stride(row, text);
  }
  return 0U;
}

Value OperandParser::gp_register(std::string_view text) const {
  return parse_register(text, kGpFile);
}

Value OperandParser::immediate(std::string_view text, std::uint32_t largest,
                               std::string_view advice) const {
  if (const auto number = short_decimal(text); number && *number <= largest) return *number;
  const auto value = evaluate(text, symbols_);
  if (!value) return tl::unexpected(value.error());
  const auto small = value->to_int64();
  if (small && *small >= 0 && *small <= largest) return static_cast<std::uint32_t>(*small);
  std::string hint = fmt::format("0 to {}", largest);
  if (!value->is_negative() && !advice.empty()) hint += fmt::format("; {}", advice);
  return fault(SyntaxKind::ImmediateRange, text,
               fmt::format("{} does not fit the field", value->text()), std::move(hint));
}

Value OperandParser::mask(std::string_view text) const {
  if (text == "0") return 0U;
  if (text == "1") return 1U;
  const bool is_register =
      register_number(text, "gp") || register_number(text, "f") || register_number(text, "a");
  if (is_register) return parse_register(text, kGpFile);
  return fault(
      SyntaxKind::BadSelector, text,
      text.empty() ? "the mask is missing" : fmt::format("'{}' is not a mask", quotable(text)),
      "0 or gp0 for every lane; 1 or gp1 to gp15 for the lanes V_MASK selects");
}

Value OperandParser::flag(const Operand& operand, std::string_view text) const {
  if (text == "0") return 0U;
  if (text == "1") return 1U;
  if (text.empty()) {
    return fault(SyntaxKind::BadSelector, text, fmt::format("{} is missing", operand.name),
                 "0 or 1");
  }
  const auto value = evaluate(text, symbols_);
  if (!value) return tl::unexpected(value.error());
  if (*value == Integer(0)) return 0U;
  if (*value == Integer(1)) return 1U;
  return fault(
      SyntaxKind::BadSelector, text,
      fmt::format("{} is {}, but only 0 and 1 have a meaning", operand.name, value->text()), {});
}

Value OperandParser::row_stride(const InstructionRow& row, std::string_view text) const {
  if (text == "0") return 0U;
  if (dialect_.has(Extension::WoStride)) return parse_register(text, kGpFile);
  Value refused = fixed_zero(row, text);
  if (register_number(text, "gp")) {
    refused.error().hint = "a row stride in a register needs the extension 'wostride'";
  }
  return refused;
}

}  // namespace plena
