// The tokenizer of llama2.c models: text to token ids by merging the best-scored pairs of a
// vocabulary (BPE as SentencePiece does it, with byte fallback), and ids back to text.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plena/base/error.h"

namespace plena {

// Ids every vocabulary of this kind gives the same meaning.
inline constexpr std::uint32_t kUnknownToken = 0;
inline constexpr std::uint32_t kBeginToken = 1;  // BOS: before the first token of a text
inline constexpr std::uint32_t kEndToken = 2;    // EOS

class Tokenizer {
 public:
  /// Reads a llama2.c tokenizer: int32 max_token_length, then for each token f32 score, int32
  /// length and the bytes. A file that holds another number of tokens than `vocab` is an error.
  static Result<Tokenizer> open(const std::string& path, std::uint32_t vocab);

  /// The same from memory; `name` stands for the file in errors.
  static Result<Tokenizer> parse(std::span<const std::uint8_t> file, std::uint32_t vocab,
                                 std::string_view name);

  [[nodiscard]] std::uint32_t vocab() const { return static_cast<std::uint32_t>(pieces_.size()); }

  /// Token ids of a text, after BOS. A text that is not empty gets a space in front, as when the
  /// models were trained. A character outside the vocabulary becomes the tokens of its bytes.
  /// Any bytes are fine; n bytes take O(n log n).
  [[nodiscard]] std::vector<std::uint32_t> encode(std::string_view text) const;

  /// The bytes token `id` adds to a text after token `previous`: nothing for BOS and EOS, one raw
  /// byte for a byte token, and no leading space right after BOS. A character may be spread over
  /// several tokens. `id` lies in the vocabulary.
  [[nodiscard]] std::string_view decode(std::uint32_t previous, std::uint32_t id) const;

  /// The text of a whole sequence.
  [[nodiscard]] std::string decode(std::span<const std::uint32_t> ids) const;

 private:
  struct Piece {
    std::string text;
    float score = 0;
    std::optional<char> byte;  // of a `<0xNN>` token
  };
  // Lets a string_view look up a string.
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  Tokenizer() = default;
  void index_pieces();
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view text) const;
  [[nodiscard]] std::vector<std::uint32_t> characters_to_ids(std::string_view text) const;
  [[nodiscard]] std::vector<std::uint32_t> merge(std::span<const std::uint32_t> ids) const;

  std::vector<Piece> pieces_;                     // by id
  std::array<std::uint32_t, 256> byte_tokens_{};  // kUnknownToken where there is none
  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> ids_;
};

}  // namespace plena
