#include <array>
#include <utility>

#include "plena/model/tokenizers/json_text.h"
#include "plena/model/tokenizers/regex.h"
#include "plena/model/tokenizers/text_steps.h"
#include "plena/model/tokenizers/unicode.h"

namespace plena {

namespace {

using nlohmann::json;
using Pieces = std::vector<TextPiece>;

// Words and what lies between them, with Unicode's notion of \w (UTS 18), which PCRE2's lacks marks
// of.
constexpr const char* kWordsPattern =
    "[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200C}\\x{200D}]+"
    "|[^\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200C}\\x{200D}\\s]+";

// A part of a piece that is a separator (a match of the pattern) or lies between two.
struct Part {
  std::size_t begin;
  std::size_t end;
  bool separator;
};

using FindParts = std::function<std::vector<Part>(std::string_view)>;

enum class SplitBehavior : std::uint8_t {
  Isolated,
  Removed,
  MergedWithPrevious,
  MergedWithNext,
  Contiguous,
};

Result<SplitBehavior> parse_behavior(const std::string& name) {
  if (name == "Isolated") return SplitBehavior::Isolated;
  if (name == "Removed") return SplitBehavior::Removed;
  if (name == "MergedWithPrevious") return SplitBehavior::MergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::MergedWithNext;
  if (name == "Contiguous") return SplitBehavior::Contiguous;
  return unknown_kind("split behavior", name,
                      "Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous");
}

// Puts separators where `behavior` wants them.
std::vector<Part> arrange(const std::vector<Part>& parts, SplitBehavior behavior) {
  std::vector<Part> arranged;
  bool next_joins = false;
  for (const Part& part : parts) {
    bool joins = false;
    switch (behavior) {
      case SplitBehavior::Isolated:
        break;
      case SplitBehavior::Removed:
        if (part.separator) continue;
        break;
      case SplitBehavior::MergedWithPrevious:
        joins = part.separator && !arranged.empty() && !arranged.back().separator;
        break;
      case SplitBehavior::MergedWithNext:
        joins = next_joins && !part.separator;
        next_joins = part.separator;
        break;
      case SplitBehavior::Contiguous:
        joins = !arranged.empty() && arranged.back().separator == part.separator;
        break;
    }
    if (joins && behavior != SplitBehavior::Contiguous) {
      arranged.back().end = part.end;
      // What a separator joined is a separator to the next one, so that "a--" is "a-", "-".
      arranged.back().separator = behavior == SplitBehavior::MergedWithPrevious;
    } else if (joins) {
      arranged.back().end = part.end;
    } else {
      arranged.push_back(part);
    }
  }
  return arranged;
}

PreTokenizer make_splitter(FindParts find, SplitBehavior behavior) {
  return [find = std::move(find), behavior](const Pieces& pieces) {
    Pieces split;
    for (const TextPiece& piece : pieces) {
      for (const Part& part : arrange(find(piece.text), behavior)) {
        split.push_back({piece.text.substr(part.begin, part.end - part.begin),
                         piece.at_start && part.begin == 0});
      }
    }
    return split;
  };
}

FindParts find_by_regex(Regex regex, bool invert) {
  return [regex = std::move(regex), invert](std::string_view text) {
    std::vector<Part> parts;
    std::size_t at = 0;
    for (const Regex::Match& match : regex.find_all(text)) {
      if (match.begin > at) parts.push_back({at, match.begin, invert});
      parts.push_back({match.begin, match.end, !invert});
      at = match.end;
    }
    if (at < text.size()) parts.push_back({at, text.size(), invert});
    return parts;
  };
}

// Every character that `is_separator` accepts is a separator of its own.
FindParts find_characters(bool (*is_separator)(char32_t)) {
  return [is_separator](std::string_view text) {
    std::vector<Part> parts;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = at + character_bytes(text.substr(at));
      const bool separator = is_separator(first_character(text.substr(at)));
      if (!separator && !parts.empty() && !parts.back().separator) {
        parts.back().end = end;
      } else {
        parts.push_back({at, end, separator});
      }
      at = end;
    }
    return parts;
  };
}

std::string quote_pattern(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    const bool plain = static_cast<unsigned char>(c) >= 0x80 || (c >= '0' && c <= '9') ||
                       (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!plain) quoted += '\\';
    quoted += c;
  }
  return quoted;
}

Result<PreTokenizer> make_split(const json& description) {
  const json& pattern = description.at("pattern");
  auto regex = Regex::compile(pattern.contains("String")
                                  ? quote_pattern(pattern.at("String").get<std::string>())
                                  : pattern.at("Regex").get<std::string>());
  if (!regex) return forward_error(regex);
  const auto behavior = parse_behavior(description.at("behavior").get<std::string>());
  if (!behavior) return tl::unexpected(behavior.error());
  return make_splitter(find_by_regex(*regex, flag_of(description, "invert", false)), *behavior);
}

