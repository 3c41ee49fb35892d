// tokenizer.json against the Python package `tokenizers`: ids and texts of
// testdata/tokenizers.json, which testdata/make_tokenizers.py makes.
#include <algorithm>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/base/shared_data.h"
#include "plena/model/tokenizer.h"

namespace plena {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<std::uint32_t>;
using nlohmann::json;

constexpr std::uint32_t kVocab = 1000;

Result<Tokenizer> parse(const json& description, std::uint32_t vocab = kVocab) {
  const std::string text = description.dump();
  return Tokenizer::parse({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, vocab,
                          "tokenizer.json");
}

const json& entries() {
  static const json kEntries = json::parse(
      read_text(std::string(PLENA_SOURCE_DIR) + "/plena/model/testdata/tokenizers.json").value());
  return kEntries;
}

class JsonTokenizer : public ::testing::TestWithParam<std::size_t> {};

TEST_P(JsonTokenizer, EncodesAsTheTokenizersPackageDoes) {
  const json& entry = entries().at(GetParam());
  const auto tokenizer = parse(entry.at("tokenizer"));
  ASSERT_TRUE(tokenizer) << tokenizer.error().render();
  for (const json& example : entry.at("cases")) {
    const auto text = example.at("text").get<std::string>();
    EXPECT_EQ(tokenizer->encode(text), example.at("ids").get<Ids>()) << '"' << text << '"';
  }
}

TEST_P(JsonTokenizer, DecodesAsTheTokenizersPackageDoes) {
  const json& entry = entries().at(GetParam());
  const auto tokenizer = parse(entry.at("tokenizer"));
  ASSERT_TRUE(tokenizer) << tokenizer.error().render();
  for (const json& example : entry.at("cases")) {
    const auto expected = example.at("decoded").get<std::string>();
    EXPECT_EQ(tokenizer->decode(example.at("ids").get<Ids>()), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, JsonTokenizer, ::testing::Range<std::size_t>(0, 11),
                         [](const auto& index) {
                           auto name =
                               entries().at(index.param).at("name").template get<std::string>();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(JsonTokenizerFile, OfStories260KEncodesAsTheCheckpointsOwn) {
  PLENA_NEEDS_SHARED();
  const std::string models = shared_data() + "/models/";
  const auto scored = Tokenizer::open(models + "stories260K/tok512.bin", 512).value();
  const auto ranked = Tokenizer::open(models + "stories260K-hf/tokenizer.json", 512).value();
  const auto text = read_text(models + "stories260K-eval/alice-chapter1.txt").value();

  const Ids ids = ranked.encode(text);

  EXPECT_EQ(ids, scored.encode(text));
  EXPECT_EQ(ranked.decode(ids), text);
}

TEST(JsonTokenizerFile, NamesWhatItDoesNotKnow) {
  json description = entries().at(0).at("tokenizer");
  description["normalizer"] = {{"type", "Nmt"}};
  EXPECT_THAT(parse(description).error().render(), HasSubstr("unknown normalizer Nmt"));
  description["normalizer"] = {{"type", "Replace"}};
  EXPECT_THAT(parse(description).error().message, HasSubstr("pattern"));
  description = entries().at(0).at("tokenizer");
  description["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}};
  EXPECT_THAT(parse(description).error().message, HasSubstr("(a"));
  EXPECT_THAT(parse(entries().at(0).at("tokenizer"), 100).error().message,
              HasSubstr("of a vocabulary of 100"));
  EXPECT_THAT(parse(json::object()).error().message, HasSubstr("no tokenizer.json"));
}

TEST(JsonTokenizerFile, TakesWhatIsNoUtf8ForReplacementCharacters) {
  const auto tokenizer = parse(entries().at(0).at("tokenizer")).value();
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xFF\xE2\x82z")), "a\uFFFD\uFFFD\uFFFDz");
}

}  // namespace
}  // namespace plena
