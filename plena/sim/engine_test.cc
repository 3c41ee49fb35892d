// The engine's rules that the case archives do not reach: budgets, breakpoints, interruption,
// observers. Instruction values are compared with the golden model in plena/cases.
#include "plena/sim/engine.h"

#include <gtest/gtest.h>

namespace plena {
namespace {

Instruction addi(std::uint8_t rd, std::uint8_t rs1, std::uint32_t imm) {
  return {.op = Op::S_ADDI_INT, .rd = rd, .rs1 = rs1, .imm = imm};
}
Instruction loop_start(std::uint8_t rd, std::uint32_t n) {
  return {.op = Op::C_LOOP_START, .rd = rd, .imm = n};
}
Instruction loop_end(std::uint8_t rd) {
  return {.op = Op::C_LOOP_END, .rd = rd};
}
constexpr Instruction kBreak{.op = Op::C_BREAK};

struct Bench {
  explicit Bench(const std::vector<Instruction>& program, Settings settings = {})
      : machine(std::move(*Machine::create(settings))) {
    std::vector<std::uint32_t> words;
    for (const Instruction& i : program) words.push_back(encode(i));
    auto result = prepare(words, settings, {});
    if (result) {
      prepared = *result;
    } else {
      load_trap = result.error();
    }
  }
  Stop go(const RunOptions& options = {}) { return run(machine, *prepared, options); }

