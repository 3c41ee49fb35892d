#include "plena/model/tokenizers/charsmap.h"

#include <cstring>

#include "plena/model/base64.h"
#include "plena/model/tokenizers/unicode.h"

namespace plena {

namespace {

constexpr std::size_t kLongGrapheme = 6;  // bytes, from which on only characters are replaced

// The units of a darts-clone double array.
bool has_leaf(std::uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
std::uint32_t leaf_value(std::uint32_t unit) {
  return unit & 0x7FFFFFFFU;
}
std::uint32_t label(std::uint32_t unit) {
  return unit & 0x800000FFU;
}
std::uint32_t offset(std::uint32_t unit) {
  return unit >> 10 << ((unit & 1U << 9) >> 6);
}

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view base64) {
  const auto bytes = decode_base64(base64);
  std::uint32_t trie_bytes = 0;
  if (bytes && bytes->size() >= sizeof trie_bytes) {
    std::memcpy(&trie_bytes, bytes->data(), sizeof trie_bytes);
  }
  if (!bytes || bytes->size() < sizeof trie_bytes + trie_bytes || trie_bytes % 4 != 0 ||
      trie_bytes == 0) {
    return fail(ErrorCode::Format, "a precompiled normalizer is damaged");
  }
  Charsmap map;
  map.trie_.resize(trie_bytes / 4);
  std::memcpy(map.trie_.data(), bytes->data() + 4, trie_bytes);
  map.replacements_.assign(bytes->begin() + 4 + trie_bytes, bytes->end());
  return map;
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  std::size_t node = offset(trie_[0]);
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    node ^= byte;
    if (byte == 0 || node >= trie_.size() || label(trie_[node]) != byte) return {};
    const std::uint32_t unit = trie_[node];
    node ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= trie_.size() || leaf_value(trie_[node]) >= replacements_.size()) return {};
    // The shortest rule that matches, as the tokenizers library takes it.
    const auto replacement = std::string_view(replacements_).substr(leaf_value(trie_[node]));
    return replacement.substr(0, replacement.find('\0'));
  }
  return {};
}

std::string Charsmap::apply(std::string_view text) const {
  std::string mapped;
  while (!text.empty()) {
    std::string_view grapheme = text.substr(0, grapheme_bytes(text));
    text.remove_prefix(grapheme.size());
    if (grapheme.size() < kLongGrapheme) {
      if (const auto replacement = find(grapheme)) {
        mapped += *replacement;
        continue;
      }
    }
    while (!grapheme.empty()) {
      const auto character = grapheme.substr(0, character_bytes(grapheme));
      grapheme.remove_prefix(character.size());
      mapped += find(character).value_or(character);
    }
  }
  return mapped;
}

}  // namespace plena
