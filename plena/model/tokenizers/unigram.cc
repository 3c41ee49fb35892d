#include <algorithm>
#include <limits>
#include <utility>

#include "plena/model/tokenizers/piece_models.h"
#include "plena/model/tokenizers/unicode.h"

namespace plena {

namespace {

// An unknown character costs this much more than the worst token (SentencePiece's kUnkPenalty).
constexpr double kUnknownPenalty = 10;

class UnigramModel : public PieceModel {
 public:
  UnigramModel(std::shared_ptr<const Vocabulary> vocabulary, std::vector<double> scores,
               UnknownCharacters unknown)
      : vocabulary_(std::move(vocabulary)), scores_(std::move(scores)), unknown_(unknown) {
    double worst = 0;
    for (const double score : scores_) worst = std::min(worst, score);
    unknown_score_ = worst - kUnknownPenalty;
    for (std::uint32_t id = 0; id < vocabulary_->size(); ++id) {
      longest_ = std::max(longest_, vocabulary_->piece(id).size());
    }
  }

  void encode(std::string_view piece, TokenIds& ids) const override {
    const std::vector<Node> best = find_best(piece);
    std::vector<Segment> segments;  // from the end of the text
    for (std::size_t end = piece.size(); end != 0;) {
      const Node& node = best[end];
      if (node.begin == end) return;  // unreachable: a score is NaN
      segments.push_back({node.begin, end, node.id});
      end = node.begin;
    }
    std::reverse(segments.begin(), segments.end());
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (segments[i].id) {
        ids.push_back(*segments[i].id);
        continue;
      }
      Segment segment = segments[i];
      while (unknown_.fuse && i + 1 < segments.size() && !segments[i + 1].id) {
        segment.end = segments[++i].end;
      }
      append_unknown(piece.substr(segment.begin, segment.end - segment.begin), ids);
    }
  }

 private:
  // The best way to a position: the last token on it.
  struct Node {
    double score = -std::numeric_limits<double>::infinity();
    std::size_t begin = 0;
    std::optional<std::uint32_t> id;  // nothing: an unknown character
  };

  struct Segment {
    std::size_t begin;
    std::size_t end;
    std::optional<std::uint32_t> id;
  };

  [[nodiscard]] std::vector<Node> find_best(std::string_view piece) const {
    std::vector<Node> best(piece.size() + 1);
    for (std::size_t i = 1; i < best.size(); ++i) best[i].begin = i;
    best[0].score = 0;
    for (std::size_t begin = 0; begin < piece.size();) {
      const std::size_t character = character_bytes(piece.substr(begin));
      bool has_single = false;
      for (std::size_t end = begin + character;;) {
        if (const auto id = vocabulary_->find(piece.substr(begin, end - begin))) {
          improve(best[end], best[begin].score + scores_[*id], begin, id);
          has_single = has_single || end == begin + character;
        }
        if (end >= piece.size() || end - begin >= longest_) break;
        end += character_bytes(piece.substr(end));
      }
      if (!has_single) {
        improve(best[begin + character], best[begin].score + unknown_score_, begin, {});
      }
      begin += character;
    }
    return best;
  }

  static void improve(Node& node, double score, std::size_t begin,
                      std::optional<std::uint32_t> id) {
    if (score > node.score) node = {score, begin, id};
  }

  void append_unknown(std::string_view text, TokenIds& ids) const {
    if (unknown_.byte_fallback && vocabulary_->has_all_bytes()) {
      for (const char byte : text) ids.push_back(*vocabulary_->byte(byte));
    } else if (unknown_.unknown) {
      ids.push_back(*unknown_.unknown);
    }
  }

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<double> scores_;
  UnknownCharacters unknown_;
  double unknown_score_ = 0;
  std::size_t longest_ = 1;  // bytes
};

}  // namespace

std::unique_ptr<PieceModel> make_unigram(std::shared_ptr<const Vocabulary> vocabulary,
                                         std::vector<double> scores, UnknownCharacters unknown) {
  return std::make_unique<UnigramModel>(std::move(vocabulary), std::move(scores), unknown);
}

}  // namespace plena
