// The text of a template's expression, cut into names, numbers, strings and symbols.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plena::chat {

/// A piece of an expression's text.
struct Lexeme {
  enum class Kind { End, Name, Number, Text, Symbol };
  Kind kind = Kind::End;
  std::string text;  // of a Text, what it stands for
};

/// The pieces, an End behind them. Throws TemplateError for a string without an end and for an
/// expression of very many pieces.
std::vector<Lexeme> read_lexemes(std::string_view source);

}  // namespace plena::chat
