// The case archives and the compiled kernels with a clock: values stay, cycles add up, profiles
// bound each other, and transfers are counted where the engine makes them.
#include <filesystem>

#include <gtest/gtest.h>

#include "plena/base/shared_data.h"
#include "plena/cases/bundle.h"
#include "plena/cases/case.h"
#include "plena/cases/collect.h"
#include "plena/cases/compare.h"
#include "plena/cases/emulator_run.h"
#include "plena/cases/unpacked_archive.h"
#include "plena/timing/ideal_hbm.h"
#include "plena/timing/timing.h"

namespace plena {
namespace {

std::vector<std::string> folders_in(const std::string& root) {
  auto folders = collect_cases({root});
  EXPECT_TRUE(folders) << folders.error().render();
  return std::move(*folders);
}

Result<Machine> initial_machine(const Case& test) {
  auto machine = Machine::create(test.settings, test.dialect);
  if (!machine) return machine;
  for (const CaseSegment& segment : test.initial) {
    auto written = machine->write_elements(segment.memory, segment.first, segment.bytes);
    if (!written) return tl::unexpected(written.error());
  }
  return machine;
}

// Runs a case to its end, over its breakpoints where it asks for that.
void run_to_the_end(const Case& test, const PreparedProgram& program, Machine& machine,
                    Observer* observer) {
  for (;;) {
    const Stop stop = run(machine, program, {.observer = observer});
    const bool at_break = stop.reason == StopReason::Trapped &&
                          stop.trap->cause == TrapCause::Breakpoint && test.continue_after_break;
    if (!at_break) return;
    resume_after_break(machine, program);
    if (observer != nullptr)
      observer->retired(machine, stop.trap->pc, instructions(program)[stop.trap->pc]);
  }
}

void expect_same_state(const Machine& expected, const Machine& got, const std::string& where) {
  EXPECT_EQ(expected.gp, got.gp) << where;
  EXPECT_EQ(expected.f, got.f) << where;
  EXPECT_EQ(expected.a, got.a) << where;
  EXPECT_EQ(expected.retired, got.retired) << where;
  const auto differences = memory_differences(expected, got);
  EXPECT_TRUE(differences.empty()) << where << ": " << differences.front();
}

void check_case(const Case& test) {
  const auto program = prepare(test.words, test.settings, test.dialect);
  if (!program) return;  // refused at load: nothing runs
  auto untimed = initial_machine(test);
  ASSERT_TRUE(untimed) << untimed.error().render();
  run_to_the_end(test, **program, *untimed, nullptr);

  std::vector<Cycle> totals;
  for (const char* name : {"serial", "pipelined", "ideal", "plena-rs"}) {
    const std::string where = test.name + " under " + name;
    auto machine = initial_machine(test);
    auto timing =
        Timing::create(*load_profile(name), std::make_unique<IdealHbm>(IdealHbmSettings{}, 1000),
                       instructions(**program), test.settings, test.dialect);
    ASSERT_TRUE(timing) << where << ": " << timing.error().render();
    run_to_the_end(test, **program, *machine, timing->get());
    ASSERT_TRUE((*timing)->drain()) << where;
    expect_same_state(*untimed, *machine, where);

    const IssueModel& model = (*timing)->model();
    std::uint64_t sum = 0;
    std::uint64_t executions = 0;
    for (const InstructionAccount& account : model.accounts()) {
      sum += account.causes.total();
      executions += account.executions;
    }
    EXPECT_EQ(sum, model.total()) << where;
    EXPECT_EQ(executions, machine->retired) << where;
    totals.push_back(model.total());
  }
  EXPECT_GE(totals[0], totals[1]) << test.name << ": serial and pipelined";
  EXPECT_GE(totals[1], totals[2]) << test.name << ": pipelined and ideal";
}

void check_archive(const std::string& archive) {
  const UnpackedArchive unpacked(archive);
  ASSERT_TRUE(unpacked.ok());
  for (const std::string& folder : folders_in(unpacked.folder())) {
    const auto test = load_case(folder);
    ASSERT_TRUE(test) << folder << ": " << test.error().render();
    check_case(*test);
  }
}

TEST(Archives, DirectedCasesKeepTheirValuesUnderEveryProfile) {
  PLENA_NEEDS_SHARED();
  check_archive(shared_data() + "/vectors/isa/directed.tar.zst");
}

TEST(Archives, RandomCasesKeepTheirValuesUnderEveryProfile) {
  PLENA_NEEDS_SHARED();
  check_archive(shared_data() + "/vectors/isa/random.tar.zst");
}

// Compares the rows an instruction moved with those transfer_rows() computes.
class RowChecker final : public Observer {
 public:
  void moved_row(const HbmRow& row) override { moved_.push_back(row); }
  void retired(const Machine& machine, std::uint64_t pc, const Instruction& i) override {
    if (row_of(i.op).instruction_class != InstructionClass::Memory) return;
    const TransferRows rows = transfer_rows(machine, i);
    ASSERT_EQ(rows.count, moved_.size()) << "pc " << pc;
    for (std::uint32_t r = 0; r < rows.count; ++r) {
      const HbmRow row = rows.row(r);
      EXPECT_EQ(row.write, moved_[r].write);
      EXPECT_EQ(row.element_address, moved_[r].element_address) << "pc " << pc << " row " << r;
      EXPECT_EQ(row.element_bytes, moved_[r].element_bytes) << "pc " << pc << " row " << r;
      EXPECT_EQ(row.scale_address, moved_[r].scale_address) << "pc " << pc << " row " << r;
      EXPECT_EQ(row.scale_bytes, moved_[r].scale_bytes) << "pc " << pc << " row " << r;
    }
    moved_.clear();
    ++checked;
  }
  std::uint64_t checked = 0;

