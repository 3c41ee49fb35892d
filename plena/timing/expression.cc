#include "plena/timing/expression.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "plena/base/near_miss.h"
#include "plena/config/keys.h"

namespace plena {

namespace {

constexpr std::array<std::string_view, 6> kNames = {"BLEN", "MLEN", "HLEN", "VLEN", "H", "LANES"};

std::int64_t value_of_name(std::int64_t index, const CostNames& names) {
  const Settings& s = *names.settings;
  switch (index) {
    case 0:
      return s.blen;
    case 1:
      return s.mlen;
    case 2:
      return s.hlen;
    case 3:
      return s.vlen;
    case 4:
      return s.heads();
    default:
      return names.lanes;
  }
}

bool is_letter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

// Recursive descent that writes postfix steps as it goes.
class CycleExpressionParser {
 public:
  CycleExpressionParser(std::string_view text, const SourcePlace& place)
      : text_(text), place_(place) {}

  Result<CycleExpression> parse() {
    if (auto ok = sum(); !ok) return tl::unexpected(ok.error());
    if (!at_end()) return error(fmt::format("unexpected `{}`", text_.substr(at_, 1)));
    result_.text_ = text_;
    result_.place_ = place_;
    result_.place_.length = static_cast<std::uint32_t>(std::max<std::size_t>(text_.size(), 1));
    return std::move(result_);
  }

 private:
  using Step = CycleExpression::Step;

  // Each level of nesting costs a few frames of the stack.
  static constexpr int kDeepest = 50;

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void emit(Step step, std::int64_t value = 0) { result_.steps_.push_back({step, value}); }

  tl::unexpected<Error> error(std::string message, std::string hint = {}) {
    return error_at(at_, std::move(message), std::move(hint));
  }
  tl::unexpected<Error> error_at(std::size_t at, std::string message, std::string hint) {
    Error error{ErrorCode::Settings, std::move(message), place_, std::move(hint)};
    error.place.column += static_cast<std::uint32_t>(at);
    return tl::unexpected(std::move(error));
  }
  tl::unexpected<Error> expected(std::string_view what) {
    if (at_end()) return error(fmt::format("expected {} at the end of the expression", what));
    return error(fmt::format("expected {}, found `{}`", what, text_.substr(at_, 1)));
  }

  Status sum() {
    if (auto ok = product(); !ok) return ok;
    for (;;) {
      const Step step = take('+') ? Step::Add : take('-') ? Step::Subtract : Step::Number;
      if (step == Step::Number) return {};
      if (auto ok = product(); !ok) return ok;
      emit(step);
    }
  }

  Status product() {
    if (auto ok = factor(); !ok) return ok;
    for (;;) {
      const Step step = take('*')   ? Step::Multiply
                        : take('/') ? Step::Divide
                        : take('%') ? Step::Remainder
                                    : Step::Number;
      if (step == Step::Number) return {};
      if (auto ok = factor(); !ok) return ok;
      emit(step);
    }
  }

  Status factor() {
    if (++depth_ > kDeepest) return error("the expression is nested too deeply");
    Status ok = take('-') ? negated() : primary();
    --depth_;
    return ok;
  }

  Status negated() {
    if (auto ok = factor(); !ok) return ok;
    emit(Step::Negate);
    return {};
  }

  Status primary() {
    if (at_end()) return expected("a number or a name");
    if (take('(')) {
      if (auto ok = sum(); !ok) return ok;
      return take(')') ? Status() : Status(expected("`)`"));
    }
    if (is_digit(text_[at_])) return number();
    if (is_letter(text_[at_])) return name_or_call();
    return expected("a number or a name");
  }

  Status number() {
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (problem != std::errc()) return error("the number is too large");
    at_ += static_cast<std::size_t>(end - begin);
    emit(Step::Number, value);
    return {};
  }

