// SentencePiece's compiled normalisation rules: a trie of the strings to replace, and their
// replacements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plena/base/error.h"

namespace plena {

class Charsmap {
 public:
  /// Reads the base64 of tokenizer.json: u32 bytes of the trie, the trie (a double array of u32
  /// units), then the replacements, each ended by a zero byte.
  static Result<Charsmap> parse(std::string_view base64);

  /// Replaces graphemes, or their characters one by one where a grapheme has no rule or is long.
  [[nodiscard]] std::string apply(std::string_view text) const;

 private:
  [[nodiscard]] std::optional<std::string_view> find(std::string_view text) const;

  std::vector<std::uint32_t> trie_;
  std::string replacements_;
};

}  // namespace plena