 private:
  std::vector<HbmRow> moved_;
};

TEST(Archives, TransfersMoveTheBytesTheEngineMoves) {
  PLENA_NEEDS_SHARED();
  RowChecker checker;
  const UnpackedArchive unpacked(shared_data() + "/vectors/isa/random.tar.zst");
  for (const std::string& folder : folders_in(unpacked.folder())) {
    const auto test = load_case(folder);
    const auto program = prepare(test->words, test->settings, test->dialect);
    if (!program) continue;
    auto machine = initial_machine(*test);
    run_to_the_end(*test, **program, *machine, &checker);
  }
  EXPECT_GT(checker.checked, 500U);
}

EmulatorInputs inputs_of(const Bundle& bundle, const EmulatorProgram& program) {
  return {.settings = bundle.settings,
          .program = &program,
          .hbm = bundle.hbm,
          .fp_sram = bundle.fp_sram,
          .int_sram = bundle.int_sram,
          .vram = bundle.vram};
}

TEST(Archives, TransfersOfThePublicDialectMoveTheBytesTheEngineMoves) {
  PLENA_NEEDS_SHARED();
  RowChecker checker;
  for (const char* set : {"/conformance/kernels", "/conformance/micro"}) {
    for (const std::string& folder : folders_in(shared_data() + set)) {
      const auto bundle = load_bundle(folder);
      ASSERT_TRUE(bundle) << bundle.error().render();
      const auto program = emulator_program(bundle->program, bundle->name);
      ASSERT_TRUE(program) << program.error().render();
      ASSERT_TRUE(run_emulator(inputs_of(*bundle, *program), {.observer = &checker}));
    }
  }
  EXPECT_GT(checker.checked, 1000U);
}

// The profile says in TOML what dialect-plena-rs 7 says in prose; a run counts both.
TEST(Archives, ThePlenaRsProfileChargesEveryKernelWhatTheEmulatorDoes) {
  PLENA_NEEDS_SHARED();
  const auto profile = load_profile("plena-rs");
  for (const std::string& folder : folders_in(shared_data() + "/conformance/kernels")) {
    const auto bundle = load_bundle(folder);
    std::uint64_t wrong = 0;
    for (const InstructionRow& row : instruction_table()) {
      for (const std::uint8_t rd : {std::uint8_t{0}, std::uint8_t{1}}) {
        const Instruction i{.op = row.op, .rd = rd};
        const auto cost = instruction_cost(*profile, bundle->settings, i);
        ASSERT_TRUE(cost) << cost.error().render();
        wrong += cost->latency != emulator_cycles(i, bundle->settings) ? 1 : 0;
      }
    }
    EXPECT_EQ(wrong, 0U) << folder;
  }
}

}  // namespace
}  // namespace plena
