#include "plena/base/error.h"

namespace plena {

namespace {

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kCyan = "\x1b[36m";
constexpr std::string_view kReset = "\x1b[0m";

std::string paint(std::string_view text, std::string_view style, bool color) {
  return color ? fmt::format("{}{}{}", style, text, kReset) : std::string(text);
}

std::string place_prefix(const SourcePlace& place) {
  if (place.file.empty()) return {};
  if (place.line == 0) return place.file + ": ";
  if (place.column == 0) return fmt::format("{}:{}: ", place.file, place.line);
  return fmt::format("{}:{}:{}: ", place.file, place.line, place.column);
}

// Tabs of the source line are kept, so that the caret lines up on any terminal.
std::string caret_line(const SourcePlace& place) {
  std::string caret;
  for (std::uint32_t i = 0; i + 1 < place.column; ++i) {
    caret += i < place.source_line.size() && place.source_line[i] == '\t' ? '\t' : ' ';
  }
  caret += '^';
  if (place.length > 1) caret.append(place.length - 1, '~');
  return caret;
}

}  // namespace

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::Trap:
    case ErrorCode::Mismatch:
      return 1;
    case ErrorCode::Interrupted:
      return 130;
    default:
      return 2;
  }
}

std::string Error::render(bool color) const {
  std::string text = paint(place_prefix(place), kBold, color);
  text += paint("error: ", kRed, color);
  text += message;
  if (!place.source_line.empty() && place.column > 0) {
    text += "\n  " + place.source_line + "\n  " + paint(caret_line(place), kRed, color);
  }
  if (!hint.empty()) text += "\n" + paint("  hint: ", kCyan, color) + hint;
  return text;
}

}  // namespace plena
