#include "plena/model/chat/expression.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include <fmt/format.h>

namespace plena::chat {

namespace {

constexpr std::size_t kMostSteps = 100'000;
constexpr int kMostDepth = 100;  // of nested expressions

using Kind = Lexeme::Kind;

// A tree node as a function of the variables.
class Computed : public Expression {
 public:
  explicit Computed(std::function<Value(Scope&)> compute) : compute_(std::move(compute)) {}
  [[nodiscard]] Value evaluate(Scope& scope) const override {
    scope.spend();
    return compute_(scope);
  }

 private:
  std::function<Value(Scope&)> compute_;
};

ExpressionPtr make(std::function<Value(Scope&)> compute) {
  return std::make_unique<const Computed>(std::move(compute));
}

// std::function wants to copy what it holds.
using Shared = std::shared_ptr<const Expression>;

ExpressionPtr make_binary(ExpressionPtr left, ExpressionPtr right,
                          std::function<Value(const Value&, const Value&)> combine) {
  return make([l = Shared(std::move(left)), r = Shared(std::move(right)),
               combine = std::move(combine)](Scope& scope) {
    const Value first = l->evaluate(scope);
    return combine(first, r->evaluate(scope));
  });
}

bool contains(const Value& container, const Value& element) {
  if (container.is_string() && element.is_string()) {
    return container.get_ref<const std::string&>().find(element.get_ref<const std::string&>()) !=
           std::string::npos;
  }
  if (container.is_object()) {
    return element.is_string() && container.contains(element.get_ref<const std::string&>());
  }
  if (container.is_array()) {
    return std::find(container.begin(), container.end(), element) != container.end();
  }
  if (is_undefined(container) || container.is_null()) return false;
  throw TemplateError("`in` works on strings, lists and dicts");
}

std::string concatenate(const std::string& left, const std::string& right) {
  if (left.size() + right.size() > kMostText) throw TemplateError("a string grows too long");
  return left + right;
}

std::int64_t integer(const Value& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (!value.is_number_integer()) throw TemplateError("arithmetic works on integers");
  return value.get<std::int64_t>();
}

Value add(const Value& left, const Value& right) {
  if (left.is_string() && right.is_string()) {
    return concatenate(left.get_ref<const std::string&>(), right.get_ref<const std::string&>());
  }
  if (left.is_array() && right.is_array()) {
    if (left.size() + right.size() > kMostSteps) throw TemplateError("a list grows too long");
    Value sum = left;
    sum.insert(sum.end(), right.begin(), right.end());
    return sum;
  }
  std::int64_t sum = 0;
  if (__builtin_add_overflow(integer(left), integer(right), &sum))
    throw TemplateError("a number is too large");
  return sum;
}

Value subtract(const Value& left, const Value& right) {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(integer(left), integer(right), &difference))
    throw TemplateError("a number is too large");
  return difference;
}

Value multiply(const Value& left, const Value& right) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(integer(left), integer(right), &product))
    throw TemplateError("a number is too large");
  return product;
}

// Quotient and remainder as Python rounds them, downwards.
Value divide(const Value& left, const Value& right, bool remainder) {
  const std::int64_t a = integer(left);
  const std::int64_t b = integer(right);
  if (b == 0 || (b == -1 && a == INT64_MIN)) throw TemplateError("a division by 0");
  std::int64_t quotient = a / b;
  std::int64_t rest = a % b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    --quotient;
    rest += b;
  }
  return remainder ? rest : quotient;
}

Value compare(const std::string& symbol, const Value& left, const Value& right) {
  if (symbol == "==") return left == right;
  if (symbol == "!=") return left != right;
  const bool comparable =
      (left.is_number() && right.is_number()) || (left.is_string() && right.is_string());
  if (!comparable) throw TemplateError(fmt::format("{} of different kinds", symbol));
  if (symbol == "<") return left < right;
  if (symbol == ">") return left > right;
  return symbol == "<=" ? left <= right : left >= right;
}

Value member_of(const Value& object, const Value& key) {
  if (object.is_object() && key.is_string()) {
    const auto at = object.find(key.get_ref<const std::string&>());
    return at == object.end() ? undefined() : *at;
  }
  if (object.is_array() && key.is_number_integer()) {
    auto index = key.get<std::int64_t>();
    if (index < 0) index += static_cast<std::int64_t>(object.size());
    const bool inside = index >= 0 && index < static_cast<std::int64_t>(object.size());
    return inside ? object[static_cast<std::size_t>(index)] : undefined();
  }
  if (is_undefined(object)) throw TemplateError("a member of what is not defined");
  return undefined();
}