Result<PreTokenizer> make_byte_level(const json& description) {
  const bool adds_space = flag_of(description, "add_prefix_space", true);
  PreTokenizer split = [](Pieces pieces) { return pieces; };
  if (flag_of(description, "use_regex", true)) {
    auto regex = Regex::compile(kGpt2Pattern);
    if (!regex) return forward_error(regex);
    split = make_splitter(find_by_regex(*regex, false), SplitBehavior::Isolated);
  }
  return [split, adds_space](Pieces pieces) {
    for (TextPiece& piece : pieces) {
      if (adds_space && !piece.text.starts_with(' ')) piece.text.insert(0, " ");
    }
    pieces = split(std::move(pieces));
    for (TextPiece& piece : pieces) piece.text = bytes_to_alphabet(piece.text);
    return pieces;
  };
}

Result<PreTokenizer> make_metaspace(const json& description) {
  const std::string mark = member(description, "replacement").is_string()
                               ? member(description, "replacement").get<std::string>()
                               : "\u2581";
  std::string scheme = flag_of(description, "add_prefix_space", true) ? "always" : "never";
  if (member(description, "prepend_scheme").is_string()) {
    scheme = member(description, "prepend_scheme").get<std::string>();
  }
  auto regex = Regex::compile(quote_pattern(mark));
  if (!regex) return forward_error(regex);
  const PreTokenizer split =
      flag_of(description, "split", true)
          ? make_splitter(find_by_regex(*regex, false), SplitBehavior::MergedWithNext)
          : PreTokenizer([](Pieces pieces) { return pieces; });
  return [=](Pieces pieces) {
    for (TextPiece& piece : pieces) {
      piece.text = replace_all(piece.text, " ", mark);
      const bool prepends = scheme == "always" || (scheme == "first" && piece.at_start);
      if (prepends && !piece.text.starts_with(mark)) piece.text.insert(0, mark);
    }
    return split(std::move(pieces));
  };
}

Result<PreTokenizer> make_sequence(const json& description) {
  std::vector<PreTokenizer> steps;
  for (const json& step : member(description, "pretokenizers")) {
    auto made = make_pre_tokenizer(step);
    if (!made) return made;
    steps.push_back(*std::move(made));
  }
  return [steps = std::move(steps)](Pieces pieces) {
    for (const PreTokenizer& step : steps) pieces = step(std::move(pieces));
    return pieces;
  };
}

}  // namespace

Result<PreTokenizer> make_pre_tokenizer(const json& description) {
  if (description.is_null()) return [](Pieces pieces) { return pieces; };
  const std::string type = type_of(description);
  if (type == "Sequence") return make_sequence(description);
  if (type == "Split") return make_split(description);
  if (type == "ByteLevel") return make_byte_level(description);
  if (type == "Metaspace") return make_metaspace(description);
  if (type == "Digits") {
    return make_splitter(find_characters(is_numeric),
                         flag_of(description, "individual_digits", false)
                             ? SplitBehavior::Isolated
                             : SplitBehavior::Contiguous);
  }
  if (type == "Punctuation") {
    return make_splitter(find_characters(is_punctuation), SplitBehavior::Isolated);
  }
  if (type == "WhitespaceSplit") {
    return make_splitter(find_characters(is_space), SplitBehavior::Removed);
  }
  if (type == "Whitespace") {
    auto regex = Regex::compile(kWordsPattern);
    if (!regex) return forward_error(regex);
    return make_splitter(find_by_regex(*regex, true), SplitBehavior::Removed);
  }
  return unknown_kind("pre-tokenizer", type,
                      "Sequence, Split, ByteLevel, Metaspace, Digits, Punctuation, Whitespace, "
                      "WhitespaceSplit");
}

namespace {

// GPT-2's alphabet: bytes that print are themselves, the others follow from U+0100 on.
struct Alphabet {
  std::array<char32_t, 256> characters{};
  std::array<int, 512> bytes{};  // -1: none

  Alphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const bool prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
      characters[byte] = prints ? static_cast<char32_t>(byte) : next++;
      bytes[characters[byte]] = static_cast<int>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet kAlphabet;
  return kAlphabet;
}

}  // namespace

std::string bytes_to_alphabet(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    append_utf8(text, alphabet().characters[static_cast<unsigned char>(byte)]);
  }
  return text;
}

std::string alphabet_to_bytes(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const auto character = text.substr(0, character_bytes(text));
    text.remove_prefix(character.size());
    const char32_t code = first_character(character);
    const int byte = code < alphabet().bytes.size() ? alphabet().bytes[code] : -1;
    if (byte < 0) {
      bytes += character;
    } else {
      bytes += static_cast<char>(byte);
    }
  }
  return bytes;
}

}  // namespace plena
