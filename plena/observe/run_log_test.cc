// Values are worked out by hand: bf16 1.5 = 0x3FC0, 3 = 0x4040; E4M3 3 = 0x44.
#include "plena/observe/run_log.h"

#include <gmock/gmock.h>

#include "plena/observe/observe_fixture.h"

namespace plena {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

class RunLogTest : public ObserveTest {
 protected:
  // The lines of a run of these instructions, the first on source line 10, then 11, …
  std::vector<std::string> log(const std::vector<Instruction>& instructions) {
    Program program;
    program.source_name = "folder/k.asm";
    for (const auto& instruction : instructions) {
      program.lines.push_back(static_cast<std::uint32_t>(10 + program.words.size()));
      program.words.push_back(encode(instruction));
    }
    const auto prepared = prepare(program.words, machine_.settings, machine_.dialect);
    EXPECT_TRUE(prepared);
    std::FILE* out = std::tmpfile();
    RunLog run_log(program, out);
    run(machine_, **prepared, {.observer = &run_log});
    EXPECT_TRUE(run_log.finish());
    return lines_of(out);
  }

 private:
  static std::vector<std::string> lines_of(std::FILE* file) {
    EXPECT_EQ(std::fseek(file, 0, SEEK_SET), 0);
    std::vector<std::string> lines;
    std::string line;
    for (int c = 0; (c = std::fgetc(file)) != EOF;) {
      if (c != '\n') {
        line += static_cast<char>(c);
      } else {
        lines.push_back(std::exchange(line, {}));
      }
    }
    EXPECT_EQ(line, "") << "the last line ends";
    std::fclose(file);
    return lines;
  }
};

TEST_F(RunLogTest, ALineNamesPcSourceInstructionAndEffect) {
  const auto lines = log({{.op = Op::S_ADDI_INT, .rd = 1, .rs1 = 0, .imm = 300}});

  EXPECT_THAT(lines, ElementsAre("     0  k.asm:10    S_ADDI_INT gp1, gp0, 300              "
                                 "gp1 = 0x0000012C (300)"));
}

TEST_F(RunLogTest, ALoopShowsEachIteration) {
  const auto lines =
      log({{.op = Op::C_LOOP_START, .rd = 1, .imm = 2}, {.op = Op::C_LOOP_END, .rd = 1}});

  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], EndsWith("gp1 = 0x00000002 (2)"));
  EXPECT_THAT(lines[1], EndsWith("gp1 = 0x00000001 (1)"));
  EXPECT_THAT(lines[2], EndsWith("gp1 = 0x00000000 (0)"));
}

TEST_F(RunLogTest, ShowsScalarsAsBitsAndNumbers) {
  machine_.fp_mem[2] = 0x3FC0;

  const auto lines = log({{.op = Op::S_LD_FP, .rd = 1, .imm = 2},
                          {.op = Op::S_ADD_FP, .rd = 2, .rs1 = 1, .rs2 = 1},
                          {.op = Op::S_ST_FP, .rd = 2, .imm = 7}});

  EXPECT_THAT(lines[0], EndsWith("f1 = 1.5 (0x3FC0)"));
  EXPECT_THAT(lines[1], EndsWith("f2 = 3 (0x4040)"));
  EXPECT_THAT(lines[2], EndsWith("fp[7] = 3 (0x4040)"));
}

TEST_F(RunLogTest, ShowsTheFirstLanesOfARow) {
  ASSERT_TRUE(machine_.write_elements(MemoryKind::Vram, 17, Bytes{0xC0, 0x3F}));

  const auto lines = log({{.op = Op::S_ADDI_INT, .rd = 1, .imm = 16},
                          {.op = Op::S_ADDI_INT, .rd = 2, .imm = 32},
                          {.op = Op::V_ADD_VV, .rd = 2, .rs1 = 1, .rs2 = 1}});

  EXPECT_THAT(lines[2], EndsWith("vram[32] = 0 3 0 0 0 0 0 0 ... (16 elements)"));
}

TEST_F(RunLogTest, ShowsWhereATransferWent) {
  // Row 0 holds a 3 in lane 0: block scale 2^(1-8), so 0x78, and an element of 384 (0x7C); the
  // other block is zeros with scale 0 (semantics 5.2).
  ASSERT_TRUE(machine_.write_elements(MemoryKind::Vram, 0, Bytes{0x40, 0x40}));

  const auto lines = log({{.op = Op::S_LUI_INT, .rd = 1, .imm = 1},
                          {.op = Op::S_ADDI_INT, .rd = 2, .imm = 256},
                          {.op = Op::C_SET_ADDR_REG, .rd = 3, .rs1 = 0, .rs2 = 2},
                          {.op = Op::C_SET_SCALE_REG, .rd = 1},
                          {.op = Op::H_STORE_V, .rs2 = 3},
                          {.op = Op::H_PREFETCH_V, .rs2 = 3}});

  EXPECT_THAT(lines[2], EndsWith("a3 = 0x0000000000000100 (256)"));
  EXPECT_THAT(lines[3], EndsWith("SCALE_REG = 0x00001000 (4096)"));
  EXPECT_THAT(lines[4], EndsWith("hbm[0x100], 64 bytes + 8 of scales at hbm[0x1100] = "
                                 "7C 00 00 00 00 00 00 00 ..."));
  EXPECT_THAT(lines[5], EndsWith("vram[0] = 3 0 0 0 0 0 0 0 ... (64 elements) from hbm[0x100], 64 "
                                 "bytes + 8 of scales at hbm[0x1100]"));
}

TEST_F(RunLogTest, ShowsAccumulatorsAndTheirWriteOut) {
  // V row 0 is 1.5 in lane 0, M[0][0..3] is 1.5: the first accumulator becomes 2.25.
  ASSERT_TRUE(machine_.write_elements(MemoryKind::Vram, 0, Bytes{0xC0, 0x3F}));
  ASSERT_TRUE(machine_.write_elements(MemoryKind::Mram, 0, Bytes{0xC0, 0x3F}));

  const auto lines = log({{.op = Op::M_MM}, {.op = Op::M_MM_WO, .imm = 4}});

  EXPECT_THAT(lines[0], EndsWith("array[BLEN x BLEN] = 2.25 0 0 0 0 0 0 0 ... (16 elements)"));
  EXPECT_THAT(lines[1], EndsWith("vram[4] = 2.25 0 0 0 in the first of 4 rows"));
}

TEST_F(RunLogTest, AnInstructionThatTrapsIsNotLogged) {
  const auto lines = log({{.op = Op::S_ADDI_INT, .rd = 1, .imm = 1}, {.op = Op::M_MM, .rs1 = 1}});

  EXPECT_EQ(lines.size(), 1U);
}

TEST_F(RunLogTest, AFullDiskIsAnError) {
  Program program{{encode({.op = Op::V_EXP_V})}, {}, {}};
  const auto prepared = prepare(program.words, machine_.settings, machine_.dialect);
  std::FILE* full = std::fopen("/dev/full", "w");
  RunLog run_log(program, full);
  run(machine_, **prepared, {.observer = &run_log});

  EXPECT_FALSE(run_log.finish());
  std::fclose(full);
}

}  // namespace
}  // namespace plena
