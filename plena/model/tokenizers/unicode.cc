#include "plena/model/tokenizers/unicode.h"

#include <cstdlib>
#include <memory>

#include <utf8proc.h>

namespace plena {

namespace {

// The character at the front and its bytes, -1 and 1 where there is no valid one.
struct Decoded {
  utf8proc_int32_t character;
  std::size_t bytes;
};

Decoded decode(std::string_view text) {
  utf8proc_int32_t character = -1;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                      static_cast<utf8proc_ssize_t>(text.size()), &character);
  return bytes > 0 ? Decoded{character, static_cast<std::size_t>(bytes)} : Decoded{-1, 1};
}

utf8proc_category_t category(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

std::string map(std::string_view text, unsigned options) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto bytes = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                  static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                  static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (bytes < 0) return std::string(text);
  return {reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(bytes)};
}

}  // namespace

std::size_t character_bytes(std::string_view text) {
  return decode(text).bytes;
}

std::string repair_utf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  while (!text.empty()) {
    const Decoded decoded = decode(text);
    if (decoded.character < 0) {
      repaired += "\xEF\xBF\xBD";
    } else {
      repaired += text.substr(0, decoded.bytes);
    }
    text.remove_prefix(decoded.bytes);
  }
  return repaired;
}

void append_utf8(std::string& text, char32_t character) {
  utf8proc_uint8_t bytes[4];
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
}

char32_t first_character(std::string_view text) {
  const Decoded decoded = decode(text);
  return decoded.character < 0 ? U'\uFFFD' : static_cast<char32_t>(decoded.character);
}

std::string normal_form(std::string_view text, NormalForm form) {
  unsigned options = UTF8PROC_STABLE;
  options |=
      form == NormalForm::C || form == NormalForm::Kc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::Kc || form == NormalForm::Kd) options |= UTF8PROC_COMPAT;
  return map(text, options);
}

std::string lower_case(std::string_view text) {
  std::string lower;
  while (!text.empty()) {
    const Decoded decoded = decode(text);
    append_utf8(lower, static_cast<char32_t>(utf8proc_tolower(decoded.character)));
    text.remove_prefix(decoded.bytes);
  }
  return lower;
}

bool is_space(char32_t c) {
  if (c >= 9 && c <= 13) return true;
  if (c == 0x85) return true;
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL ||
         kind == UTF8PROC_CATEGORY_ZP;
}

bool is_punctuation(char32_t c) {
  const bool ascii = (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
                     (c >= 123 && c <= 126);
  const auto kind = category(c);
  return ascii || (kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO);
}

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_word(char32_t c) {
  const auto kind = category(c);
  return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_ND) ||
         kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D;
}

std::size_t grapheme_bytes(std::string_view text) {
  std::size_t bytes = character_bytes(text);
  utf8proc_int32_t state = 0;
  auto before = static_cast<utf8proc_int32_t>(first_character(text));
  while (bytes < text.size()) {
    const auto after = static_cast<utf8proc_int32_t>(first_character(text.substr(bytes)));
    if (utf8proc_grapheme_break_stateful(before, after, &state)) break;
    bytes += character_bytes(text.substr(bytes));
    before = after;
  }
  return bytes;
}

}  // namespace plena
