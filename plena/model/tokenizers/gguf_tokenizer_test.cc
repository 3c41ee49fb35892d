// Byte-level tokenizers in GGUF metadata against the Python package `tokenizers`: the tokenizers of
// testdata/tokenizers.json put into GGUF files. Those of kind llama are in hostile_files_test.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/model/gguf.h"
#include "plena/model/testing/gguf_writer.h"
#include "plena/model/tokenizer.h"

namespace plena {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<std::uint32_t>;
using nlohmann::json;

constexpr int kNormal = 1;
constexpr int kControl = 3;
constexpr int kUserDefined = 4;

json entry_named(const std::string& name) {
  const json entries = json::parse(
      read_text(std::string(PLENA_SOURCE_DIR) + "/plena/model/testdata/tokenizers.json").value());
  for (const json& entry : entries) {
    if (entry.at("name") == name) return entry;
  }
  ADD_FAILURE() << "no entry " << name;
  return {};
}

// What a converter writes of a tokenizer.json.
json metadata_of(const json& tokenizer, const std::string& pre) {
  std::vector<std::string> pieces;
  std::vector<std::int32_t> types;
  const auto put = [&](const std::string& piece, std::size_t id, int type) {
    if (id >= pieces.size()) pieces.resize(id + 1);
    types.resize(pieces.size(), kNormal);
    pieces[id] = piece;
    types[id] = type;
  };
  for (const auto& [piece, id] : tokenizer.at("model").at("vocab").items()) put(piece, id, kNormal);
  for (const json& token : tokenizer.at("added_tokens")) {
    put(token.at("content"), token.at("id"), token.at("special") ? kControl : kUserDefined);
  }
  std::vector<std::string> merges;
  for (const json& merge : tokenizer.at("model").at("merges")) {
    merges.push_back(merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>());
  }
  testing::GgufWriter writer;
  writer.text("tokenizer.ggml.model", "gpt2");
  writer.text("tokenizer.ggml.pre", pre);
  writer.texts("tokenizer.ggml.tokens", pieces);
  writer.i32s("tokenizer.ggml.token_type", types);
  writer.texts("tokenizer.ggml.merges", merges);
  writer.u32("tokenizer.ggml.bos_token_id", 0);
  writer.u32("tokenizer.ggml.eos_token_id", 1);
  writer.boolean("tokenizer.ggml.add_bos_token", pre == "llama-bpe");
  const Bytes file = writer.file();
  return parse_gguf(file, "t.gguf").value().metadata;
}

struct Case {
  const char* entry;
  const char* pre;
};

class GgufTokenizer : public ::testing::TestWithParam<Case> {};

TEST_P(GgufTokenizer, EncodesAsTheTokenizersPackageDoes) {
  const json entry = entry_named(GetParam().entry);
  const auto description = gguf_tokenizer_json(metadata_of(entry.at("tokenizer"), GetParam().pre));
  ASSERT_TRUE(description) << description.error().render();
  const std::string text = description->dump();
  const auto tokenizer = Tokenizer::parse(
      {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, 1000, "t");
  ASSERT_TRUE(tokenizer) << tokenizer.error().render();
  for (const json& example : entry.at("cases")) {
    const auto input = example.at("text").get<std::string>();
    // GGUF does not say that a token takes white space along.
    if (input.find("<|pad|>") != std::string::npos) continue;
    EXPECT_EQ(tokenizer->encode(input), example.at("ids").get<Ids>()) << '"' << input << '"';
  }
  EXPECT_THAT(tokenizer->special().ends, ::testing::ElementsAre(1));
}

INSTANTIATE_TEST_SUITE_P(Kinds, GgufTokenizer,
                         ::testing::Values(Case{"gpt-2", "gpt-2"}, Case{"smollm", "smollm"},
                                           Case{"llama-3", "llama-bpe"}, Case{"qwen2", "qwen2"},
                                           Case{"gpt-4o", "gpt-4o"}),
                         [](const auto& kind) { return "kind" + std::to_string(kind.index); });

TEST(GgufTokenizerKinds, UnknownOnesAreNamed) {
  json metadata = metadata_of(entry_named("gpt-2").at("tokenizer"), "cl100k");
  EXPECT_THAT(gguf_tokenizer_json(metadata).error().render(),
              HasSubstr("gpt-2, smollm, llama-bpe"));
  metadata["tokenizer.ggml.model"] = "bert";
  EXPECT_THAT(gguf_tokenizer_json(metadata).error().render(), HasSubstr("known ones: llama, gpt2"));
}

}  // namespace
}  // namespace plena
