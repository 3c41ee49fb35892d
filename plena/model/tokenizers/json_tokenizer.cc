// Reading tokenizer.json.
#include <algorithm>
#include <cmath>
#include <utility>

#include "plena/model/tokenizers/json_text.h"
#include "plena/model/tokenizers/parts.h"

namespace plena {

namespace {

using nlohmann::json;

constexpr std::uint32_t kMostAddedTokens = 1U << 16;

Status expect_absent(const json& model, const char* key) {
  const json& value = member(model, key);
  if (value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty()))
    return {};
  return fail(ErrorCode::Unsupported, "its model has a {}", key);
}

class JsonReader {
 public:
  JsonReader(const json& description, std::uint32_t vocab)
      : description_(description), vocab_(vocab) {}

  Result<TokenizerParts> read() {
    const json& model = description_.at("model");
    std::string type = type_of(model);
    if (type.empty()) type = model.contains("merges") ? "BPE" : "Unigram";  // older files
    Status read = type == "BPE"         ? read_bpe(model)
                  : type == "Unigram"   ? read_unigram(model)
                  : type == "ScoredBPE" ? read_scored_bpe(model)
                                        : unknown_kind("tokenizer model", type, "BPE, Unigram");
    if (read) read = read_steps();
    if (read) read = read_added_tokens();
    if (read) read = read_post_processor(member(description_, "post_processor"));
    if (read) read = read_extra(member(description_, kExtraKey));
    if (!read) return forward_error(read);
    parts_.vocabulary = vocabulary_;
    return std::move(parts_);
  }

 private:
  Status read_bpe(const json& model) {
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix", "dropout"}) {
      if (auto absent = expect_absent(model, key); !absent) return absent;
    }
    for (const auto& [piece, id] : model.at("vocab").items()) {
      if (auto added = vocabulary_->add(piece, id.get<std::uint32_t>(), vocab_); !added)
        return added;
    }
    RankedBpe bpe;
    bpe.unknown = read_unknown(model);
    bpe.whole_pieces = flag_of(model, "ignore_merges", false);
    std::uint32_t rank = 0;
    for (const json& merge : model.at("merges")) {
      if (auto added = add_merge(merge, rank++, bpe); !added) return added;
    }
    parts_.model = make_ranked_bpe(vocabulary_, std::move(bpe));
    return {};
  }

  // "left right", or the two in a list, which may contain spaces.
  Status add_merge(const json& merge, std::uint32_t rank, RankedBpe& bpe) {
    std::string left;
    std::string right;
    if (merge.is_array()) {
      left = merge.at(0).get<std::string>();
      right = merge.at(1).get<std::string>();
    } else {
      const auto& text = merge.get_ref<const std::string&>();
      const auto space = text.find(' ');
      left = text.substr(0, space);
      right = space == std::string::npos ? "" : text.substr(space + 1);
    }
    const auto left_id = vocabulary_->find(left);
    const auto right_id = vocabulary_->find(right);
    const auto merged = vocabulary_->find(left + right);
    if (!left_id || !right_id || !merged) {
      return fail(ErrorCode::Format, "merge {}, {} and {}, is of no tokens", rank, left, right);
    }
    // Of a pair that is there twice the last one counts, as in the tokenizers library.
    bpe.merges[token_pair(*left_id, *right_id)] = {rank, *merged};
    return {};
  }

  [[nodiscard]] UnknownCharacters read_unknown(const json& model) const {
    UnknownCharacters unknown;
    unknown.byte_fallback = flag_of(model, "byte_fallback", false);
    unknown.fuse = flag_of(model, "fuse_unk", false);
    const json& token = member(model, "unk_token");
    if (token.is_string()) unknown.unknown = vocabulary_->find(token.get_ref<const std::string&>());
    const json& id = member(model, "unk_id");
    if (id.is_number_unsigned() && id.get<std::uint64_t>() < vocabulary_->size()) {
      unknown.unknown = id.get<std::uint32_t>();
    }
    return unknown;
  }

  // A list of [piece, score].
  Result<std::vector<double>> read_scored_vocabulary(const json& model) {
    std::vector<double> scores;
    for (const json& entry : model.at("vocab")) {
      const auto id = static_cast<std::uint32_t>(scores.size());
      if (auto added = vocabulary_->add(entry.at(0).get<std::string>(), id, vocab_); !added) {
        return forward_error(added);
      }
      scores.push_back(entry.at(1).get<double>());
      if (!std::isfinite(scores.back())) {
        return fail(ErrorCode::Format, "the score of token {} is {}", id, scores.back());
      }
    }
    return scores;
  }

  Status read_unigram(const json& model) {
    auto scores = read_scored_vocabulary(model);
    if (!scores) return forward_error(scores);
    UnknownCharacters unknown = read_unknown(model);
    unknown.fuse = true;
    parts_.model = make_unigram(vocabulary_, *std::move(scores), unknown);
    return {};
  }