// object[begin:end] of lists and (by bytes, which templates use for ASCII alone) strings.
Value slice(const Value& object, const Value& begin, const Value& end) {
  if (!object.is_array() && !object.is_string())
    throw TemplateError("a slice of no list or string");
  const auto size = static_cast<std::int64_t>(
      object.is_array() ? object.size() : object.get_ref<const std::string&>().size());
  const auto bound = [size](const Value& value, std::int64_t otherwise) {
    if (value.is_null()) return otherwise;
    const std::int64_t index = integer(value);
    return std::clamp<std::int64_t>(index < 0 ? index + size : index, 0, size);
  };
  const std::int64_t first = bound(begin, 0);
  const std::int64_t last = std::max(first, bound(end, size));
  if (object.is_string()) {
    return object.get_ref<const std::string&>().substr(static_cast<std::size_t>(first),
                                                       static_cast<std::size_t>(last - first));
  }
  Value part = Value::array();
  for (std::int64_t i = first; i < last; ++i) part.push_back(object[static_cast<std::size_t>(i)]);
  return part;
}

}  // namespace

Value undefined() {
  return Value(Value::value_t::discarded);
}

bool is_undefined(const Value& value) {
  return value.is_discarded();
}

bool is_true(const Value& value) {
  if (is_undefined(value) || value.is_null()) return false;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.empty();
}

std::string to_text(const Value& value) {
  if (is_undefined(value)) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_number()) return value.dump();
  throw TemplateError("a list or dict is printed");
}

void Scope::set(const std::string& name, Value value) {
  frames_.back()[name] = std::move(value);
}

void Scope::set_member(const std::string& name, const std::string& member, Value value) {
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    const auto at = frame->find(name);
    if (at == frame->end()) continue;
    if (!at->is_object()) break;
    (*at)[member] = std::move(value);
    return;
  }
  throw TemplateError(fmt::format("{} is no namespace", name));
}

Value Scope::get(const std::string& name) const {
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    if (const auto at = frame->find(name); at != frame->end()) return *at;
  }
  return undefined();
}

void Scope::spend() {
  if (++steps_ > kMostSteps) throw TemplateError("it takes too many steps");
}

// Counts how deep expressions are nested, so that a hostile template cannot exhaust the stack.
class Nesting {
 public:
  explicit Nesting(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.depth_ > kMostDepth) throw TemplateError("an expression is nested too deep");
  }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  ~Nesting() { --parser_.depth_; }

 private:
  ExpressionParser& parser_;
};

struct ExpressionParser::Arguments {
  std::vector<Shared> values;
  std::vector<std::pair<std::string, Shared>> named;

  [[nodiscard]] std::vector<Value> evaluate(Scope& scope) const {
    std::vector<Value> evaluated;
    for (const Shared& value : values) evaluated.push_back(value->evaluate(scope));
    return evaluated;
  }
  [[nodiscard]] Value evaluate_named(Scope& scope) const {
    Value object = Value::object();
    for (const auto& [name, value] : named) object[name] = value->evaluate(scope);
    return object;
  }
};

ExpressionParser::ExpressionParser(std::string_view source) : lexemes_(read_lexemes(source)) {}

bool ExpressionParser::take(std::string_view symbol_or_word) {
  const Lexeme& lexeme = peek();
  const bool matches =
      (lexeme.kind == Kind::Symbol || lexeme.kind == Kind::Name) && lexeme.text == symbol_or_word;
  if (matches) ++at_;
  return matches;
}

void ExpressionParser::expect(std::string_view symbol_or_word) {
  if (!take(symbol_or_word)) {
    throw TemplateError(fmt::format("`{}` where `{}` should be", peek().text, symbol_or_word));
  }
}

std::string ExpressionParser::take_name() {
  if (peek().kind != Kind::Name) throw TemplateError(fmt::format("`{}` is no name", peek().text));
  return lexemes_[at_++].text;
}

void ExpressionParser::expect_end() const {
  if (!at_end()) throw TemplateError(fmt::format("`{}` was not expected", peek().text));
}

ExpressionPtr ExpressionParser::parse() {
  const Nesting nesting(*this);
  ExpressionPtr value = parse_or();
  if (!take("if")) return value;
  const Shared condition = parse_or();
  const Shared otherwise = take("else") ? Shared(parse()) : nullptr;
  return make([value = Shared(std::move(value)), condition, otherwise](Scope& scope) {
    if (is_true(condition->evaluate(scope))) return value->evaluate(scope);
    return otherwise ? otherwise->evaluate(scope) : undefined();
  });
}

