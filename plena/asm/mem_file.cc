#include "plena/asm/mem_file.h"

#include <algorithm>
#include <array>

#include "plena/asm/syntax_error.h"
#include "plena/base/file_reader.h"

namespace plena {

namespace {

constexpr std::size_t kWordsPerPiece = std::size_t{1} << 15;
constexpr std::size_t kLineBytes = 11;  // 0x, eight digits, line end
constexpr std::size_t kLongestToken = 256;
constexpr std::uint8_t kNoDigit = 0xFF;

constexpr std::array<std::uint8_t, 256> hexadecimal_digits() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  std::uint8_t value = 0;
  for (const unsigned char digit : std::string_view("0123456789")) values[digit] = value++;
  for (const unsigned char digit : std::string_view("abcdef")) {
    values[digit] = value;
    values[digit & ~0x20U] = value++;  // its upper case
  }
  return values;
}
constexpr auto kDigits = hexadecimal_digits();

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// The pieces of a file, cut anywhere, to words.
class MemReader {
 public:
  explicit MemReader(std::string source_name) : source_name_(std::move(source_name)) {}

  void reserve(std::uint64_t bytes) {
    // Dense text has eight digits and a space; pages nobody writes cost nothing.
    constexpr std::uint64_t kMostWords = std::uint64_t{1} << 28;
    words_.reserve(static_cast<std::size_t>(std::min(bytes / 9, kMostWords)));
  }

  Status feed(std::string_view text) {
    for (const char c : text) {
      if (is_space(c)) {
        if (auto done = end_token(); !done) return done;
        ++column_;
        if (c == '\n') {
          ++line_;
          column_ = 1;
        }
      } else {
        if (token_.empty()) token_column_ = column_;
        token_ += c;
        if (token_.size() == kLongestToken) return bad_token();
        ++column_;
      }
    }
    return {};
  }

  Result<std::vector<std::uint32_t>> finish() {
    if (auto done = end_token(); !done) return tl::unexpected(done.error());
    return std::move(words_);
  }

 private:
  Status end_token() {
    if (token_.empty()) return {};
    std::string_view digits = token_;
    if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
    std::uint64_t word = 0;
    bool valid = !digits.empty();
    for (const char c : digits) {
      const auto digit = kDigits[static_cast<unsigned char>(c)];
      valid = valid && digit != kNoDigit && word <= (UINT32_MAX >> 4);
      word = word << 4 | digit;
    }
    if (!valid) return bad_token();
    words_.push_back(static_cast<std::uint32_t>(word));
    token_.clear();
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> bad_token() const {
    Error error{ErrorCode::Format,
                fmt::format("'{}' is not a word of 32 bits", quotable(token_)),
                {},
                "hexadecimal, up to eight digits, as in 0x00008401"};
    error.place.file = source_name_;
    error.place.line = line_;
    error.place.column = token_column_;
    return tl::unexpected(std::move(error));
  }

  std::string source_name_;
  std::vector<std::uint32_t> words_;
  std::string token_;
  std::uint32_t line_ = 1;
  std::uint32_t column_ = 1;
  std::uint32_t token_column_ = 1;
};

void append_line(std::string& out, std::uint32_t word) {
  constexpr std::string_view kHexadecimal = "0123456789ABCDEF";
  char line[kLineBytes] = {'0', 'x'};
  for (std::size_t i = 0; i < 8; ++i) line[2 + i] = kHexadecimal[word >> (28 - 4 * i) & 0xF];
  line[kLineBytes - 1] = '\n';
  out.append(line, kLineBytes);
}

}  // namespace

Result<std::vector<std::uint32_t>> read_mem_file(const std::string& path) {
  auto file = FileReader::open(path);
  if (!file) return forward_error(file);
  MemReader reader(path);
  reader.reserve(file->size());
  for (;;) {
    const auto piece = file->next();
    if (!piece) return tl::unexpected(piece.error());
    if (piece->empty()) return reader.finish();
    if (auto fed = reader.feed(*piece); !fed) return tl::unexpected(fed.error());
  }
}

Result<std::vector<std::uint32_t>> parse_mem(std::string_view text,
                                             const std::string& source_name) {
  MemReader reader(source_name);
  if (auto fed = reader.feed(text); !fed) return tl::unexpected(fed.error());
  return reader.finish();
}

std::string mem_text(std::span<const std::uint32_t> words) {
  std::string out;
  out.reserve(words.size() * kLineBytes);
  for (const auto word : words) append_line(out, word);
  return out;
}

Status write_mem(std::span<const std::uint32_t> words,
                 const std::function<Status(std::string_view)>& sink) {
  for (std::size_t begin = 0; begin < words.size(); begin += kWordsPerPiece) {
    const auto piece = words.subspan(begin, std::min(kWordsPerPiece, words.size() - begin));
    if (auto sent = sink(mem_text(piece)); !sent) return sent;
  }
  return {};
}

}  // namespace plena
