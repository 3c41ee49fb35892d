#include "plena/asm/formatter.h"

#include <algorithm>
#include <optional>

#include "plena/asm/symbols.h"
#include "plena/asm/syntax_error.h"

namespace plena {

namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kDeepestIndent = 16;  // loops that never close shall not fill the line
constexpr std::size_t kCommentColumn = 40;  // characters in front of a comment behind code
constexpr std::size_t kCommentGap = 2;

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (auto& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return out;
}

std::string_view trim_end(std::string_view text) {
  const auto last = text.find_last_not_of(" \t\r\v\f");
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// A name or number, an operator or a parenthesis; nothing for a character of no expression.
std::optional<std::string_view> next_token(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && is_name_character(text[length])) ++length;
  if (length > 0) return text.substr(0, length);
  if (text.starts_with("<<") || text.starts_with(">>")) return text.substr(0, 2);
  if (std::string_view("+-*/%()").find(text.front()) == std::string_view::npos) return std::nullopt;
  return text.substr(0, 1);
}

// Joins tokens one by one, with a space where one belongs.
class ExpressionWriter {
 public:
  void add(std::string_view token) {
    const bool value = is_name_character(token[0]);
    const bool sign = expects_value_ && (token == "+" || token == "-");
    if (value || token == "(") {
      if (!expects_value_) text_ += ' ';  // two values in a row: wrong, and kept apart
      text_ += token;
      expects_value_ = !value;
    } else if (token == ")") {
      text_ += token;
      expects_value_ = false;
    } else if (sign) {
      text_ += token;
    } else {
      text_ += ' ';
      text_ += token;
      text_ += ' ';
      expects_value_ = true;
    }
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool expects_value_ = true;
};

bool names_register(OperandKind kind) {
  switch (kind) {
    case OperandKind::Gp:
    case OperandKind::Fp:
    case OperandKind::Addr:
    case OperandKind::Mask:
    case OperandKind::RowStride:
      return true;
    default:
      return false;
  }
}

std::string format_operand(const Mnemonic& mnemonic, std::size_t index, std::string_view text) {
  switch (mnemonic.kind) {
    case Mnemonic::Kind::Instruction: {
      const auto operands = mnemonic.row->operands();
      if (index >= operands.size()) return std::string(text);
      return names_register(operands[index].kind) ? lower_case(text) : format_expression(text);
    }
    case Mnemonic::Kind::LoadImmediate:
      return index == 0 ? lower_case(text) : format_expression(text);
    case Mnemonic::Kind::Equ:
      return index == 0 ? std::string(text) : format_expression(text);
    case Mnemonic::Kind::Word:
      return format_expression(text);
    case Mnemonic::Kind::RegionBegin:
    case Mnemonic::Kind::RegionEnd:
      return std::string(text);
  }
  return std::string(text);
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_op(const Mnemonic* mnemonic, Op op) {
  return mnemonic != nullptr && mnemonic->row != nullptr && mnemonic->row->op == op;
}

}  // namespace

std::string format_expression(std::string_view text) {
  ExpressionWriter writer;
  std::string_view rest = text;
  while (!rest.empty()) {
    if (rest.front() == ' ' || rest.front() == '\t') {
      rest.remove_prefix(1);
      continue;
    }
    const auto token = next_token(rest);
    if (!token) return std::string(text);
    writer.add(*token);
    rest.remove_prefix(token->size());
  }
  return std::string(trim_end(writer.text()));
}

void Formatter::feed(std::string_view text, std::string& out) {
  splitter_.feed(text, [&](std::string_view line) { one_line(line, out); });
}

Status Formatter::finish(std::string& out) {
  const std::uint32_t complete_lines = line_number_;
  splitter_.finish([&](std::string_view line) { one_line(line, out); });
  // The last line lacked its end, or empty lines closed the text.
  if (line_number_ != complete_lines || blank_pending_) changed_ = true;
  return status_;
}

void Formatter::refuse(std::string message) {
  if (!status_) return;
  Error error{ErrorCode::Format, std::move(message), {}, {}};
  error.place.file = source_name_;
  error.place.line = line_number_;
  status_ = tl::unexpected(std::move(error));
}

// The instruction or directive without indentation and comment.
std::string Formatter::code(const TextLine& line) const {
  const Mnemonic* mnemonic = mnemonics_.find(line.mnemonic);
  const char* begin = line.mnemonic.data();
  const char* end =
      line.comment.empty() ? line.text.data() + line.text.size() : line.comment.data();
  if (mnemonic == nullptr || line.operand_count > kOperandSlots) {
    return std::string(trim_end({begin, static_cast<std::size_t>(end - begin)}));
  }
  std::string out(mnemonic->name);
  for (std::size_t i = 0; i < line.operand_count; ++i) {
    out += i == 0 ? " " : ", ";
    out += format_operand(*mnemonic, i, line.operands[i]);
  }
  return std::string(trim_end(out));
}

void Formatter::one_line(std::string_view text, std::string& out) {
  ++line_number_;
  if (text.size() > kLongestLine) {
    return refuse(fmt::format("a line of more than {} characters", kLongestLine));
  }
  if (text.find('\0') != std::string_view::npos) return refuse("a NUL byte: this is not text");
  const std::string_view original = text;
  if (line_number_ == 1) text = without_byte_order_mark(text);
  const TextLine line = scan_line(text);
  if (line.mnemonic.empty() && line.comment.empty()) {
    if (blank_pending_ || !any_written_ || !original.empty()) changed_ = true;
    blank_pending_ = any_written_;
    return;
  }
  if (blank_pending_) out += '\n';
  blank_pending_ = false;
  any_written_ = true;

  const Mnemonic* mnemonic = mnemonics_.find(line.mnemonic);
  if (is_op(mnemonic, Op::C_LOOP_END) && depth_ > 0) --depth_;
  std::string formatted(kIndent * std::min(depth_, kDeepestIndent), ' ');
  if (is_op(mnemonic, Op::C_LOOP_START)) ++depth_;
  if (!line.mnemonic.empty()) formatted += code(line);
  if (!line.comment.empty()) {
    if (!line.mnemonic.empty()) {
      const std::size_t width = display_width(formatted);
      formatted.append(width + kCommentGap > kCommentColumn ? kCommentGap : kCommentColumn - width,
                       ' ');
    }
    formatted += trim_end(line.comment);
  }
  if (formatted != original) changed_ = true;
  out += formatted;
  out += '\n';
}

}  // namespace plena
