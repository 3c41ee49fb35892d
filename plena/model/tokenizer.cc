#include "plena/model/tokenizer.h"

#include <cmath>
#include <cstring>
#include <queue>
#include <utility>

#include "plena/base/files.h"

namespace plena {

namespace {

constexpr std::size_t kMaxCharacterBytes = 4;  // of UTF-8

// Reads little-endian values one after the other.
class RecordReader {
 public:
  explicit RecordReader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

  template <class T>
  bool read(T& value) {
    if (rest_.size() < sizeof(T)) return false;
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return true;
  }

  bool read(std::string& text, std::size_t length) {
    if (rest_.size() < length) return false;
    text.assign(reinterpret_cast<const char*>(rest_.data()), length);
    rest_ = rest_.subspan(length);
    return true;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The byte a token `<0xNN>` stands for.
std::optional<char> parse_byte_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  const int high = hex_digit(piece[3]);
  const int low = hex_digit(piece[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high << 4 | low);
}

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Length of the character at the front: a byte and the continuation bytes behind it. What is no
// UTF-8 falls into pieces that are in no vocabulary, and so into bytes.
std::size_t character_length(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && length < kMaxCharacterBytes && is_continuation(text[length])) {
    ++length;
  }
  return length;
}

// Neighbours that may become one token. Best score first; of equal scores, the leftmost.
struct Merge {
  float score;
  std::size_t left;   // position of the left token
  std::size_t right;  // position of the right one
  std::uint32_t left_id;
  std::uint32_t right_id;
  std::uint32_t merged_id;

  friend bool operator<(const Merge& a, const Merge& b) {
    return a.score != b.score ? a.score < b.score : a.left > b.left;
  }
};

// A token in a doubly linked list over positions. A position whose token was merged into its left
// neighbour keeps kGone.
constexpr std::uint32_t kGone = UINT32_MAX;
struct Link {
  std::uint32_t id;
  std::size_t previous;
  std::size_t next;
};

}  // namespace

Result<Tokenizer> Tokenizer::open(const std::string& path, std::uint32_t vocab) {
  auto file = MappedFile::open(path);
  if (!file) return forward_error(file);
  return parse(file->bytes(), vocab, path);
}

Result<Tokenizer> Tokenizer::parse(std::span<const std::uint8_t> file, std::uint32_t vocab,
                                   std::string_view name) {
  const auto reject = [&](const std::string& reason) {
    return fail_with_hint(ErrorCode::Format,
                          fmt::format("{} is not a llama2.c tokenizer: {}", name, reason),
                          "int32 max_token_length, then for each token f32 score, int32 length "
                          "and that many bytes");
  };
  RecordReader reader(file);
  std::int32_t max_length = 0;
  if (!reader.read(max_length)) return reject(fmt::format("it has {} bytes", file.size()));
  if (max_length < 1) return reject(fmt::format("max_token_length is {}", max_length));

  Tokenizer tokenizer;
  std::size_t count = 0;
  for (; !reader.at_end(); ++count) {
    Piece piece;
    std::int32_t length = 0;
    if (!reader.read(piece.score) || !reader.read(length)) {
      return reject(fmt::format("it ends inside token {}", count));
    }
    if (length < 0 || length > max_length) {
      return reject(
          fmt::format("token {} has length {}, max_token_length is {}", count, length, max_length));
    }
    if (!std::isfinite(piece.score)) {
      return reject(fmt::format("the score of token {} is {}", count, piece.score));
    }
    if (!reader.read(piece.text, static_cast<std::size_t>(length))) {
      return reject(fmt::format("it ends inside token {}", count));
    }
    if (count < vocab) tokenizer.pieces_.push_back(std::move(piece));
  }
  if (count != vocab) {
    return fail_with_hint(
        ErrorCode::Format,
        fmt::format("{} holds {} tokens, the model's vocabulary {}", name, count, vocab),
        "use the tokenizer the model was trained with");
  }
  tokenizer.index_pieces();
  return tokenizer;
}

void Tokenizer::index_pieces() {
  ids_.reserve(pieces_.size());
  for (std::uint32_t id = 0; id < vocab(); ++id) {
    Piece& piece = pieces_[id];
    piece.byte = parse_byte_piece(piece.text);
    // Of two tokens with the same text the first counts.
    const bool is_first = ids_.try_emplace(piece.text, id).second;
    if (piece.byte && is_first) byte_tokens_[static_cast<unsigned char>(*piece.byte)] = id;
  }
}

std::optional<std::uint32_t> Tokenizer::find(std::string_view text) const {
  const auto found = ids_.find(text);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::uint32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::uint32_t> ids{kBeginToken};
  if (text.empty()) return ids;
  auto characters = characters_to_ids(" ");
  const auto rest = characters_to_ids(text);
  characters.insert(characters.end(), rest.begin(), rest.end());
  const auto merged = merge(characters);
  ids.insert(ids.end(), merged.begin(), merged.end());
  return ids;
}

std::vector<std::uint32_t> Tokenizer::characters_to_ids(std::string_view text) const {
  std::vector<std::uint32_t> ids;
  while (!text.empty()) {
    const auto character = text.substr(0, character_length(text));
    text.remove_prefix(character.size());
    if (const auto id = find(character)) {
      ids.push_back(*id);
      continue;
    }
    for (const char byte : character) {
      ids.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
    }
  }
  return ids;
}

std::vector<std::uint32_t> Tokenizer::merge(std::span<const std::uint32_t> ids) const {
  const std::size_t end = ids.size();
  std::vector<Link> links(end);
  for (std::size_t at = 0; at < end; ++at) links[at] = {ids[at], at - 1, at + 1};

  std::priority_queue<Merge> candidates;
  std::string text;
  const auto consider = [&](std::size_t left) {
    const std::size_t right = links[left].next;
    if (right == end) return;
    text = pieces_[links[left].id].text;
    text += pieces_[links[right].id].text;
    const auto merged = find(text);
    if (!merged) return;
    candidates.push(
        {pieces_[*merged].score, left, right, links[left].id, links[right].id, *merged});
  };
  for (std::size_t at = 0; at < end; ++at) consider(at);

  while (!candidates.empty()) {
    const Merge best = candidates.top();
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

  std::vector<std::uint32_t> merged;
  for (std::size_t at = 0; at < end; at = links[at].next) merged.push_back(links[at].id);
  return merged;
}

std::string_view Tokenizer::decode(std::uint32_t previous, std::uint32_t id) const {
  if (id == kBeginToken || id == kEndToken) return {};
  const Piece& piece = pieces_[id];
  if (piece.byte) return {&*piece.byte, 1};
  std::string_view text = piece.text;
  if (previous == kBeginToken && text.starts_with(' ')) text.remove_prefix(1);
  return text;
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids) const {
  std::string text;
  std::uint32_t previous = kUnknownToken;
  for (const std::uint32_t id : ids) {
    text += decode(previous, id);
    previous = id;
  }
  return text;
}

}  // namespace plena