  Status read_scored_bpe(const json& model) {
    const auto scores = read_scored_vocabulary(model);
    if (!scores) return tl::unexpected(scores.error());
    UnknownCharacters unknown = read_unknown(model);
    unknown.bytes_apart = true;
    parts_.model =
        make_scored_bpe(vocabulary_, std::vector<float>(scores->begin(), scores->end()), unknown);
    return {};
  }

  Status read_steps() {
    auto normalizer = make_normalizer(member(description_, "normalizer"));
    if (!normalizer) return forward_error(normalizer);
    auto pre_tokenizer = make_pre_tokenizer(member(description_, "pre_tokenizer"));
    if (!pre_tokenizer) return forward_error(pre_tokenizer);
    auto decoder = make_decoder(member(description_, "decoder"));
    if (!decoder) return forward_error(decoder);
    parts_.normalizer = *std::move(normalizer);
    parts_.pre_tokenizer = *std::move(pre_tokenizer);
    parts_.decoder = *std::move(decoder);
    return {};
  }

  Status read_added_tokens() {
    const json& tokens = member(description_, "added_tokens");
    if (tokens.size() > kMostAddedTokens) {
      return fail(ErrorCode::Format, "it has {} added tokens", tokens.size());
    }
    for (const json& entry : tokens) {
      AddedToken token;
      token.text = entry.at("content").get<std::string>();
      token.id = entry.at("id").get<std::uint32_t>();
      token.single_word = flag_of(entry, "single_word", false);
      token.strips_left = flag_of(entry, "lstrip", false);
      token.strips_right = flag_of(entry, "rstrip", false);
      if (vocabulary_->find(token.text) != token.id) {
        if (auto added = vocabulary_->add(token.text, token.id, vocab_); !added) return added;
      }
      const bool special = flag_of(entry, "special", false);
      if (special) {
        parts_.silent.insert(token.id);
      } else {
        parts_.added.emplace(token.id, token.text);
      }
      if (flag_of(entry, "normalized", !special)) {
        token.text = parts_.normalizer(token.text);
        parts_.normal_tokens.add(std::move(token));
      } else {
        parts_.raw_tokens.add(std::move(token));
      }
    }
    return {};
  }

  Status read_post_processor(const json& step) {
    const std::string type = type_of(step);
    if (step.is_null() || type == "ByteLevel") return {};
    if (type == "Sequence") {
      for (const json& inner : step.at("processors")) {
        if (auto read = read_post_processor(inner); !read) return read;
      }
      return {};
    }
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      parts_.before.insert(parts_.before.begin(), step.at("cls").at(1).get<std::uint32_t>());
      parts_.after.push_back(step.at("sep").at(1).get<std::uint32_t>());
      return check_around();
    }
    if (type == "TemplateProcessing") return read_template(step);
    return unknown_kind("post-processor", type,
                        "Sequence, ByteLevel, TemplateProcessing, BertProcessing, "
                        "RobertaProcessing");
  }

  Status read_template(const json& step) {
    bool behind = false;  // the text
    for (const json& part : step.at("single")) {
      if (part.contains("Sequence")) {
        behind = true;
        continue;
      }
      const auto name = part.at("SpecialToken").at("id").get<std::string>();
      for (const json& id : step.at("special_tokens").at(name).at("ids")) {
        (behind ? parts_.after : parts_.before).push_back(id.get<std::uint32_t>());
      }
    }
    return check_around();
  }

  Status check_around() {
    for (const auto* ids : {&parts_.before, &parts_.after}) {
      for (const std::uint32_t id : *ids) {
        if (id >= vocab_)
          return fail(ErrorCode::Format, "token {} of a vocabulary of {}", id, vocab_);
      }
    }
    return {};
  }

  Status read_extra(const json& extra) {
    if (extra.is_null()) return {};
    if (const json& begin = member(extra, "begin"); !begin.is_null()) {
      parts_.special.begin = begin.get<std::uint32_t>();
    }
    for (const json& end : member(extra, "ends")) {
      parts_.special.ends.push_back(end.get<std::uint32_t>());
    }
    const json& text = member(extra, "chat_template");
    if (text.is_string()) parts_.chat_template = text.get<std::string>();
    return {};
  }

  const json& description_;
  std::uint32_t vocab_;
  std::shared_ptr<Vocabulary> vocabulary_ = std::make_shared<Vocabulary>();
  TokenizerParts parts_;
};

}  // namespace

Result<TokenizerParts> read_json_tokenizer(const json& description, std::uint32_t vocab) {
  try {
    return JsonReader(description, vocab).read();
  } catch (const json::exception& e) {
    return fail(ErrorCode::Format, "this is no tokenizer.json: {}", e.what());
  }
}

}  // namespace plena
