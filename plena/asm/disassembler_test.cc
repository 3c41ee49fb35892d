#include "plena/asm/disassembler.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plena/asm/assembler.h"

namespace plena {
namespace {

TEST(Disassembler, WritesInstructionsAsTheSpecificationDoes) {
  EXPECT_EQ(disassemble({.op = Op::M_MM, .rs1 = 1, .rs2 = 2}), "M_MM 0, gp1, gp2");
  EXPECT_EQ(
      disassemble({.op = Op::V_SUB_VF, .rd = 15, .rs1 = 14, .rs2 = 7, .select = 13, .order = 1}),
      "V_SUB_VF gp15, gp14, f7, gp13, 1");
  EXPECT_EQ(disassemble({.op = Op::H_PREFETCH_M, .rd = 1, .rs1 = 2, .rs2 = 7, .select = 1}),
            "H_PREFETCH_M gp1, gp2, a7, 1, 0");
  EXPECT_EQ(disassemble({.op = Op::C_LOOP_END, .rd = 4}), "C_LOOP_END gp4, 0");
  EXPECT_EQ(disassemble({.op = Op::C_BREAK}), "C_BREAK");
}

TEST(Disassembler, WhatNoTextCanSayBecomesAWord) {
  const Dialect dialect;
  EXPECT_EQ(disassemble(0x0000002F, dialect), ".word 0x0000002F ; C_LOOP_START gp0, 0");
  EXPECT_EQ(disassemble(0x00000217, Dialect::plena_rs()), ".word 0x00000217 ; S_ADD_FP f8, f0, f0");
  EXPECT_EQ(disassemble(0x00000000, dialect), ".word 0x00000000 ; opcode 0x00 is not assigned");
}

std::vector<Dialect> all_dialects() {
  std::vector<Dialect> dialects = {Dialect::plena_rs()};
  for (unsigned set = 0; set < 1U << (kExtensionCount - 1); ++set) {
    Dialect dialect;
    for (std::size_t i = 1; i < kExtensionCount; ++i) {
      if ((set >> (i - 1) & 1U) != 0) dialect.enable(static_cast<Extension>(i));
    }
    dialects.push_back(dialect);
  }
  dialects.push_back(Dialect().enable(RsSwitch::Decode));
  dialects.push_back(Dialect().enable(RsSwitch::Registers));
  return dialects;
}

// Words that decode more often than random ones: each field is likely 0 or small.
std::uint32_t likely_word(std::mt19937& random, std::uint32_t opcode) {
  std::uint32_t word = opcode;
  for (const unsigned shift : {6U, 10U, 14U, 18U, 22U}) {
    const auto kind = static_cast<std::uint32_t>(random() % 4);
    const std::uint32_t largest[] = {0, 1, 7, 15};
    word |= (static_cast<std::uint32_t>(random()) % (largest[kind] + 1)) << shift;
  }
  if (random() % 4 == 0) word |= static_cast<std::uint32_t>(random()) & 0xFC000000;
  return word;
}

TEST(Disassembler, TextAssemblesToTheSameWordForEveryWordThatDecodes) {
  std::mt19937 random(5);
  for (const auto& dialect : all_dialects()) {
    std::vector<std::uint32_t> words;
    for (std::uint32_t opcode = 0; opcode < kOpcodeCount; ++opcode) {
      for (int i = 0; i < 60; ++i) {
        const std::uint32_t word = likely_word(random, opcode);
        if (decode(word, dialect)) words.push_back(word);
      }
    }
    ASSERT_GT(words.size(), 500U) << dialect.name();
    std::string text;
    ASSERT_TRUE(disassemble(words, dialect, [&](std::string_view piece) {
      text += piece;
      return Status();
    }));
    const Assembly again = assemble(text, {"again.asm", dialect, {}});
    ASSERT_TRUE(again.ok()) << dialect.name() << "\n" << first_error(again).render();
    EXPECT_EQ(again.program.words, words) << dialect.name();
  }
}

TEST(Disassembler, IndentsLoopBodies) {
  const std::vector<std::uint32_t> words = {encode({.op = Op::C_LOOP_START, .rd = 1, .imm = 2}),
                                            encode({.op = Op::C_BREAK}),
                                            encode({.op = Op::C_LOOP_END, .rd = 1})};
  std::string text;
  ASSERT_TRUE(disassemble(words, Dialect(), [&](std::string_view piece) {
    text += piece;
    return Status();
  }));
  EXPECT_EQ(text, "C_LOOP_START gp1, 2\n  C_BREAK\nC_LOOP_END gp1, 0\n");
}

TEST(Disassembler, PassesOnWhatItsSinkSays) {
  const std::vector<std::uint32_t> words = {encode({.op = Op::C_BREAK})};
  const auto status = disassemble(
      words, Dialect(), [](std::string_view) -> Status { return fail(ErrorCode::Io, "full"); });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "full");
}

}  // namespace
}  // namespace plena
