#include "plena/asm/formatter.h"

#include <random>

#include <gtest/gtest.h>

#include "plena/asm/assembler.h"

namespace plena {
namespace {

struct Formatted {
  std::string text;
  bool changed = false;
};

Formatted format(std::string_view text) {
  Formatter formatter("f.asm");
  Formatted out;
  formatter.feed(text, out.text);
  EXPECT_TRUE(formatter.finish(out.text));
  out.changed = formatter.changed();
  return out;
}

TEST(Formatter, LaysOutCodeCommentsAndLoops) {
  EXPECT_EQ(format("\n\n; head\n\n\n.EQU N,3*(MLEN+1)\n c_loop_start GP1 ,N ;times\n"
                   "v_add_vv gp1,gp2,GP3,0//sum\n   # inside\nC_LOOP_END gp1\n\n")
                .text,
            "; head\n"
            "\n"
            ".equ N, 3 * (MLEN + 1)\n"
            "C_LOOP_START gp1, N                     ;times\n"
            "  V_ADD_VV gp1, gp2, gp3, 0             //sum\n"
            "  # inside\n"
            "C_LOOP_END gp1\n");
}

TEST(Formatter, LongCodeKeepsItsCommentApart) {
  EXPECT_EQ(format("S_ADDI_INT gp1, gp0, FP_SRAM_DEPTH - INT_SRAM_DEPTH ; x\n").text,
            "S_ADDI_INT gp1, gp0, FP_SRAM_DEPTH - INT_SRAM_DEPTH  ; x\n");
}

TEST(Formatter, LeavesWhatItDoesNotKnow) {
  EXPECT_EQ(format("  bogus   a ,b ; why\n").text,
            "bogus   a ,b                            ; why\n");
  EXPECT_EQ(format("LI gp1, a & b\n").text, "LI gp1, a & b\n");
}

TEST(Formatter, SpacesExpressions) {
  EXPECT_EQ(format_expression("1+2*-3"), "1 + 2 * -3");
  EXPECT_EQ(format_expression("( - ( a<<2 )%b )"), "(-(a << 2) % b)");
  EXPECT_EQ(format_expression("5  5"), "5 5");
  EXPECT_EQ(format_expression(""), "");
}

TEST(Formatter, KeepsTheCaseOfSymbols) {
  EXPECT_EQ(format(".equ F1, 2\nli GP1, F1\n").text, ".equ F1, 2\nLI gp1, F1\n");
}

TEST(Formatter, KnowsWhetherAnythingChanged) {
  EXPECT_FALSE(format("").changed);
  EXPECT_FALSE(format("C_BREAK\n\n; end\n").changed);
  EXPECT_TRUE(format("C_BREAK").changed);  // no line end
  EXPECT_TRUE(format("C_BREAK\r\n").changed);
  EXPECT_TRUE(format("C_BREAK\n\n").changed);  // empty line at the end
  EXPECT_TRUE(format("\nC_BREAK\n").changed);
  EXPECT_TRUE(format("C_BREAK\n\n\nC_BREAK\n").changed);
  EXPECT_TRUE(format("C_BREAK \n").changed);
}

TEST(Formatter, RefusesWhatIsNoText) {
  Formatter formatter("f.asm");
  std::string out;
  formatter.feed(std::string_view("C_BREAK\n\0\n", 10), out);
  const auto status = formatter.finish(out);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().place.line, 2U);
}

std::string random_source(std::mt19937& random) {
  constexpr std::string_view kLines[] = {"li gp1,(MLEN<<2)+BLEN",
                                         "  C_LOOP_START gp2 , 3;x",
                                         "C_LOOP_END GP2,0",
                                         "",
                                         "   ",
                                         "# note  ",
                                         "// n",
                                         "S_ADD_FP f1,F2 ,f3 ; é",
                                         ".equ X_, 1",
                                         "V_EXP_V gp1,gp2,1",
                                         "M_MM_WO gp1,0,- -5",
                                         "LI gp3,1- -2",
                                         ".word 0XFF",
                                         ".region a/b",
                                         ".endregion",
                                         "\tC_BREAK\t",
                                         "M_MM 0,gp1,gp2 // a ; b"};
  std::string text;
  for (auto i = random() % 30; i > 0; --i) {
    text += kLines[random() % std::size(kLines)];
    text += random() % 5 == 0 ? "\r\n" : "\n";
  }
  return text;
}

TEST(Formatter, IsIdempotentAndKeepsTheWords) {
  const AssemblyOptions options{"f.asm", {}, {{"MLEN", 64}, {"BLEN", 4}}};
  std::mt19937 random(4);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = random_source(random);
    const Formatted once = format(text);
    const Formatted twice = format(once.text);
    ASSERT_EQ(once.text, twice.text) << text;
    ASSERT_FALSE(twice.changed) << once.text;
    ASSERT_EQ(once.changed, once.text != text) << text;
    ASSERT_EQ(assemble(text, options).program.words, assemble(once.text, options).program.words);
  }
}

TEST(Formatter, IsIdempotentOnNoise) {
  constexpr std::string_view kLetters = "C_BREAKLIgp1,;#/ \t\n\r+-*<>()0xé.";
  std::mt19937 random(6);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (auto i = random() % 60; i > 0; --i) {
      text += kLetters[random() % kLetters.size()];
    }
    const std::string once = format(text).text;
    ASSERT_EQ(format(once).text, once) << text;
  }
}

}  // namespace
}  // namespace plena
