// Expressions of templates: parsed once into a tree, evaluated against the variables in sight.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "plena/model/chat/lexemes.h"

namespace plena::chat {

/// A value of a template. json::value_t::discarded stands for what is not defined.
using Value = nlohmann::ordered_json;

/// What is wrong with a template, thrown up to render_chat().
class TemplateError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr std::size_t kMostText = std::size_t{16} << 20;  // bytes of a string

Value undefined();
bool is_undefined(const Value& value);
bool is_true(const Value& value);
/// As `{{ value }}` prints it.
std::string to_text(const Value& value);

/// Variables, innermost scope last.
class Scope {
 public:
  Scope() : frames_(1) {}
  void push() { frames_.emplace_back(Value::object()); }
  void pop() { frames_.pop_back(); }
  void set(const std::string& name, Value value);
  /// Sets a member of an object that namespace() made.
  void set_member(const std::string& name, const std::string& member, Value value);
  [[nodiscard]] Value get(const std::string& name) const;
  /// Counts one step of work; too many are an error.
  void spend();

 private:
  std::vector<Value> frames_{Value::object()};
  std::size_t steps_ = 0;
};

class Expression {
 public:
  Expression() = default;
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  virtual ~Expression() = default;
  [[nodiscard]] virtual Value evaluate(Scope& scope) const = 0;
};
using ExpressionPtr = std::unique_ptr<const Expression>;

/// Reads expressions and the words of statements from the inside of `{{ }}` and `{% %}`.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view source);

  ExpressionPtr parse();     // a whole expression, with the conditional one
  ExpressionPtr parse_or();  // without it
  [[nodiscard]] bool at_end() const { return lexemes_[at_].kind == Lexeme::Kind::End; }
  bool take(std::string_view symbol_or_word);
  void expect(std::string_view symbol_or_word);
  std::string take_name();
  void expect_end() const;

 private:
  friend class Nesting;
  [[nodiscard]] const Lexeme& peek() const { return lexemes_[at_]; }
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_product();
  ExpressionPtr parse_unary();
  ExpressionPtr parse_postfix();
  ExpressionPtr parse_primary();
  ExpressionPtr parse_subscript(ExpressionPtr object);
  std::vector<ExpressionPtr> parse_list(std::string_view end);
  struct Arguments;
  Arguments parse_arguments();

  std::vector<Lexeme> lexemes_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

/// Filters, tests, methods and functions by name; an unknown name is an error.
Value apply_filter(const std::string& name, const Value& value,
                   const std::vector<Value>& arguments);
bool apply_test(const std::string& name, const Value& value, const std::vector<Value>& arguments);
Value call_method(const Value& object, const std::string& name,
                  const std::vector<Value>& arguments);
Value call_function(const std::string& name, const std::vector<Value>& arguments,
                    const Value& named);

}  // namespace plena::chat
