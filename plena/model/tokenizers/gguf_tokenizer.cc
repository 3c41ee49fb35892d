// The tokenizer in a GGUF file's metadata, rewritten as a tokenizer.json.
#include <array>
#include <utility>

#include "plena/model/config_reader.h"
#include "plena/model/tokenizers/json_text.h"
#include "plena/model/tokenizers/parts.h"

namespace plena {

namespace {

using nlohmann::json;

constexpr const char* kMark = "\u2581";  // a space in SentencePiece's vocabularies

// Kinds of tokens in tokenizer.ggml.token_type.
constexpr int kControl = 3;
constexpr int kUserDefined = 4;

// Llama 3's pattern; Qwen2's differs only in taking numbers digit by digit.
constexpr const char* kLlama3Pattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* kQwen2Pattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

// Of gpt-4o and gpt-oss: words change where a capital follows small letters.
constexpr const char* kGpt4oPattern =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

struct BytePreTokenizer {
  std::string_view name;  // tokenizer.ggml.pre
  const char* pattern;
  bool splits_digits = false;  // digits one by one, before the pattern
  bool whole_pieces = false;
  bool composes = false;  // normal form C first
};

constexpr std::array<BytePreTokenizer, 7> kPreTokenizers{{
    {"default", kGpt2Pattern},
    {"gpt-2", kGpt2Pattern},
    {"smollm", kGpt2Pattern, true},
    {"llama-bpe", kLlama3Pattern, false, true},
    {"llama3", kLlama3Pattern, false, true},
    {"qwen2", kQwen2Pattern, false, false, true},
    {"gpt-4o", kGpt4oPattern},
}};

json added_tokens(const std::vector<std::string>& pieces, const json& types) {
  json tokens = json::array();
  for (std::size_t id = 0; id < pieces.size() && id < types.size(); ++id) {
    const int type = types[id].is_number_integer() ? types[id].get<int>() : 0;
    if (type != kControl && type != kUserDefined) continue;
    tokens.push_back({{"id", id},
                      {"content", pieces[id]},
                      {"special", type == kControl},
                      {"normalized", false}});
  }
  return tokens;
}

json split_step(const char* pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}};
}

Result<json> byte_level(const std::vector<std::string>& pieces, ConfigReader& config) {
  const std::string name = config.text("tokenizer.ggml.pre", "default");
  std::string known;
  for (const BytePreTokenizer& pre : kPreTokenizers) {
    known += (known.empty() ? "" : ", ") + std::string(pre.name);
    if (pre.name != name) continue;
    json steps = json::array();
    if (pre.splits_digits) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
    steps.push_back(split_step(pre.pattern));
    steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
    json vocab = json::object();
    for (std::size_t id = 0; id < pieces.size(); ++id) vocab.emplace(pieces[id], id);
    return json{{"model",
                 {{"type", "BPE"},
                  {"vocab", std::move(vocab)},
                  {"merges", config.texts("tokenizer.ggml.merges")},
                  {"ignore_merges", pre.whole_pieces}}},
                {"normalizer", pre.composes ? json{{"type", "NFC"}} : json()},
                {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}}},
                {"decoder", {{"type", "ByteLevel"}}}};
  }
  return unknown_kind("tokenizer.ggml.pre", name, known);
}

json replace_step(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

Result<json> sentence_piece(const std::vector<std::string>& pieces, const json& metadata,
                            ConfigReader& config) {
  const json& scores = member(metadata, "tokenizer.ggml.scores");
  if (scores.size() != pieces.size()) {
    return fail(ErrorCode::Format, "it has {} tokens and {} scores", pieces.size(), scores.size());
  }
  json vocab = json::array();
  for (std::size_t id = 0; id < pieces.size(); ++id) vocab.push_back({pieces[id], scores[id]});
  json normalizers = json::array();
  json decoders = {replace_step(kMark, " "), {{"type", "ByteFallback"}}};
  if (config.flag("tokenizer.ggml.add_space_prefix", true)) {
    normalizers.push_back({{"type", "Prepend"}, {"prepend", kMark}});
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  normalizers.push_back(replace_step(" ", kMark));
  const auto unknown = config.id("tokenizer.ggml.unknown_token_id");
  return json{{"model",
               {{"type", "ScoredBPE"},
                {"vocab", std::move(vocab)},
                {"unk_id", unknown ? json(*unknown) : json()}}},
              {"normalizer", {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}},
              {"decoder", {{"type", "Sequence"}, {"decoders", std::move(decoders)}}}};
}

// BOS in front and EOS behind, where the file wants them.
json post_processor(const std::vector<std::string>& pieces, std::optional<std::uint32_t> begin,
                    std::optional<std::uint32_t> end) {
  json single = json::array();
  json special = json::object();
  const auto add = [&](std::optional<std::uint32_t> id) {
    if (!id || *id >= pieces.size()) return;
    single.push_back({{"SpecialToken", {{"id", pieces[*id]}}}});
    special[pieces[*id]] = {{"ids", {*id}}};
  };
  add(begin);
  single.push_back({{"Sequence", {{"id", "A"}}}});
  add(end);
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"special_tokens", std::move(special)}};
}

}  // namespace

Result<json> gguf_tokenizer_json(const json& metadata) {
  ConfigReader config(metadata, "its tokenizer");
  const std::string kind = config.text("tokenizer.ggml.model", "none");
  const auto pieces = config.texts("tokenizer.ggml.tokens");
  Result<json> made = kind == "gpt2"    ? byte_level(pieces, config)
                      : kind == "llama" ? sentence_piece(pieces, metadata, config)
                                        : unknown_kind("tokenizer.ggml.model", kind, "llama, gpt2");
  if (!made) return made;
  const bool is_sentence_piece = kind == "llama";
  const auto begin = config.id("tokenizer.ggml.bos_token_id");
  const auto end = config.id("tokenizer.ggml.eos_token_id");
  json ends = json::array();
  for (const auto& id : {end, config.id("tokenizer.ggml.eot_token_id")}) {
    if (id) ends.push_back(*id);
  }
  const bool adds_begin = config.flag("tokenizer.ggml.add_bos_token", is_sentence_piece);
  const bool adds_end = config.flag("tokenizer.ggml.add_eos_token", false);
  (*made)["added_tokens"] = added_tokens(pieces, member(metadata, "tokenizer.ggml.token_type"));
  (*made)["post_processor"] =
      post_processor(pieces, adds_begin ? begin : std::nullopt, adds_end ? end : std::nullopt);
  (*made)[kExtraKey] = {{"begin", begin ? json(*begin) : json()},
                        {"ends", std::move(ends)},
                        {"chat_template", config.text("tokenizer.chat_template", "")}};
  if (auto read = config.status(); !read) return forward_error(read);
  return made;
}

}  // namespace plena
