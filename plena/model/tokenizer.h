// The tokenizer of a model: text to token ids and back. One class for all kinds: what differs, the
// steps a text goes through, is read from the tokenizer's file (tokenizers/).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plena/base/error.h"
#include "plena/model/model.h"
#include "plena/model/tokenizers/parts.h"

namespace plena {

/// Stands for what comes before the first token of a text.
inline constexpr std::uint32_t kNoToken = UINT32_MAX;

class Tokenizer {
 public:
  /// Reads a Hugging Face tokenizer.json, or a llama2.c tokenizer (int32 max_token_length, then for
  /// each token f32 score, int32 length and the bytes). One that holds ids beyond the `vocab` ids
  /// of the model is an error; a llama2.c one has exactly as many.
  static Result<Tokenizer> open(const std::string& path, std::uint32_t vocab);

  /// The same from memory; `name` stands for the file in errors.
  static Result<Tokenizer> parse(std::span<const std::uint8_t> file, std::uint32_t vocab,
                                 std::string_view name);

  /// Ids that decode() takes: those of the model.
  [[nodiscard]] std::uint32_t vocab() const { return vocab_; }

  /// Token ids of a text, with what the tokenizer puts around one (mostly BOS in front). Special
  /// tokens in the text, like `<|im_end|>`, become their ids. Any bytes are fine; what is no UTF-8
  /// counts as U+FFFD where the tokenizer has no bytes.
  [[nodiscard]] std::vector<std::uint32_t> encode(std::string_view text) const;

  /// The same with nothing around it, for a text that has it all, like a filled-in chat template.
  [[nodiscard]] std::vector<std::uint32_t> encode_inner(std::string_view text) const;

  /// The bytes token `id` adds to a text after token `previous`, kNoToken before the first: nothing
  /// for special tokens, and no leading space at the start of a text where encode() put one there.
  /// A character may be spread over several tokens.
  [[nodiscard]] std::string decode(std::uint32_t previous, std::uint32_t id) const;

  /// The text of a whole sequence.
  [[nodiscard]] std::string decode(std::span<const std::uint32_t> ids) const;

  /// The tokens that begin and end a text, as far as the tokenizer's file names them.
  [[nodiscard]] const SpecialTokens& special() const { return parts_.special; }

  /// The Jinja template a chat becomes a prompt by; empty where the model has none.
  [[nodiscard]] const std::string& chat_template() const { return parts_.chat_template; }

  /// The text of a token as the vocabulary has it, `<|im_end|>`; empty for an id without one.
  [[nodiscard]] std::string_view piece(std::uint32_t id) const;

 private:
  Tokenizer(TokenizerParts parts, std::uint32_t vocab) : parts_(std::move(parts)), vocab_(vocab) {}
  void encode_section(std::string_view text, bool at_start, std::vector<std::uint32_t>& ids) const;

  TokenizerParts parts_;
  std::uint32_t vocab_;
};

}  // namespace plena
