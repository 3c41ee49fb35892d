#include "plena/model/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/base/shared_data.h"

namespace plena {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<std::uint32_t>;

struct Entry {
  std::string text;
  float score = 0;
};

template <class T>
void append(Bytes& file, T value) {
  const auto at = file.size();
  file.resize(at + sizeof(T));
  std::memcpy(file.data() + at, &value, sizeof(T));
}

Bytes tokenizer_file(const std::vector<Entry>& entries, std::int32_t max_length = 9) {
  Bytes file;
  append(file, max_length);
  for (const Entry& entry : entries) {
    append(file, entry.score);
    append(file, static_cast<std::int32_t>(entry.text.size()));
    file.insert(file.end(), entry.text.begin(), entry.text.end());
  }
  return file;
}

const std::vector<Entry> kSmall = {{"<unk>"},  {"\n<s>\n"}, {"\n</s>\n"}, {"<0x62>"},
                                   {"<0xC3>"}, {"<0xA4>"},  {" ", -9},    {"a", -9},
                                   {"aa", -2}, {" a", -2},  {"aaa", -1}};

Tokenizer make(const std::vector<Entry>& entries) {
  return Tokenizer::parse(tokenizer_file(entries), static_cast<std::uint32_t>(entries.size()), "t")
      .value();
}

Tokenizer stories() {
  return Tokenizer::open(std::string(PLENA_SOURCE_DIR) + "/models/stories260K/tok512.bin", 512)
      .value();
}

std::string rejection(const Bytes& file, std::uint32_t vocab) {
  const auto tokenizer = Tokenizer::parse(file, vocab, "tok.bin");
  return tokenizer ? "accepted" : tokenizer.error().message;
}

TEST(Tokenizer, AnEmptyTextIsBosAlone) {
  EXPECT_THAT(make(kSmall).encode(""), ElementsAre(1));
}

TEST(Tokenizer, MergesTheBestScoreFirstAndTheLeftmostOfEqualOnes) {
  const auto tokenizer = make(kSmall);

  EXPECT_THAT(tokenizer.encode("a"), ElementsAre(1, 9));
  // " aa": " a" and "aa" score the same; the left one wins.
  EXPECT_THAT(tokenizer.encode("aa"), ElementsAre(1, 9, 7));
  // " aaaa" → " a" "aaa": after " a" comes "aa", then "aaa".
  EXPECT_THAT(tokenizer.encode("aaaa"), ElementsAre(1, 9, 10));
}

TEST(Tokenizer, WhatTheVocabularyLacksBecomesBytesAndComesBack) {
  const auto tokenizer = make(kSmall);

  const Ids ids = tokenizer.encode("bä");

  EXPECT_THAT(ids, ElementsAre(1, 6, 3, 4, 5));
  EXPECT_EQ(tokenizer.decode(ids), "bä");
}

TEST(Tokenizer, AByteWithoutATokenIsUnknown) {
  EXPECT_THAT(make(kSmall).encode("z"), ElementsAre(1, 6, 0));
}

TEST(Tokenizer, OnlyTheSpaceAfterBosIsDropped) {
  const auto tokenizer = make(kSmall);

  EXPECT_EQ(tokenizer.decode(1, 9), "a");
  EXPECT_EQ(tokenizer.decode(9, 9), " a");
  EXPECT_EQ(tokenizer.decode(9, 1), "");
  EXPECT_EQ(tokenizer.decode(9, 3), "b");
}

TEST(Tokenizer, RoundTripsAnyBytes) {
  const auto tokenizer = stories();
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string text(1 + random() % 40, ' ');
    for (char& c : text) c = static_cast<char>(round % 2 == 0 ? random() : 'a' + random() % 26);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

// The rule written down again, as slowly and plainly as possible: merge the best pair, the
// leftmost of equal ones, until none is left.
Ids merge_plainly(const std::vector<Entry>& entries, std::vector<std::string> pieces) {
  const auto id_of = [&](const std::string& text) {
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const Entry& e) { return e.text == text; });
    return static_cast<std::size_t>(found - entries.begin());
  };
  for (;;) {
    std::size_t best = pieces.size();
    float best_score = -INFINITY;
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      const auto id = id_of(pieces[i] + pieces[i + 1]);
      if (id == entries.size() || entries[id].score <= best_score) continue;
      best = i;
      best_score = entries[id].score;
    }
    if (best == pieces.size()) break;
    pieces[best] += pieces[best + 1];
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Ids ids{1};
  for (const auto& piece : pieces) ids.push_back(static_cast<std::uint32_t>(id_of(piece)));
  return ids;
}