  Machine machine;
  std::shared_ptr<const PreparedProgram> prepared;
  std::optional<Trap> load_trap;
};

TEST(Engine, RunsALoopExactlyAsOftenAsItSays) {
  Bench bench({loop_start(4, 8), addi(5, 5, 3), loop_end(4)});

  const Stop stop = bench.go();

  EXPECT_EQ(stop.reason, StopReason::Halted);
  EXPECT_EQ(bench.machine.gp[5], 24U);
  EXPECT_EQ(bench.machine.gp[4], 0U);
  EXPECT_EQ(bench.machine.retired, 1U + 8 * 2);
}

TEST(Engine, ABodyThatWritesItsCounterSetsTheTripCount) {
  // gp4 = 2 in the first pass: two more passes would follow; the second sets it again ... so the
  // body writes 1, and END falls through after one iteration (semantics 6.11).
  Bench bench({loop_start(4, 100), addi(4, 0, 1), addi(5, 5, 1), loop_end(4)});

  bench.go();

  EXPECT_EQ(bench.machine.gp[5], 1U);
}

TEST(Engine, StopsBeforeTheInstructionThatExceedsTheBudget) {
  Bench bench({addi(1, 1, 1), addi(1, 1, 1), addi(1, 1, 1)});

  const Stop stop = bench.go({.max_instructions = 2});

  ASSERT_EQ(stop.reason, StopReason::Trapped);
  EXPECT_EQ(stop.trap->cause, TrapCause::InstructionBudget);
  EXPECT_EQ(stop.trap->pc, 2U);
  EXPECT_EQ(bench.machine.gp[1], 2U);
}

TEST(Engine, ABudgetThatIsJustEnoughIsNoTrap) {
  Bench bench({addi(1, 1, 1), addi(1, 1, 1)});

  EXPECT_EQ(bench.go({.max_instructions = 2}).reason, StopReason::Halted);
}

TEST(Engine, ABreakpointRetiresWhenTheRunGoesOn) {
  Bench bench({addi(1, 1, 1), kBreak, addi(1, 1, 1)});

  const Stop first = bench.go();
  ASSERT_EQ(first.trap->cause, TrapCause::Breakpoint);
  EXPECT_EQ(bench.machine.retired, 1U);

  resume_after_break(bench.machine, *bench.prepared);
  EXPECT_EQ(bench.go().reason, StopReason::Halted);
  EXPECT_EQ(bench.machine.retired, 3U);
}

TEST(Engine, AnInterruptedRunCanGoOn) {
  Bench bench({loop_start(4, 4'000'000), addi(5, 5, 1), loop_end(4)});
  const std::atomic<bool> interrupted = true;

  EXPECT_EQ(bench.go({.interrupted = &interrupted}).reason, StopReason::Interrupted);
  EXPECT_LT(bench.machine.gp[5], 4'000'000U);
  EXPECT_EQ(bench.go().reason, StopReason::Halted);
  EXPECT_EQ(bench.machine.gp[5], 4'000'000U);
}

TEST(Engine, AnEmptyProgramHalts) {
  Bench bench({});

  EXPECT_EQ(bench.go().reason, StopReason::Halted);
  EXPECT_EQ(bench.machine.retired, 0U);
}

TEST(Engine, TheLoopLimitCountsTheInnermostIteration) {
  Settings settings;
  settings.max_loop_instructions = 3;
  // Two ADDs and the END are three instructions: allowed, however often it turns.
  Bench within({loop_start(4, 50), addi(1, 1, 1), addi(1, 1, 1), loop_end(4)}, settings);
  EXPECT_EQ(within.go().reason, StopReason::Halted);

  Bench beyond({loop_start(4, 50), addi(1, 1, 1), addi(1, 1, 1), addi(1, 1, 1), loop_end(4)},
               settings);
  const Stop stop = beyond.go();
  ASSERT_EQ(stop.reason, StopReason::Trapped);
  EXPECT_EQ(stop.trap->cause, TrapCause::LoopLimit);
  EXPECT_EQ(stop.trap->pc, 4U);
}

TEST(Engine, ReportsLoadFaultsWithoutRunning) {
  EXPECT_EQ(Bench({loop_start(4, 2)}).load_trap->cause, TrapCause::LoopStructure);
  EXPECT_EQ(Bench({loop_end(4)}).load_trap->cause, TrapCause::LoopStructure);
  const Bench crossing({loop_start(4, 2), loop_start(5, 2), loop_end(4), loop_end(5)});
  EXPECT_EQ(crossing.load_trap->pc, 2U);
}

struct Recorder : Observer {
  void about_to_run(const Machine& machine, std::uint64_t /*pc*/,
                    const Instruction& /*i*/) override {
    before.push_back(machine.gp[1]);
  }
  void retired(const Machine& machine, std::uint64_t pc, const Instruction& /*i*/) override {
    after.push_back(machine.gp[1]);
    pcs.push_back(pc);
  }
  std::vector<std::uint32_t> before, after;
  std::vector<std::uint64_t> pcs;
};

TEST(Engine, AnObserverSeesEveryInstructionBeforeAndAfter) {
  Bench bench({addi(1, 1, 5), addi(1, 1, 7)});
  Recorder recorder;

  bench.go({.observer = &recorder});

  EXPECT_EQ(recorder.before, (std::vector<std::uint32_t>{0, 5}));
  EXPECT_EQ(recorder.after, (std::vector<std::uint32_t>{5, 12}));
  EXPECT_EQ(recorder.pcs, (std::vector<std::uint64_t>{0, 1}));
}

TEST(Engine, ATrapNamesValuesAndRuleAndKeepsTheState) {
  // Row address 3 is no multiple of VLEN = 64.
  Bench bench({addi(1, 0, 3), {.op = Op::V_EXP_V, .rd = 1, .rs1 = 0}});

  const Stop stop = bench.go();

  ASSERT_EQ(stop.reason, StopReason::Trapped);
  EXPECT_EQ(stop.trap->cause, TrapCause::MisalignedAddress);
  EXPECT_EQ(stop.trap->pc, 1U);
  EXPECT_NE(stop.trap->values.find("gp<rd> = 3"), std::string::npos);
  EXPECT_NE(stop.trap->rule.find("VLEN = 64"), std::string::npos);
  EXPECT_EQ(bench.machine.retired, 1U);
}

}  // namespace
}  // namespace plena
