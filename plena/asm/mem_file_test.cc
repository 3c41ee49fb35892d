#include "plena/asm/mem_file.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plena/base/files.h"
#include "plena/base/scratch_folder.h"

namespace plena {
namespace {

using testing::ElementsAre;

TEST(MemFile, WritesOneWordALine) {
  const std::vector<std::uint32_t> words = {0x8401, 0xFFFFFFFF};
  EXPECT_EQ(mem_text(words), "0x00008401\n0xFFFFFFFF\n");
}

// semantics 2: any white space, 0x optional.
TEST(MemFile, ReadsAnyWhiteSpaceAndAnOptionalPrefix) {
  const auto words = parse_mem("0x00008401 ffffffff\r\n\t0X1\v2\f\n\n00000000000A", "f.mem");
  ASSERT_TRUE(words) << words.error().render();
  EXPECT_THAT(*words, ElementsAre(0x8401U, 0xFFFFFFFFU, 1U, 2U, 10U));
  EXPECT_TRUE(parse_mem("", "f.mem")->empty());
}

TEST(MemFile, ABadTokenIsAnErrorWithItsPlace) {
  const auto words = parse_mem("0x1\n 0x2 zebra 0x3\n", "f.mem");
  ASSERT_FALSE(words);
  EXPECT_EQ(words.error().place.file, "f.mem");
  EXPECT_EQ(words.error().place.line, 2U);
  EXPECT_EQ(words.error().place.column, 6U);
}

TEST(MemFile, RefusesWhatIsNoWord) {
  for (const char* bad : {"0x", "100000000", "0x123456789", "-1", "0x1,", "1 ; comment", "0x0x1",
                          "\xFF", "F0000000F"}) {
    EXPECT_FALSE(parse_mem(bad, "f.mem")) << bad;
  }
  EXPECT_FALSE(parse_mem(std::string_view("1 \0 2", 5), "f.mem"));
  EXPECT_FALSE(parse_mem(std::string(1'000'000, 'F'), "f.mem"));
}

TEST(MemFile, RandomBytesNeverCrash) {
  std::mt19937 random(9);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (auto i = random() % 64; i > 0; --i) {
      text +=
          random() % 2 == 0 ? static_cast<char>(random()) : "0123456789abcdefx \n"[random() % 19];
    }
    (void)parse_mem(text, "noise.mem");
  }
}

TEST(MemFile, WhatIsWrittenIsReadBack) {
  std::mt19937 random(2);
  std::vector<std::uint32_t> words(100'000);
  for (auto& word : words) word = static_cast<std::uint32_t>(random());
  const ScratchFolder scratch;
  const std::string path = scratch.file("words.mem");
  std::string text;
  ASSERT_TRUE(write_mem(words, [&](std::string_view piece) {
    text += piece;
    return Status();
  }));
  EXPECT_EQ(text, mem_text(words));
  ASSERT_TRUE(write_text(path, text));
  const auto read = read_mem_file(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, words);
}

}  // namespace
}  // namespace plena
