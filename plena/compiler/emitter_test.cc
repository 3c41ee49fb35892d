#include "plena/compiler/emitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plena {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Instruction> decoded(const EmittedProgram& emitted) {
  std::vector<Instruction> out;
  for (const std::uint32_t word : emitted.program.words) out.push_back(*decode(word, Dialect()));
  return out;
}

TEST(Emitter, PutsOperandsInTheOrderOfTheText) {
  Emitter e;
  e.emit(Op::V_SUB_VF, {Gp{3}, Gp{4}, Fp{5}, 0, 1}, "reverse");
  e.emit(Op::M_MV, {Gp{1}, Gp{2}});
  const auto emitted = std::move(e).finish().value();
  EXPECT_THAT(decoded(emitted),
              ElementsAre(Instruction{.op = Op::V_SUB_VF, .rd = 3, .rs1 = 4, .rs2 = 5, .order = 1},
                          Instruction{.op = Op::M_MV, .rs1 = 1, .rs2 = 2}));
  EXPECT_THAT(emitted.text, HasSubstr("V_SUB_VF gp3, gp4, f5, 0, 1"));
  EXPECT_THAT(emitted.text, HasSubstr("; reverse"));
  EXPECT_THAT(emitted.text, HasSubstr("M_MV 0, gp1, gp2\n"));
}

// semantics 2: LI is one word below 2^18, one where the low 12 bits are 0, else two.
TEST(Emitter, MakesConstantsAsLiDoes) {
  Emitter e;
  e.set(Gp{1}, kImm18Max);
  e.set(Gp{1}, 0x40000);
  e.set(Gp{1}, 0xFFFFFFFF);
  const auto emitted = std::move(e).finish().value();
  EXPECT_THAT(decoded(emitted),
              ElementsAre(Instruction{.op = Op::S_ADDI_INT, .rd = 1, .imm = kImm18Max},
                          Instruction{.op = Op::S_LUI_INT, .rd = 1, .imm = 0x40},
                          Instruction{.op = Op::S_LUI_INT, .rd = 1, .imm = 0xFFFFF},
                          Instruction{.op = Op::S_ADDI_INT, .rd = 1, .rs1 = 1, .imm = 0xFFF}));
  EXPECT_THAT(emitted.program.lines, ElementsAre(1, 2, 3, 3));
}

TEST(Emitter, AdvancesByMoreThanAnImmediateHolds) {
  Emitter e;
  e.advance(Gp{2}, kImm18Max + 1);
  const auto emitted = std::move(e).finish().value();
  EXPECT_THAT(decoded(emitted),
              ElementsAre(Instruction{.op = Op::S_LUI_INT, .rd = 15, .imm = 0x40},
                          Instruction{.op = Op::S_ADD_INT, .rd = 2, .rs1 = 2, .rs2 = 15}));
}

TEST(Emitter, EmitsALoopOfOneIterationBare) {
  Emitter e;
  {
    Loop once(e, 1, "once");
    Loop thrice(e, 3, "thrice");
    e.emit(Op::V_EXP_V, {Gp{1}, Gp{2}, 0});
  }
  const auto emitted = std::move(e).finish().value();
  EXPECT_THAT(decoded(emitted), ElementsAre(Instruction{.op = Op::C_LOOP_START, .rd = 1, .imm = 3},
                                            Instruction{.op = Op::V_EXP_V, .rd = 1, .rs1 = 2},
                                            Instruction{.op = Op::C_LOOP_END, .rd = 1}));
}

// semantics 6.11: END leaves a counter of 0 as it is and falls through, else goes back.
TEST(Emitter, WalksUntilThePointerIsAtItsEnd) {
  Emitter e;
  {
    WalkLoop walk(e, Gp{7}, Gp{8}, "tiles");
    e.advance(Gp{7}, 64);
  }
  const auto emitted = std::move(e).finish().value();
  EXPECT_THAT(decoded(emitted),
              ElementsAre(Instruction{.op = Op::C_LOOP_START, .rd = 1, .imm = 1},
                          Instruction{.op = Op::S_ADDI_INT, .rd = 7, .rs1 = 7, .imm = 64},
                          Instruction{.op = Op::S_SUB_INT, .rd = 1, .rs1 = 8, .rs2 = 7},
                          Instruction{.op = Op::C_LOOP_END, .rd = 1}));
}

TEST(Emitter, SweepsUntilATurnStartsAtTheLast) {
  Emitter e;
  {
    SweepLoop sweep(e, Gp{7}, Gp{8}, "tiles");
    e.advance(Gp{7}, 64);
  }
  const auto emitted = std::move(e).finish().value();
  EXPECT_THAT(decoded(emitted),
              ElementsAre(Instruction{.op = Op::C_LOOP_START, .rd = 1, .imm = 1},
                          Instruction{.op = Op::S_SUB_INT, .rd = 1, .rs1 = 8, .rs2 = 7},
                          Instruction{.op = Op::S_ADDI_INT, .rd = 7, .rs1 = 7, .imm = 64},
                          Instruction{.op = Op::C_LOOP_END, .rd = 1}));
}

TEST(Emitter, HandsOutARegisterAgainOnceItIsGivenBack) {
  Emitter e;
  std::uint8_t first = 0;
  {
    const HeldGp held(e, "first");
    first = static_cast<Gp>(held).index;
  }
  const HeldGp next(e, "next");
  const HeldGp other(e, "other");
  EXPECT_EQ(static_cast<Gp>(next).index, first);
  EXPECT_NE(static_cast<Gp>(other).index, first);
}

TEST(Emitter, RefusesWhatAnInstructionCannotSay) {
  const auto error_of = [](auto&& emit_something) {
    Emitter e;
    emit_something(e);
    const auto finished = std::move(e).finish();
    return finished ? std::string() : finished.error().message;
  };
  EXPECT_THAT(error_of([](Emitter& e) { e.emit(Op::S_LD_INT, {Gp{1}, Gp{0}, kImm18Max + 1}); }),
              HasSubstr("S_LD_INT: 262144 does not fit"));
  EXPECT_THAT(error_of([](Emitter& e) { e.emit(Op::M_MV, {Gp{1}}); }), HasSubstr("'rs2'"));
  EXPECT_THAT(error_of([](Emitter& e) { e.emit(Op::M_MV, {Gp{1}, Fp{1}}); }), HasSubstr("'rs2'"));
  EXPECT_THAT(error_of([](Emitter& e) { e.emit(Op::C_BREAK, {Gp{1}}); }), HasSubstr("too many"));
  EXPECT_THAT(error_of([](Emitter& e) { e.set(Gp{1}, std::uint64_t{1} << 32); }),
              HasSubstr("4294967296"));
  EXPECT_THAT(error_of([](Emitter& e) {
                std::vector<std::unique_ptr<HeldGp>> held;
                for (int i = 0; i < 15; ++i) held.push_back(std::make_unique<HeldGp>(e, "many"));
              }),
              HasSubstr("no general-purpose register is left for 'many'"));
  EXPECT_THAT(error_of([](Emitter&) {}), IsEmpty());
}

}  // namespace
}  // namespace plena