  std::string_view word() {
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Status name_or_call() {
    const std::size_t begin = at_;
    const std::string_view name = word();
    if (take('(')) return call(name, begin);
    const auto* found = std::ranges::find(kNames, name);
    if (found == kNames.end()) {
      return error_at(begin, fmt::format("unknown name `{}`", name), did_you_mean(name, kNames));
    }
    emit(Step::Name, found - kNames.begin());
    return {};
  }

  Status call(std::string_view function, std::size_t begin) {
    if (function == "setting") return setting();
    static constexpr std::array<std::string_view, 5> kFunctions = {"min", "max", "ceil_div",
                                                                   "ceil_log2", "setting"};
    const Step step = function == "min"         ? Step::Min
                      : function == "max"       ? Step::Max
                      : function == "ceil_div"  ? Step::CeilDiv
                      : function == "ceil_log2" ? Step::CeilLog2
                                                : Step::Number;
    if (step == Step::Number) {
      return error_at(begin, fmt::format("unknown function `{}`", function),
                      did_you_mean(function, kFunctions));
    }
    if (auto ok = sum(); !ok) return ok;
    if (step != Step::CeilLog2) {
      if (!take(',')) return expected("`,`");
      if (auto ok = sum(); !ok) return ok;
    }
    if (!take(')')) return expected("`)`");
    emit(step);
    return {};
  }

  Status setting() {
    skip_blanks();
    const std::size_t begin = at_;
    const std::string_view name = word();
    const auto names = latency_names();
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      return error_at(begin, fmt::format("the settings have no LATENCY entry `{}`", name),
                      did_you_mean(name, names));
    }
    if (!take(',')) return expected("`,`");
    if (auto ok = sum(); !ok) return ok;
    if (!take(')')) return expected("`)`");
    emit(Step::Setting, found - names.begin());
    return {};
  }

  std::string_view text_;
  const SourcePlace& place_;
  std::size_t at_ = 0;
  int depth_ = 0;
  CycleExpression result_;
};

Result<CycleExpression> CycleExpression::parse(std::string_view text, const SourcePlace& place) {
  return CycleExpressionParser(text, place).parse();
}

tl::unexpected<Error> CycleExpression::error(std::string message) const {
  return tl::unexpected(
      Error{ErrorCode::Settings, fmt::format("`{}`: {}", text_, message), place_, {}});
}

Result<std::int64_t> CycleExpression::evaluate(const CostNames& names) const {
  std::vector<std::int64_t> stack;
  const auto pop = [&] {
    const std::int64_t top = stack.back();
    stack.pop_back();
    return top;
  };
  for (const auto [step, value] : steps_) {
    std::int64_t result = 0;
    bool overflow = false;
    if (step == Step::Number) {
      result = value;
    } else if (step == Step::Name) {
      result = value_of_name(value, names);
    } else if (step == Step::Negate) {
      overflow = __builtin_sub_overflow(std::int64_t{0}, pop(), &result);
    } else if (step == Step::Setting) {
      const std::int64_t otherwise = pop();
      const auto& latency = names.settings->latency;
      const auto found = latency.find(latency_names()[static_cast<std::size_t>(value)]);
      result = found == latency.end() || found->second == 0 ? otherwise : found->second;
    } else if (step == Step::CeilLog2) {
      const std::int64_t of = pop();
      if (of < 1) return error(fmt::format("the logarithm of {} does not exist", of));
      result = std::bit_width(static_cast<std::uint64_t>(of) - 1);
    } else {
      const std::int64_t right = pop();
      const std::int64_t left = pop();
      const bool divides = step == Step::Divide || step == Step::Remainder || step == Step::CeilDiv;
      if (divides && right == 0) return error("division by 0");
      // INT64_MIN / -1 is the one quotient that does not fit.
      if (divides && right == -1) return error("division by a negative number");
      switch (step) {
        case Step::Add:
          overflow = __builtin_add_overflow(left, right, &result);
          break;
        case Step::Subtract:
          overflow = __builtin_sub_overflow(left, right, &result);
          break;
        case Step::Multiply:
          overflow = __builtin_mul_overflow(left, right, &result);
          break;
        case Step::Divide:
          result = left / right;
          break;
        case Step::Remainder:
          result = left % right;
          break;
        case Step::CeilDiv:
          result = left / right + (left % right > 0 ? 1 : 0);
          break;
        case Step::Min:
          result = std::min(left, right);
          break;
        default:
          result = std::max(left, right);
          break;
      }
    }
    if (overflow) return error("the value does not fit 64 bits");
    stack.push_back(result);
  }
  return stack.back();
}

}  // namespace plena
