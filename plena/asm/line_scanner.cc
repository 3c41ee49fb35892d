#include "plena/asm/line_scanner.h"

#include <cstdint>

namespace plena {

namespace {

enum CharClass : std::uint8_t { Other, Space, Comma, Comment, Slash };

constexpr std::array<std::uint8_t, 256> char_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (const char c : {' ', '\t', '\r', '\v', '\f'}) classes[static_cast<unsigned char>(c)] = Space;
  classes[','] = Comma;
  classes[';'] = Comment;
  classes['#'] = Comment;
  classes['/'] = Slash;
  return classes;
}
constexpr auto kClasses = char_classes();

std::uint8_t class_of(const char* at) {
  return kClasses[static_cast<unsigned char>(*at)];
}

bool starts_comment(const char* at, const char* end) {
  const auto c = class_of(at);
  return c == Comment || (c == Slash && at + 1 < end && at[1] == '/');
}

const char* skip_space(const char* at, const char* end) {
  while (at < end && class_of(at) == Space) ++at;
  return at;
}

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

void add_operand(TextLine& line, std::string_view operand) {
  if (line.operand_count < kOperandSlots) line.operands[line.operand_count] = operand;
  ++line.operand_count;
}

const char* skip_plain(const char* at, const char* end) {
  while (at < end && class_of(at) == Other) ++at;
  return at;
}

// One past the last character of the operand at `at`, spaces behind it not counted; `at` moves to
// what ends it: a comma, a comment or the end.
const char* operand_end(const char*& at, const char* end) {
  for (;;) {
    at = skip_plain(at, end);
    const char* last = at;
    at = skip_space(at, end);
    if (at == end || class_of(at) == Comma || starts_comment(at, end)) return last;
    if (class_of(at) == Slash) ++at;  // a division
  }
}

// Operands from `at` to the comment or the end; returns where they end.
const char* scan_operands(TextLine& line, const char* at, const char* end) {
  const char* after_comma = at;
  for (;;) {
    at = skip_space(at, end);
    const char* begin = at;
    const char* last = operand_end(at, end);
    const bool closed = at == end || class_of(at) != Comma;
    // An operand missing at the end of the line is missing right behind its comma.
    add_operand(line,
                closed && last == begin ? between(after_comma, after_comma) : between(begin, last));
    if (closed) return at;
    after_comma = ++at;
  }
}

}  // namespace

TextLine scan_line(std::string_view text) {
  TextLine line;
  line.text = text;
  const char* at = text.data();
  const char* end = at + text.size();
  at = skip_space(at, end);
  const char* begin = at;
  while (at < end && class_of(at) != Space && !starts_comment(at, end)) ++at;
  line.mnemonic = between(begin, at);
  at = skip_space(at, end);
  if (at < end && !line.mnemonic.empty() && !starts_comment(at, end)) {
    at = scan_operands(line, at, end);
  }
  if (at < end) line.comment = between(at, end);
  return line;
}

}  // namespace plena
