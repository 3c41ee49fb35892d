// UTF-8 as tokenizers need it: characters one by one, repair, normal forms.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plena {

/// Bytes of the character at the front of valid UTF-8.
std::size_t character_bytes(std::string_view text);

/// The text with every byte that is no part of valid UTF-8 replaced by U+FFFD.
std::string repair_utf8(std::string_view text);

/// Appends a character.
void append_utf8(std::string& text, char32_t character);
/// The character at the front of valid UTF-8.
char32_t first_character(std::string_view text);

enum class NormalForm { C, D, Kc, Kd };
/// Valid UTF-8 in a Unicode normal form.
std::string normal_form(std::string_view text, NormalForm form);
/// Every character in lower case.
std::string lower_case(std::string_view text);

/// White space as Unicode defines it.
bool is_space(char32_t character);
/// ASCII punctuation and symbols, and what Unicode calls punctuation.
bool is_punctuation(char32_t character);
/// Numbers of any kind: category N.
bool is_numeric(char32_t character);
/// Letters, digits, marks, connectors and joiners: \w of UTS 18.
bool is_word(char32_t character);

/// Bytes of the grapheme (what a reader takes for one character) at the front of valid UTF-8.
std::size_t grapheme_bytes(std::string_view text);

}  // namespace plena
