// What a tokenizer is made of, and the readers that make it of files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plena/base/error.h"
#include "plena/model/model.h"
#include "plena/model/tokenizers/added_tokens.h"
#include "plena/model/tokenizers/piece_models.h"
#include "plena/model/tokenizers/text_steps.h"
#include "plena/model/tokenizers/vocabulary.h"

namespace plena {

struct TokenizerParts {
  std::shared_ptr<const Vocabulary> vocabulary;  // added tokens included
  bool keeps_bytes = false;                      // takes text that is no UTF-8 as it is
  AddedTokens raw_tokens;                        // found in the text as it comes
  Normalizer normalizer;
  AddedTokens normal_tokens;  // found in the normalised text
  PreTokenizer pre_tokenizer;
  std::shared_ptr<const PieceModel> model;
  TokenDecoder decoder;

  std::unordered_set<std::uint32_t> silent;              // special tokens, without a text
  std::unordered_map<std::uint32_t, std::string> added;  // the other added ones, as they are
  std::vector<std::uint32_t> before;                     // tokens around every text
  std::vector<std::uint32_t> after;
  SpecialTokens special;
  std::string chat_template;
};

/// The key under which this program keeps what Hugging Face has in other files: an object with
/// `begin` and `ends` (ids), and `chat_template`.
inline constexpr const char* kExtraKey = "plena";

/// From a tokenizer.json, whose model is BPE or Unigram, or `ScoredBPE` (only here: pieces and
/// scores, as GGUF has them), and kExtraKey where it is there.
Result<TokenizerParts> read_json_tokenizer(const nlohmann::json& description, std::uint32_t vocab);

/// From a llama2.c tokenizer.
Result<TokenizerParts> read_llama2c_tokenizer(std::span<const std::uint8_t> file,
                                              std::uint32_t vocab, std::string_view name);

/// The tokenizer of a GGUF file's metadata as a tokenizer.json with kExtraKey: kinds `llama` and
/// `gpt2`. Another kind, or a pre-tokenizer that is not known, is an error that lists the known
/// ones.
Result<nlohmann::json> gguf_tokenizer_json(const nlohmann::json& metadata);

}  // namespace plena
