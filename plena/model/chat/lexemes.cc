#include "plena/model/chat/lexemes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

#include "plena/model/chat/expression.h"

namespace plena::chat {

namespace {

constexpr std::size_t kMostLexemes = 1000;  // of an expression: a + a + … is as deep as it is long

using Kind = Lexeme::Kind;

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

char unescaped(char c) {
  return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
}

// The string whose opening quote is at `at`; moves behind its end.
Lexeme read_text(std::string_view source, std::size_t& at) {
  const char quote = source[at];
  std::string text;
  for (++at; at < source.size() && source[at] != quote; ++at) {
    const bool escapes = source[at] == '\\' && at + 1 < source.size();
    text += escapes ? unescaped(source[++at]) : source[at];
  }
  if (at >= source.size()) throw TemplateError("a string has no end");
  ++at;
  return {Kind::Text, text};
}

Lexeme read_word(std::string_view source, std::size_t& at) {
  const std::size_t begin = at;
  while (at < source.size() && is_name(source[at])) ++at;
  return {is_digit(source[begin]) ? Kind::Number : Kind::Name,
          std::string(source.substr(begin, at - begin))};
}

Lexeme read_symbol(std::string_view source, std::size_t& at) {
  static constexpr std::array<std::string_view, 5> kPairs{"==", "!=", "<=", ">=", "//"};
  const bool pair = std::ranges::find(kPairs, source.substr(at, 2)) != kPairs.end();
  const std::string_view symbol = source.substr(at, pair ? 2 : 1);
  at += symbol.size();
  return {Kind::Symbol, std::string(symbol)};
}

}  // namespace

std::vector<Lexeme> read_lexemes(std::string_view source) {
  std::vector<Lexeme> lexemes;
  for (std::size_t at = 0; at < source.size();) {
    if (lexemes.size() > kMostLexemes) throw TemplateError("an expression is too long");
    const char c = source[at];
    if (is_space(c)) {
      ++at;
    } else if (c == '\'' || c == '"') {
      lexemes.push_back(read_text(source, at));
    } else {
      lexemes.push_back(is_name(c) ? read_word(source, at) : read_symbol(source, at));
    }
  }
  lexemes.push_back({});
  return lexemes;
}

}  // namespace plena::chat
