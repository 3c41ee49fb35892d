// llama2.c tokenizers: SentencePiece's BPE over pieces with scores, spaces as they are.
#include <cmath>
#include <cstring>
#include <optional>

#include "plena/model/tokenizers/parts.h"

namespace plena {

namespace {

// Ids every vocabulary of this kind gives the same meaning.
constexpr std::uint32_t kUnknown = 0;
constexpr std::uint32_t kBegin = 1;
constexpr std::uint32_t kEnd = 2;

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

struct ScoredPieces {
  std::vector<std::string> pieces;
  std::vector<float> scores;
};

Result<ScoredPieces> read_pieces(std::span<const std::uint8_t> file, std::uint32_t vocab,
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

  ScoredPieces read;
  std::size_t count = 0;
  for (; !reader.at_end(); ++count) {
    std::string piece;
    float score = 0;
    std::int32_t length = 0;
    if (!reader.read(score) || !reader.read(length)) {
      return reject(fmt::format("it ends inside token {}", count));
    }
    if (length < 0 || length > max_length) {
      return reject(
          fmt::format("token {} has length {}, max_token_length is {}", count, length, max_length));
    }
    if (!std::isfinite(score))
      return reject(fmt::format("the score of token {} is {}", count, score));
    if (!reader.read(piece, static_cast<std::size_t>(length))) {
      return reject(fmt::format("it ends inside token {}", count));
    }
    if (count >= vocab) continue;
    read.pieces.push_back(std::move(piece));
    read.scores.push_back(score);
  }
  if (count != vocab) {
    return fail_with_hint(
        ErrorCode::Format,
        fmt::format("{} holds {} tokens, the model's vocabulary {}", name, count, vocab),
        "use the tokenizer the model was trained with");
  }
  return read;
}

}  // namespace

Result<TokenizerParts> read_llama2c_tokenizer(std::span<const std::uint8_t> file,
                                              std::uint32_t vocab, std::string_view name) {
  auto read = read_pieces(file, vocab, name);
  if (!read) return forward_error(read);
  auto vocabulary = std::make_shared<Vocabulary>();
  for (std::uint32_t id = 0; id < vocab; ++id) {
    if (auto added = vocabulary->add(std::move(read->pieces[id]), id, vocab); !added) {
      return forward_error(added);
    }
  }
  TokenizerParts parts;
  parts.vocabulary = vocabulary;
  parts.keeps_bytes = true;
  // A space in front, as when the models were trained.
  parts.normalizer = [](std::string text) { return text.empty() ? text : " " + text; };
  parts.pre_tokenizer = [](std::vector<TextPiece> pieces) { return pieces; };
  parts.model = make_scored_bpe(
      vocabulary, std::move(read->scores),
      {.byte_fallback = true, .bytes_apart = true, .unknown = kUnknown, .fuse = false});
  parts.decoder = [](std::string_view token, bool first) {
    if (first && token.starts_with(' ')) token.remove_prefix(1);
    const auto byte = parse_byte_piece(token);
    return byte ? std::string(1, *byte) : std::string(token);
  };
  parts.silent = {kBegin, kEnd};
  parts.before = {kBegin};
  parts.special = {.begin = kBegin, .ends = {kEnd, kBegin}, .mask = {}};
  return parts;
}

}  // namespace plena
