// rs-decode, rs-registers, rs-break and rs-loops, each alone (dialect-plena-rs.md 0 and 4).
#include "plena/sim/rs_fixture.h"

namespace plena {
namespace {

constexpr Instruction kBreak{.op = Op::C_BREAK};
constexpr std::uint32_t kReservedBit = 1U << 31;
constexpr std::uint32_t kUnassigned = 0x3F;

// ------------------------------------------------------------ rs-decode

TEST(RsDecode, IgnoresReservedBits) {
  const std::uint32_t word = encode({.op = Op::S_ADD_INT, .rd = 2, .rs1 = 1, .rs2 = 1});

  expect_trap(RsBench("plena").run_words({word | kReservedBit}), TrapCause::IllegalInstruction, 0);

  RsBench bench("plena+rs-decode");
  bench.gp(1, 21);
  EXPECT_EQ(bench.run_words({word | kReservedBit}).reason, StopReason::Halted);
  EXPECT_EQ(bench.machine.gp[2], 42U);
}

TEST(RsDecode, AnUnassignedOpcodeTrapsWhenItIsReached) {
  RsBench bench("plena+rs-decode");

  expect_trap(bench.run_words({encode(addi(1, 0, 7)), kUnassigned}), TrapCause::IllegalInstruction,
              1);
  EXPECT_EQ(bench.machine.gp[1], 7U);
}

TEST(RsDecode, ARegisterThatDoesNotExistTrapsWhenItIsReached) {
  const std::uint32_t f9 = encode({.op = Op::S_ADD_FP, .rd = 1, .rs1 = 9, .rs2 = 1});
  RsBench bench("plena+rs-decode");

  expect_trap(bench.run_words({encode(addi(1, 0, 7)), f9}), TrapCause::IllegalInstruction, 1);
  EXPECT_EQ(bench.machine.gp[1], 7U);
}

TEST(RsDecode, ArithmeticIntoF0NeverReachesItsSources) {
  RsBench bench("plena+rs-decode");

  EXPECT_EQ(bench.run({{.op = Op::S_ADD_FP, .rd = 0, .rs1 = 9, .rs2 = 9}}).reason,
            StopReason::Halted);
}

TEST(RsDecode, WriteOutImmediatesBeginAtBit14) {
  // 16 << 4 in a field that begins at bit 10 is 16 in one that begins at bit 14: row 2 becomes the
  // zeros of a clear array, row 32 keeps its ones.
  const Instruction write_out{.op = Op::M_MV_WO, .rd = 0, .imm = 16U << 4};
  RsBench bench("plena+rs-decode");
  bench.row(16, std::vector<float>(8, 1)).row(256 - 8, std::vector<float>(8, 1));

  ASSERT_EQ(bench.run({write_out}).reason, StopReason::Halted);

  EXPECT_EQ(bench.lanes(16), std::vector<float>(8, 0));
  EXPECT_EQ(bench.lanes(256 - 8), std::vector<float>(8, 1));
}

TEST(RsDecode, AnyOrderThatIsNotZeroReverses) {
  RsBench bench("plena+rs-decode");
  bench.gp(1, 8).f(1, 10).row(0, std::vector<float>(8, 3));

  ASSERT_EQ(bench.run({{.op = Op::V_SUB_VF, .rd = 1, .rs2 = 1, .order = 5}}).reason,
            StopReason::Halted);

  EXPECT_EQ(bench.lane(8), 7);
}

TEST(RsDecode, OnlyAnRstrideOfExactlyOneStrides) {
  // Two rows of 8: with STRIDE_REG 32 the second comes from element 32, else from element 8.
  const auto second_row = [](std::uint8_t rstride) {
    RsBench bench("plena+rs-decode");
    bench.machine.a_set = 1;
    bench.machine.scale_set = bench.machine.stride_set = true;
    bench.machine.stride = 32;
    bench.machine.scale = 1024;
    bench.hbm(8, std::vector<std::uint8_t>(8, 0x38));   // 1.0
    bench.hbm(32, std::vector<std::uint8_t>(8, 0x40));  // 2.0
    bench.hbm(1024, std::vector<std::uint8_t>(8, 127));
    bench.run({{.op = Op::H_PREFETCH_V, .select = rstride}});
    return bench.lane(8);
  };

  EXPECT_EQ(second_row(1), 2);
  EXPECT_EQ(second_row(0), 1);
  EXPECT_EQ(second_row(2), 1);
}

TEST(RsDecode, BroadcastProductsWithAnRdFieldAreRefusedAtLoad) {
  RsBench bench("plena+rs-decode");
  const std::uint32_t word = encode({.op = Op::M_BTMM, .rd = 1});

  // Unreachable, after a fault: still refused before anything runs.
  expect_trap(bench.run_words({encode(addi(1, 0, 7)), kUnassigned, word}),
              TrapCause::IllegalInstruction, 2);
  EXPECT_EQ(bench.machine.gp[1], 0U);
}

TEST(RsDecode, AddressSumsWrap) {
  RsBench bench("plena+rs-decode");
  bench.gp(1, 0xFFFF'FFFF);
  bench.machine.fp_mem[2] = 0x40A0;  // 5.0

  ASSERT_EQ(bench.run({{.op = Op::S_LD_FP, .rd = 1, .rs1 = 1, .imm = 3}}).reason,
            StopReason::Halted);

  EXPECT_EQ(bench.f(1), 5);
}

TEST(RsDecode, AnUnknownTopKPolicyTrapsWhenItIsReached) {
  RsBench bench("plena+moe+rs-decode");

  expect_trap(bench.run({addi(1, 0, 7), {.op = Op::V_TOPK, .select = 2}}),
              TrapCause::IllegalInstruction, 1);
  EXPECT_EQ(bench.machine.gp[1], 7U);
}

// ------------------------------------------------------------ rs-registers

TEST(RsRegisters, Gp0IsARegisterLikeTheOthers) {
  RsBench bench("plena+rs-registers");

  bench.run({addi(0, 0, 5), addi(1, 0, 2)});

  EXPECT_EQ(bench.machine.gp[0], 5U);
  EXPECT_EQ(bench.machine.gp[1], 7U);
}

TEST(RsRegisters, OnlyALoadWritesF0) {
  RsBench bench("plena+rs-registers");
  bench.machine.fp_mem[0] = 0x40A0;  // 5.0

  bench.run({{.op = Op::S_LD_FP, .rd = 0},
             {.op = Op::S_ADD_FP, .rd = 0, .rs1 = 0, .rs2 = 0},
             {.op = Op::S_ADD_FP, .rd = 1, .rs1 = 0, .rs2 = 0}});

  EXPECT_EQ(bench.f(0), 5);
  EXPECT_EQ(bench.f(1), 10);
}

TEST(RsRegisters, AReductionIntoF0LooksAtNothing) {
  RsBench bench("plena+rs-registers");
  bench.gp(1, 0xFFFF'0001);  // no row of Vector SRAM

  EXPECT_EQ(bench.run({{.op = Op::V_RED_SUM, .rs1 = 1}, {.op = Op::V_RED_MAX, .rs1 = 1}}).reason,
            StopReason::Halted);
}

TEST(RsRegisters, SixteenAddressRegisters) {
  RsBench bench("plena+rs-registers");
  bench.gp(1, 1).gp(2, 2);

  ASSERT_EQ(bench.run({{.op = Op::C_SET_ADDR_REG, .rd = 15, .rs1 = 1, .rs2 = 2}}).reason,
            StopReason::Halted);

  EXPECT_EQ(bench.machine.a[15], 0x1'0000'0002U);
}

TEST(RsRegisters, NothingIsUnsetAndTheStrideStartsAtOne) {
  RsBench bench("plena+rs-registers");
  bench.hbm(0, {127, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40});

  // Row 0 reads bytes 0…7, row 1 bytes 1…8; the scale byte of both is byte 0 of HBM, 1.0.
  ASSERT_EQ(bench.run({{.op = Op::H_PREFETCH_V, .select = 1}}).reason, StopReason::Halted);

  EXPECT_EQ(bench.lane(7), 2);
  EXPECT_EQ(bench.lane(8), 2);
}

// ------------------------------------------------------------ rs-break

TEST(RsBreak, PopsTheInnermostLoopAndGoesOn) {
  RsBench bench("plena+rs-break");

  ASSERT_EQ(bench.run({loop_start(1, 3), addi(2, 2, 1), kBreak, addi(3, 3, 1), loop_end(1)}).reason,
            StopReason::Halted);

  EXPECT_EQ(bench.machine.gp[1], 0U);
  EXPECT_EQ(bench.machine.gp[2], 1U);
  EXPECT_EQ(bench.machine.gp[3], 1U);
}

TEST(RsBreak, LeavesTheLoopAroundRunning) {
  RsBench bench("plena+rs-break");

  bench.run({loop_start(1, 4), loop_start(2, 9), addi(3, 3, 1), kBreak, loop_end(2), loop_end(1)});

  EXPECT_EQ(bench.machine.gp[3], 4U);
}

TEST(RsBreak, WithRsLoopsTheEndOfAPoppedLoopIsAFault) {
  RsBench bench("plena+rs-break+rs-loops");

  expect_trap(bench.run({loop_start(1, 3), kBreak, loop_end(1)}), TrapCause::LoopStructure, 2);
}

TEST(RsBreak, OutsideALoopIsAFault) {
  expect_trap(RsBench("plena+rs-break").run({kBreak}), TrapCause::LoopStructure, 0);
}

TEST(RsBreak, KeepsTheCountsOfTheLimitForTheInnermostLoop) {
  // One iteration of the outer loop is START, END of the inner loop's two rounds do not count for
  // it: START, ADDI, END = 3.
  Settings settings = tiny_settings();
  settings.max_loop_instructions = 3;
  const std::vector<Instruction> program = {loop_start(1, 2), loop_start(2, 2), loop_end(2),
                                            addi(3, 3, 1), loop_end(1)};

  EXPECT_EQ(RsBench("plena+rs-break", settings).run(program).reason, StopReason::Halted);
  settings.max_loop_instructions = 2;
  expect_trap(RsBench("plena+rs-break", settings).run(program), TrapCause::LoopLimit, 4);
}

// ------------------------------------------------------------ rs-loops

TEST(RsLoops, AnOpenLoopIsNoFault) {
  RsBench bench("plena+rs-loops");

  EXPECT_EQ(bench.run({loop_start(1, 3), addi(2, 2, 1)}).reason, StopReason::Halted);
  EXPECT_EQ(bench.machine.gp[1], 3U);
}

TEST(RsLoops, LoopFaultsWaitUntilTheyAreReached) {
  for (const Instruction& faulty : {loop_start(1, 0), loop_start(0, 3), loop_end(1)}) {
    RsBench bench("plena+rs-loops");

    expect_trap(bench.run({addi(2, 2, 7), faulty, loop_end(0)}), TrapCause::LoopStructure, 1);
    EXPECT_EQ(bench.machine.gp[2], 7U);
  }
}

TEST(RsLoops, WithRsRegistersGp0CountsALoop) {
  RsBench bench("plena+rs-loops+rs-registers");

  ASSERT_EQ(bench.run({loop_start(0, 3), addi(2, 2, 1), loop_end(0)}).reason, StopReason::Halted);

  EXPECT_EQ(bench.machine.gp[2], 3U);
}

TEST(RsLoops, TheCounterIsReadWhenTheLoopEnds) {
  RsBench bench("plena+rs-loops");

  bench.run({loop_start(1, 100), addi(2, 2, 1), addi(1, 0, 1), loop_end(1)});

  EXPECT_EQ(bench.machine.gp[2], 1U);
  EXPECT_EQ(bench.machine.gp[1], 0U);
}

TEST(RsLoops, CrossedLoopsFaultAtTheSecondEndOfTheInnerCounter) {
  RsBench bench("plena+rs-loops");

  // END gp1 jumps back over START gp2, which is then on the stack twice; the last END gp2 finds
  // both gone only after one too many of them ran.
  const Stop stop = bench.run(
      {loop_start(1, 2), loop_start(2, 1), loop_end(1), loop_end(2), loop_end(2), loop_end(2)});

  expect_trap(stop, TrapCause::LoopStructure, 5);
}

TEST(RsLoops, TheLimitCountsForEveryActiveLoop) {
  // The outer iteration dispatches START, ADDI, END, ADDI, END, END = 6 instructions.
  const std::vector<Instruction> program = {loop_start(1, 2), loop_start(2, 2), addi(3, 3, 1),
                                            loop_end(2), loop_end(1)};
  Settings settings = tiny_settings();
  settings.max_loop_instructions = 6;
  EXPECT_EQ(RsBench("plena+rs-loops", settings).run(program).reason, StopReason::Halted);

  settings.max_loop_instructions = 5;
  expect_trap(RsBench("plena+rs-loops", settings).run(program), TrapCause::LoopLimit, 4);
  EXPECT_EQ(RsBench("plena", settings).run(program).reason, StopReason::Halted);
}

TEST(RsLoops, AnInterruptedRunCanGoOn) {
  RsBench bench("plena+rs-loops");
  const auto prepared = prepare({encode({.op = Op::C_LOOP_START, .rd = 4, .imm = 100'000}),
                                 encode(addi(5, 5, 1)), encode({.op = Op::C_LOOP_END, .rd = 4})},
                                bench.machine.settings, bench.machine.dialect);
  const std::atomic<bool> interrupted = true;

  EXPECT_EQ(run(bench.machine, **prepared, {.interrupted = &interrupted}).reason,
            StopReason::Interrupted);
  EXPECT_LT(bench.machine.gp[5], 100'000U);
  EXPECT_EQ(run(bench.machine, **prepared).reason, StopReason::Halted);
  EXPECT_EQ(bench.machine.gp[5], 100'000U);
}

}  // namespace
}  // namespace plena