TEST(Tokenizer, MergesAsTheRuleSaysOnRandomVocabularies) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<Entry> entries = {{"<unk>"}, {"\n<s>\n"}, {"\n</s>\n"}, {" "}, {"x"}, {"y"}};
    for (int i = 0; i < 30; ++i) {
      std::string text(2 + random() % 4, 'x');
      for (char& c : text) c = " xy"[random() % 3];
      entries.push_back({text, static_cast<float>(random() % 8)});
    }
    std::string text(1 + random() % 60, 'x');
    std::vector<std::string> characters{" "};
    for (char& c : text) {
      c = " xy"[random() % 3];
      characters.emplace_back(1, c);
    }
    // Of two tokens with one text, the first counts; the plain rule looks them up alike.
    EXPECT_EQ(make(entries).encode(text), merge_plainly(entries, characters)) << text;
  }
}

TEST(Tokenizer, ReadsTheStoryOfTheReference) {
  PLENA_NEEDS_SHARED();
  const auto reference = nlohmann::json::parse(
      read_text(shared_data() + "/models/stories260K/reference.json").value());
  const auto text = reference.at("text").get<std::string>();
  auto ids = reference.at("greedy_tokens").get<Ids>();
  ids.push_back(stories().encode("he she")[2]);  // the text ends with what follows the last id

  EXPECT_EQ(stories().decode(ids), text);
}

// Documents lie between lines `<|endoftext|>`, without the newlines around them.
std::vector<std::string> documents(std::string_view text) {
  constexpr std::string_view kSeparator = "<|endoftext|>";
  std::vector<std::string> found;
  while (!text.empty()) {
    auto document = text.substr(0, text.find(kSeparator));
    text.remove_prefix(std::min(text.size(), document.size() + kSeparator.size()));
    while (document.starts_with('\n')) document.remove_prefix(1);
    while (document.ends_with('\n')) document.remove_suffix(1);
    if (!document.empty()) found.emplace_back(document);
  }
  return found;
}

TEST(Tokenizer, GivesTheIdsOfAnotherImplementationOnWholeTexts) {
  PLENA_NEEDS_SHARED();
  const auto folder = shared_data() + "/models/stories260K-eval/";
  const auto expected = nlohmann::json::parse(read_text(folder + "token_ids.json").value());
  const auto tokenizer = stories();
  for (const auto& [name, ids] : expected.items()) {
    std::vector<Ids> encoded;
    for (const auto& document : documents(read_text(folder + name).value())) {
      encoded.push_back(tokenizer.encode(document));
    }
    EXPECT_EQ(encoded, ids.get<std::vector<Ids>>()) << name;
  }
}

TEST(Tokenizer, RefusesHostileFiles) {
  const auto vocab = static_cast<std::uint32_t>(kSmall.size());
  const Bytes good = tokenizer_file(kSmall);

  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(rejection({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)}, vocab),
              "accepted");
  }
  EXPECT_THAT(rejection(good, vocab + 1), HasSubstr("holds 11 tokens, the model's vocabulary 12"));
  EXPECT_THAT(rejection(good, vocab - 1), HasSubstr("holds 11 tokens, the model's vocabulary 10"));
  EXPECT_THAT(rejection(tokenizer_file(kSmall, -1), vocab), HasSubstr("max_token_length is -1"));
  EXPECT_THAT(rejection(tokenizer_file(kSmall, 5), vocab), HasSubstr("token 2 has length 6"));
  EXPECT_THAT(rejection(tokenizer_file({{"a", NAN}}), 1), HasSubstr("score of token 0"));
  EXPECT_THAT(rejection({'G', 'G', 'U', 'F'}, 512), HasSubstr("holds 0 tokens"));
}

TEST(Tokenizer, SurvivesMutatedFiles) {
  const auto vocab = static_cast<std::uint32_t>(kSmall.size());
  const Bytes good = tokenizer_file(kSmall);
  std::mt19937 random(5);
  for (int round = 0; round < 5000; ++round) {
    Bytes file = good;
    file[random() % file.size()] = static_cast<std::uint8_t>(random());
    const auto tokenizer = Tokenizer::parse(file, vocab, "tok.bin");
    if (!tokenizer) continue;
    for (const auto id : tokenizer->encode("a ba")) EXPECT_LT(id, vocab);
  }
}

}  // namespace
}  // namespace plena
