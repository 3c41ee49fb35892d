#include "plena/model/tokenizers/added_tokens.h"

#include <algorithm>
#include <utility>

#include "plena/model/tokenizers/unicode.h"

namespace plena {

namespace {

// Start of the character that ends at `end`.
std::size_t previous_character(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  const bool word_before =
      begin > 0 && is_word(first_character(text.substr(previous_character(text, begin))));
  const bool word_after = end < text.size() && is_word(first_character(text.substr(end)));
  return !word_before && !word_after;
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  if (token.text.empty()) return;
  auto& bucket = tokens_[static_cast<unsigned char>(token.text[0])];
  const auto place = std::find_if(bucket.begin(), bucket.end(), [&](const AddedToken& other) {
    return other.text.size() < token.text.size();
  });
  bucket.insert(place, std::move(token));
}

const AddedToken* AddedTokens::find_at(std::string_view text, std::size_t at) const {
  const auto rest = text.substr(at);
  for (const AddedToken& token : tokens_[static_cast<unsigned char>(rest[0])]) {
    if (!rest.starts_with(token.text)) continue;
    // The longest alone is looked at; one inside a word is no token.
    const bool alone = !token.single_word || stands_alone(text, at, at + token.text.size());
    return alone ? &token : nullptr;
  }
  return nullptr;
}

std::vector<TextSection> AddedTokens::split(std::string_view text) const {
  std::vector<TextSection> sections;
  std::size_t done = 0;  // the text up to here is in sections
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* token = find_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + token->text.size();
    while (token->strips_left && begin > done) {
      const std::size_t before = previous_character(text, begin);
      if (before < done || !is_space(first_character(text.substr(before)))) break;
      begin = before;
    }
    while (token->strips_right && end < text.size() &&
           is_space(first_character(text.substr(end)))) {
      end += character_bytes(text.substr(end));
    }
    if (begin > done) sections.push_back({text.substr(done, begin - done), {}});
    sections.push_back({text.substr(begin, end - begin), token->id});
    at = done = end;
  }
  if (done < text.size()) sections.push_back({text.substr(done), {}});
  return sections;
}

}  // namespace plena
