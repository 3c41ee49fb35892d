#include <queue>
#include <utility>

#include "plena/model/tokenizers/piece_models.h"

namespace plena {

namespace {

constexpr std::size_t kMostCharacterBytes = 4;
constexpr std::uint32_t kGone = UINT32_MAX;  // id of a position whose token was merged to the left

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Length of the character at the front: a lead byte and the continuation bytes behind it. What is
// no UTF-8 falls into pieces that are in no vocabulary.
std::size_t character_length(std::string_view text) {
  const bool leads = (static_cast<unsigned char>(text[0]) & 0xC0) == 0xC0;
  std::size_t length = 1;
  while (leads && length < text.size() && length < kMostCharacterBytes &&
         is_continuation(text[length])) {
    ++length;
  }
  return length;
}

// The tokens of single characters.
TokenIds character_tokens(std::string_view text, const Vocabulary& vocabulary,
                          const UnknownCharacters& unknown) {
  TokenIds ids;
  bool after_unknown = false;
  while (!text.empty()) {
    const auto character = text.substr(0, character_length(text));
    text.remove_prefix(character.size());
    if (const auto id = vocabulary.find(character)) {
      ids.push_back(*id);
      after_unknown = false;
      continue;
    }
    if (unknown.bytes_apart) {
      for (const char byte : character) {
        if (const auto id = vocabulary.byte(byte) ? vocabulary.byte(byte) : unknown.unknown) {
          ids.push_back(*id);
        }
      }
      continue;
    }
    bool has_bytes = unknown.byte_fallback;
    for (const char byte : character) has_bytes = has_bytes && vocabulary.byte(byte);
    if (has_bytes) {
      for (const char byte : character) ids.push_back(*vocabulary.byte(byte));
      after_unknown = false;
    } else if (unknown.unknown && !(unknown.fuse && after_unknown)) {
      ids.push_back(*unknown.unknown);
      after_unknown = true;
    }
  }
  return ids;
}

// Neighbours that may become one token.
struct Candidate {
  double priority;  // highest first; of equal ones, the leftmost
  std::size_t left;
  std::size_t right;
  std::uint32_t left_id;
  std::uint32_t right_id;
  std::uint32_t merged_id;

  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.priority != b.priority ? a.priority < b.priority : a.left > b.left;
  }
};

// A token in a doubly linked list over positions.
struct Link {
  std::uint32_t id;
  std::size_t previous;
  std::size_t next;
};

struct Merge {
  double priority;
  std::uint32_t merged_id;
};

// `find_merge(left_id, right_id)` is the merge of two tokens, if there is one.
template <class FindMerge>
void merge_all(const TokenIds& characters, FindMerge&& find_merge, TokenIds& ids) {
  const std::size_t end = characters.size();
  std::vector<Link> links(end);
  for (std::size_t at = 0; at < end; ++at) links[at] = {characters[at], at - 1, at + 1};

  std::priority_queue<Candidate> candidates;
  const auto consider = [&](std::size_t left) {
    const std::size_t right = links[left].next;
    if (right == end) return;
    const std::optional<Merge> merge = find_merge(links[left].id, links[right].id);
    if (!merge) return;
    candidates.push(
        {merge->priority, left, right, links[left].id, links[right].id, merge->merged_id});
  };
  for (std::size_t at = 0; at < end; ++at) consider(at);

  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    // A candidate is stale once one of its tokens took part in a better merge.
    Link& left = links[best.left];
    Link& right = links[best.right];
    if (left.id != best.left_id || right.id != best.right_id || left.next != best.right) continue;
    left.id = best.merged_id;
    left.next = right.next;
    right.id = kGone;
    if (left.next != end) links[left.next].previous = best.left;
    consider(best.left);
    if (best.left != 0) consider(left.previous);
  }
  for (std::size_t at = 0; at < end; at = links[at].next) ids.push_back(links[at].id);
}

class RankedBpeModel : public PieceModel {
 public:
  RankedBpeModel(std::shared_ptr<const Vocabulary> vocabulary, RankedBpe bpe)
      : vocabulary_(std::move(vocabulary)), bpe_(std::move(bpe)) {}

  void encode(std::string_view piece, TokenIds& ids) const override {
    if (bpe_.whole_pieces) {
      if (const auto id = vocabulary_->find(piece)) return ids.push_back(*id);
    }
    merge_all(
        character_tokens(piece, *vocabulary_, bpe_.unknown),
        [this](std::uint32_t left, std::uint32_t right) -> std::optional<Merge> {
          const auto merge = bpe_.merges.find(token_pair(left, right));
          if (merge == bpe_.merges.end()) return {};
          return Merge{-static_cast<double>(merge->second.rank), merge->second.merged};
        },
        ids);
  }

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  RankedBpe bpe_;
};

class ScoredBpeModel : public PieceModel {
 public:
  ScoredBpeModel(std::shared_ptr<const Vocabulary> vocabulary, std::vector<float> scores,
                 UnknownCharacters unknown)
      : vocabulary_(std::move(vocabulary)), scores_(std::move(scores)), unknown_(unknown) {}

  void encode(std::string_view piece, TokenIds& ids) const override {
    std::string text;
    merge_all(
        character_tokens(piece, *vocabulary_, unknown_),
        [&](std::uint32_t left, std::uint32_t right) -> std::optional<Merge> {
          text = vocabulary_->piece(left);
          text += vocabulary_->piece(right);
          const auto merged = vocabulary_->find(text);
          if (!merged) return {};
          return Merge{scores_[*merged], *merged};
        },
        ids);
  }

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<float> scores_;
  UnknownCharacters unknown_;
};

}  // namespace

std::unique_ptr<PieceModel> make_ranked_bpe(std::shared_ptr<const Vocabulary> vocabulary,
                                            RankedBpe bpe) {
  return std::make_unique<RankedBpeModel>(std::move(vocabulary), std::move(bpe));
}

std::unique_ptr<PieceModel> make_scored_bpe(std::shared_ptr<const Vocabulary> vocabulary,
                                            std::vector<float> scores, UnknownCharacters unknown) {
  return std::make_unique<ScoredBpeModel>(std::move(vocabulary), std::move(scores), unknown);
}

}  // namespace plena