ExpressionPtr ExpressionParser::parse_or() {
  ExpressionPtr left = parse_and();
  while (take("or")) {
    left = make([l = Shared(std::move(left)), r = Shared(parse_and())](Scope& scope) {
      Value value = l->evaluate(scope);
      return is_true(value) ? value : r->evaluate(scope);
    });
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  ExpressionPtr left = parse_not();
  while (take("and")) {
    left = make([l = Shared(std::move(left)), r = Shared(parse_not())](Scope& scope) {
      Value value = l->evaluate(scope);
      return is_true(value) ? r->evaluate(scope) : value;
    });
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!take("not")) return parse_comparison();
  const Nesting nesting(*this);
  return make([inner = Shared(parse_not())](Scope& scope) {
    return Value(!is_true(inner->evaluate(scope)));
  });
}

ExpressionPtr ExpressionParser::parse_comparison() {
  ExpressionPtr left = parse_sum();
  for (;;) {
    const std::string symbol = peek().text;
    if (peek().kind == Kind::Symbol && (symbol == "==" || symbol == "!=" || symbol == "<" ||
                                        symbol == ">" || symbol == "<=" || symbol == ">=")) {
      ++at_;
      left = make_binary(std::move(left), parse_sum(), [symbol](const Value& l, const Value& r) {
        return compare(symbol, l, r);
      });
    } else if (take("in")) {
      left = make_binary(std::move(left), parse_sum(),
                         [](const Value& l, const Value& r) { return Value(contains(r, l)); });
    } else if (take("not")) {
      expect("in");
      left = make_binary(std::move(left), parse_sum(),
                         [](const Value& l, const Value& r) { return Value(!contains(r, l)); });
    } else if (take("is")) {
      const bool negated = take("not");
      const std::string name = take_name();
      const Arguments arguments =
          peek().kind == Kind::Symbol && peek().text == "(" ? parse_arguments() : Arguments{};
      left = make([value = Shared(std::move(left)), name, negated, arguments](Scope& scope) {
        const Value tested = value->evaluate(scope);
        return Value(apply_test(name, tested, arguments.evaluate(scope)) != negated);
      });
    } else {
      return left;
    }
  }
}

ExpressionPtr ExpressionParser::parse_sum() {
  ExpressionPtr left = parse_product();
  for (;;) {
    if (take("+")) {
      left = make_binary(std::move(left), parse_product(), add);
    } else if (take("-")) {
      left = make_binary(std::move(left), parse_product(), subtract);
    } else if (take("~")) {
      left = make_binary(std::move(left), parse_product(), [](const Value& l, const Value& r) {
        return Value(concatenate(to_text(l), to_text(r)));
      });
    } else {
      return left;
    }
  }
}

ExpressionPtr ExpressionParser::parse_product() {
  ExpressionPtr left = parse_unary();
  for (;;) {
    if (take("*")) {
      left = make_binary(std::move(left), parse_unary(), multiply);
    } else if (take("%")) {
      left = make_binary(std::move(left), parse_unary(),
                         [](const Value& l, const Value& r) { return divide(l, r, true); });
    } else if (take("//")) {
      left = make_binary(std::move(left), parse_unary(),
                         [](const Value& l, const Value& r) { return divide(l, r, false); });
    } else {
      return left;
    }
  }
}

ExpressionPtr ExpressionParser::parse_unary() {
  if (!take("-")) return parse_postfix();
  const Nesting nesting(*this);
  return make([inner = Shared(parse_unary())](Scope& scope) {
    return subtract(Value(0), inner->evaluate(scope));
  });
}

ExpressionPtr ExpressionParser::parse_postfix() {
  ExpressionPtr value = parse_primary();
  for (;;) {
    if (take(".")) {
      const std::string name = take_name();
      if (peek().kind == Kind::Symbol && peek().text == "(") {
        value = make(
            [object = Shared(std::move(value)), name, arguments = parse_arguments()](Scope& scope) {
              const Value on = object->evaluate(scope);
              return call_method(on, name, arguments.evaluate(scope));
            });
      } else {
        value = make([object = Shared(std::move(value)), name](Scope& scope) {
          return member_of(object->evaluate(scope), name);
        });
      }
    } else if (take("[")) {
      value = parse_subscript(std::move(value));
    } else if (take("|")) {
      const std::string name = take_name();
      const Arguments arguments =
          peek().kind == Kind::Symbol && peek().text == "(" ? parse_arguments() : Arguments{};
      value = make([object = Shared(std::move(value)), name, arguments](Scope& scope) {
        const Value on = object->evaluate(scope);
        return apply_filter(name, on, arguments.evaluate(scope));
      });
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr object) {
  const auto none = [] { return make([](Scope&) { return Value(); }); };
  Shared begin = peek().text == ":" && peek().kind == Kind::Symbol ? none() : parse();
  if (!take(":")) {
    expect("]");
    return make_binary(std::move(object), make([begin](Scope& s) { return begin->evaluate(s); }),
                       member_of);
  }
  const bool open = peek().kind == Kind::Symbol && (peek().text == "]" || peek().text == ":");
  Shared end = open ? none() : parse();
  if (take(":")) {  // [::-1], the only step templates use
    expect("-");
    if (peek().text != "1") throw TemplateError("a slice with a step");
    ++at_;
    expect("]");
    return make([list = Shared(std::move(object)), begin, end](Scope& scope) {
      Value part = slice(list->evaluate(scope), begin->evaluate(scope), end->evaluate(scope));
      if (!part.is_array()) throw TemplateError("a string is reversed");
      std::reverse(part.begin(), part.end());
      return part;
    });
  }
  expect("]");
  return make([list = Shared(std::move(object)), begin, end](Scope& scope) {
    const Value on = list->evaluate(scope);
    const Value first = begin->evaluate(scope);
    return slice(on, first, end->evaluate(scope));
  });
}

std::vector<ExpressionPtr> ExpressionParser::parse_list(std::string_view end) {
  std::vector<ExpressionPtr> values;
  while (!take(end)) {
    values.push_back(parse());
    if (!take(",")) {
      expect(end);
      break;
    }
  }
  return values;
}

ExpressionParser::Arguments ExpressionParser::parse_arguments() {
  Arguments arguments;
  expect("(");
  while (!take(")")) {
    const bool named = peek().kind == Kind::Name && lexemes_[at_ + 1].text == "=" &&
                       lexemes_[at_ + 1].kind == Kind::Symbol;
    if (named) {
      std::string name = take_name();
      expect("=");
      arguments.named.emplace_back(std::move(name), parse());
    } else {
      arguments.values.emplace_back(parse());
    }
    if (!take(",")) {
      expect(")");
      break;
    }
  }
  return arguments;
}

ExpressionPtr ExpressionParser::parse_primary() {
  const Nesting nesting(*this);
  const auto constant = [](Value value) {
    return make([value = std::move(value)](Scope&) { return value; });
  };
  if (take("(")) {
    ExpressionPtr inner = parse();
    expect(")");
    return inner;
  }
  if (take("[")) {
    std::vector<Shared> elements;
    for (ExpressionPtr& element : parse_list("]")) elements.emplace_back(std::move(element));
    return make([elements](Scope& scope) {
      Value list = Value::array();
      for (const Shared& element : elements) list.push_back(element->evaluate(scope));
      return list;
    });
  }
  if (take("{")) {
    std::vector<std::pair<Shared, Shared>> entries;
    while (!take("}")) {
      Shared key = parse();
      expect(":");
      entries.emplace_back(key, parse());
      if (!take(",")) {
        expect("}");
        break;
      }
    }
    return make([entries](Scope& scope) {
      Value object = Value::object();
      for (const auto& [key, value] : entries)
        object[to_text(key->evaluate(scope))] = value->evaluate(scope);
      return object;
    });
  }
  const Lexeme lexeme = peek();
  if (lexeme.kind == Kind::End || lexeme.kind == Kind::Symbol) {
    throw TemplateError(lexeme.kind == Kind::End
                            ? "an expression ends early"
                            : fmt::format("`{}` was not expected", lexeme.text));
  }
  ++at_;
  if (lexeme.kind == Kind::Text) return constant(lexeme.text);
  if (lexeme.kind == Kind::Number) {
    std::int64_t number = 0;
    const char* end = lexeme.text.data() + lexeme.text.size();
    const auto read = std::from_chars(lexeme.text.data(), end, number);
    if (read.ec != std::errc() || read.ptr != end)
      throw TemplateError(fmt::format("{} is no integer", lexeme.text));
    return constant(number);
  }
  if (lexeme.text == "true" || lexeme.text == "True") return constant(true);
  if (lexeme.text == "false" || lexeme.text == "False") return constant(false);
  if (lexeme.text == "none" || lexeme.text == "None") return constant(nullptr);
  if (peek().kind == Kind::Symbol && peek().text == "(") {
    return make([name = lexeme.text, arguments = parse_arguments()](Scope& scope) {
      return call_function(name, arguments.evaluate(scope), arguments.evaluate_named(scope));
    });
  }
  return make([name = lexeme.text](Scope& scope) { return scope.get(name); });
}

}  // namespace plena::chat
