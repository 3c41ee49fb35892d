// The steps between a text and the pieces a tokenizer's model sees, and back from tokens to text,
// as tokenizer.json describes them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plena/base/error.h"

namespace plena {

/// Rewrites a text, valid UTF-8 to valid UTF-8.
using Normalizer = std::function<std::string(std::string)>;

/// A part of the text on the way to the model.
struct TextPiece {
  std::string text;
  bool at_start = false;  // of the whole text
};

/// Cuts pieces into smaller ones, and may rewrite them.
using PreTokenizer = std::function<std::vector<TextPiece>(std::vector<TextPiece>)>;

/// The text of one token; `first` says that nothing came before it.
using TokenDecoder = std::function<std::string(std::string_view token, bool first)>;

/// From the members `normalizer`, `pre_tokenizer` and `decoder`; null does nothing. An unknown kind
/// is an error that names it and lists the known ones; a member of the wrong type one of JSON,
/// which the caller catches.
Result<Normalizer> make_normalizer(const nlohmann::json& description);
Result<PreTokenizer> make_pre_tokenizer(const nlohmann::json& description);
Result<TokenDecoder> make_decoder(const nlohmann::json& description);

/// GPT-2's alphabet, in which every byte is a printable character.
std::string bytes_to_alphabet(std::string_view bytes);
/// Back; characters outside the alphabet stay as they are.
std::string alphabet_to_bytes(std::string_view text);

/// GPT-2's pattern, which byte-level tokenizers split by unless they say otherwise.
inline constexpr const char* kGpt2Pattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

}  // namespace plena
