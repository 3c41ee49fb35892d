#include "plena/asm/expression.h"

#include <optional>

namespace plena {

namespace {

constexpr int kDeepestNesting = 200;  // parentheses; each takes a few frames of the stack

bool is_hexadecimal(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

// Recursive descent over the characters: shift < sum < product < sign < number, name, ( ).
// The first fault ends it: every step checks fault_ before it goes on.
class Evaluation {
 public:
  Evaluation(std::string_view text, const SymbolTable& symbols) : rest_(text), symbols_(symbols) {}

  tl::expected<Integer, Fault> run() {
    Integer value = shift();
    if (!fault_ && !peek().empty()) unexpected_token();
    if (fault_) return tl::unexpected(*std::move(fault_));
    return value;
  }

 private:
  // The operator or parenthesis ahead, or one character of something else; empty at the end.
  std::string_view peek() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
    const bool pair = rest_.starts_with("<<") || rest_.starts_with(">>");
    return rest_.substr(0, pair ? 2 : 1);
  }

  std::string_view take(std::size_t length) {
    const auto token = rest_.substr(0, length);
    rest_.remove_prefix(length);
    last_end_ = rest_.substr(0, 0);
    return token;
  }

  template <class Matches>
  std::string_view take_while(Matches matches) {
    std::size_t length = 0;
    while (length < rest_.size() && matches(rest_[length])) ++length;
    return take(length);
  }

  Integer fault(SyntaxKind kind, std::string_view token, std::string message, std::string hint) {
    if (!fault_) fault_ = Fault{kind, token, std::move(message), std::move(hint)};
    return {};
  }

  Integer bad(std::string_view token, std::string message, std::string hint = {}) {
    return fault(SyntaxKind::BadExpression, token, std::move(message), std::move(hint));
  }

  // A name or number is quoted whole.
  void unexpected_token() {
    std::string_view token = peek();
    if (is_name_character(token[0])) token = take_while(is_name_character);
    bad(token, fmt::format("unexpected '{}'", quotable(token)),
        "numbers, names, + - * / % << >> and parentheses make an expression");
  }

  // Where something is missing, the caret goes right behind the last token.
  [[nodiscard]] std::string_view gap() const {
    return last_end_.data() == nullptr ? rest_.substr(0, 0) : last_end_;
  }

  Integer shift() {
    Integer value = sum();
    for (auto op = peek(); !fault_ && (op == "<<" || op == ">>"); op = peek()) {
      const auto token = take(op.size());
      const Integer count = sum();
      if (!fault_) value = shifted(value, token, count);
    }
    return value;
  }

  Integer shifted(const Integer& value, std::string_view op, const Integer& count) {
    if (count.is_negative()) return bad(op, "shift by a negative count", "a count from 0");
    if (value.is_zero()) return value;
    const auto bits = static_cast<std::uint64_t>(count.to_int64().value_or(INT64_MAX));
    if (op == ">>") return value.shifted_right(bits);
    if (bits > kLongestInteger || value.bit_length() + bits > kLongestInteger) return too_long(op);
    return value.shifted_left(bits);
  }

  Integer too_long(std::string_view token) {
    return bad(token, fmt::format("the result has more than {} bits", kLongestInteger),
               "no field holds such a number");
  }

  Integer sum() {
    Integer value = product();
    for (auto op = peek(); !fault_ && (op == "+" || op == "-"); op = peek()) {
      const bool plus = take(1) == "+";
      const Integer right = product();
      if (!fault_) value = plus ? value + right : value - right;
    }
    return value;
  }

  Integer product() {
    Integer value = sign();
    for (auto op = peek(); !fault_ && (op == "*" || op == "/" || op == "%"); op = peek()) {
      const auto token = take(1);
      const Integer right = sign();
      if (!fault_) value = multiplied(value, token, right);
    }
    return value;
  }

  Integer multiplied(const Integer& left, std::string_view op, const Integer& right) {
    if (op == "*") {
      if (left.bit_length() + right.bit_length() > kLongestInteger) return too_long(op);
      return left * right;
    }
    if (right.is_zero()) return bad(op, "division by zero");
    return op == "/" ? left / right : left % right;
  }

  Integer sign() {
    bool negative = false;
    for (auto op = peek(); op == "+" || op == "-"; op = peek()) negative ^= take(1) == "-";
    const Integer value = primary();
    return negative ? Integer(0) - value : value;
  }

  Integer primary() {
    const std::string_view ahead = peek();
    if (ahead.empty()) return bad(gap(), "a value is missing", "a number, a name or ( … )");
    if (ahead == "(") return parenthesis();
    if (is_digit(ahead[0])) return number();
    if (is_name_start(ahead[0])) return name();
    unexpected_token();
    return {};
  }

  Integer parenthesis() {
    const auto open = take(1);
    if (++depth_ > kDeepestNesting) return bad(open, "parentheses nest too deeply");
    Integer value = shift();
    --depth_;
    if (fault_) return {};
    if (peek() == ")") {
      take(1);
      return value;
    }
    if (peek().empty()) return bad(gap(), "a closing parenthesis is missing", "add )");
    unexpected_token();
    return {};
  }

  Integer number() {
    unsigned base = 10;
    if (prefixed('x', is_hexadecimal)) base = 16;
    if (prefixed('b', [](char c) { return c == '0' || c == '1'; })) base = 2;
    if (base != 10) take(2);
    const auto digits = take_while([base](char c) {
      return base == 16 ? is_hexadecimal(c) : c >= '0' && c < (base == 2 ? '2' : ':');
    });
    // No base has a digit of more than four bits.
    constexpr std::size_t kMostDigits = kLongestInteger / 4;
    if (digits.size() > kMostDigits) return too_long(digits);
    return Integer::from_digits(digits, base);
  }

  // Whether a number starts with 0 and this letter, in any case, and one of its digits.
  template <class IsDigit>
  [[nodiscard]] bool prefixed(char letter, IsDigit digit) const {
    return rest_.size() > 2 && rest_[0] == '0' && (rest_[1] | 0x20) == letter && digit(rest_[2]);
  }

  Integer name() {
    const auto token = take_while(is_name_character);
    const Symbol* symbol = symbols_.find(token);
    if (symbol == nullptr) {
      return fault(SyntaxKind::UndefinedSymbol, token,
                   fmt::format("'{}' is not defined", quotable(token)),
                   "a setting, or a name defined by .equ in an earlier line");
    }
    if (!symbol->known) return fault(SyntaxKind::UndefinedSymbol, token, {}, {});
    return symbol->value;
  }

  std::string_view rest_;
  const SymbolTable& symbols_;
  std::string_view last_end_;  // the empty stretch behind the last token taken
  int depth_ = 0;
  std::optional<Fault> fault_;
};

}  // namespace

tl::expected<Integer, Fault> evaluate(std::string_view text, const SymbolTable& symbols) {
  return Evaluation(text, symbols).run();
}

}  // namespace plena
