// Lines out of text that comes in pieces; only a line that is not complete yet is kept.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace plena {

/// Longer lines are no program text. They are cut to one character more, so that whoever gets them
/// can tell, and never kept whole.
inline constexpr std::size_t kLongestLine = std::size_t{1} << 20;

class LineSplitter {
 public:
  /// Calls on_line(text) for every line that ends in this piece, without its `\n`.
  template <class OnLine>
  void feed(std::string_view text, OnLine&& on_line) {
    for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;) {
      complete(text.substr(0, end), on_line);
      text.remove_prefix(end + 1);
    }
    keep(text);
  }

  /// The last line, where the text does not end with a line end.
  template <class OnLine>
  void finish(OnLine&& on_line) {
    if (!pending_.empty()) complete({}, on_line);
  }

  /// The line that is not complete yet is already longer than any line may be: an endless file.
  [[nodiscard]] bool too_long() const { return pending_.size() > kLongestLine; }

 private:
  void keep(std::string_view text) {
    pending_ += text.substr(0, kLongestLine + 1 - pending_.size());
  }

  template <class OnLine>
  void complete(std::string_view text, OnLine&& on_line) {
    std::string line;
    if (!pending_.empty()) {
      keep(text);
      line = std::exchange(pending_, {});
      text = line;
    }
    on_line(text.substr(0, kLongestLine + 1));
  }

  std::string pending_;
};

/// The text behind the mark some editors put before UTF-8.
inline std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

}  // namespace plena
