// How the characters of a piece of text become tokens: byte pair encoding, with merges by rank or
// by the score of what they make, and the unigram model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plena/model/tokenizers/vocabulary.h"

namespace plena {

using TokenIds = std::vector<std::uint32_t>;

class PieceModel {
 public:
  PieceModel() = default;
  PieceModel(const PieceModel&) = delete;
  PieceModel& operator=(const PieceModel&) = delete;
  virtual ~PieceModel() = default;

  /// Appends the tokens of `piece`. Bytes outside the vocabulary become byte tokens, or the unknown
  /// token, or nothing, as the model has it. n bytes take O(n log n).
  virtual void encode(std::string_view piece, TokenIds& ids) const = 0;
};

/// What becomes of a character that is no token.
struct UnknownCharacters {
  bool byte_fallback = false;            // the tokens of its bytes, where all are there
  bool bytes_apart = false;              // each byte falls back to its own token or the unknown one
  std::optional<std::uint32_t> unknown;  // else this one
  bool fuse = false;                     // once for several in a row
};

/// A pair of neighbouring tokens, the left one in the upper half.
using TokenPair = std::uint64_t;
constexpr TokenPair token_pair(std::uint32_t left, std::uint32_t right) {
  return TokenPair{left} << 32 | right;
}

struct RankedMerge {
  std::uint32_t rank;
  std::uint32_t merged;
};

struct RankedBpe {
  std::unordered_map<TokenPair, RankedMerge> merges;
  UnknownCharacters unknown;
  bool whole_pieces = false;  // a piece that is a token is not put together by merges
};

/// The merge of lowest rank first; of equal ranks, the leftmost.
std::unique_ptr<PieceModel> make_ranked_bpe(std::shared_ptr<const Vocabulary> vocabulary,
                                            RankedBpe bpe);

/// SentencePiece's BPE: two tokens merge where the text of both is a token, the one of best score
/// first. `scores` by id.
std::unique_ptr<PieceModel> make_scored_bpe(std::shared_ptr<const Vocabulary> vocabulary,
                                            std::vector<float> scores, UnknownCharacters unknown);

/// The division into tokens whose scores (log probabilities, by id) have the largest sum.
std::unique_ptr<PieceModel> make_unigram(std::shared_ptr<const Vocabulary> vocabulary,
                                         std::vector<double> scores, UnknownCharacters unknown);

}  // namespace plena
