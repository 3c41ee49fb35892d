// Every cycle has one owner and one cause, whatever the program, the profile and the memory: the
// causes of instructions, loops, regions and units sum to the totals, exactly (timing.md, rule 7).
#include <map>

#include <gtest/gtest.h>

#include "plena/timing/hbm_choice.h"
#include "plena/timing/report.h"
#include "plena/timing/testing/random_program.h"
#include "plena/timing/testing/timed_run.h"

namespace plena {
namespace {

constexpr std::uint64_t kPrograms = 60;

struct Setting {
  const char* profile;
  const char* memory;
};
constexpr Setting kSettings[] = {{"serial", "ideal"},        {"serial", "hbm2-2000"},
                                 {"pipelined", "ideal"},     {"pipelined", "hbm2-2000"},
                                 {"pipelined", "hbm3-6400"}, {"ideal", "hbm2-2000"}};

// Regions one behind the other over the whole program, with a nested one in the middle of each.
std::vector<ProgramRegion> regions_over(std::size_t words, std::uint64_t seed) {
  const std::uint64_t length = 3 + seed % 11;
  std::vector<ProgramRegion> regions;
  for (std::uint64_t begin = 0; begin < words; begin += length) {
    const std::uint64_t end = std::min<std::uint64_t>(begin + length, words);
    regions.push_back({"outer", begin, end});
    if (end - begin > 2) regions.push_back({"inner", begin + 1, end - 1});
  }
  return regions;
}

struct Reported {
  TimedRun run;
  TimingReport report;
};

Reported report_on(std::uint64_t seed, const Setting& setting) {
  TimedRunOptions options = run_with(setting.profile);
  options.settings = random_program_settings(seed % 2 == 1);
  options.dialect = *Dialect::parse("plena+moe+bmv+minmax");
  options.profile.queue_depth = static_cast<std::uint32_t>(1 + seed % 3);
  EXPECT_TRUE(choose_hbm_preset(options.profile, setting.memory));
  options.make_memory = [&] { return *make_hbm(options.profile); };
  const auto words = random_program(seed, options.settings);
  Reported out{.run = timed_run(words, options)};
  out.report = make_report(*out.run.timing, options.settings, options.dialect,
                           regions_over(words.size(), seed));
  return out;
}

template <class Check>
void for_all(Check&& check) {
  for (const Setting& setting : kSettings) {
    for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
      SCOPED_TRACE(testing::Message()
                   << setting.profile << ", " << setting.memory << ", program " << seed);
      check(report_on(seed, setting));
    }
  }
}

TEST(Accounts, InstructionsSumToTheTotalCauseByCause) {
  for_all([](const Reported& got) {
    CauseCycles sum;
    for (const InstructionAccount& account : got.report.instructions) sum += account.causes;
    EXPECT_EQ(sum, got.report.causes);
    EXPECT_EQ(sum.total(), got.run.total);
  });
}

TEST(Accounts, StallsOfAnInstructionAreThoseOfItsExecutions) {
  for_all([](const Reported& got) {
    if (got.report.overlap != Overlap::Pipelined) return;
    std::uint64_t stalls = 0;
    std::uint64_t issued = 0;
    for (const std::uint64_t stall : got.run.stalls) stalls += stall;
    for (const InstructionAccount& account : got.report.instructions) {
      EXPECT_EQ(account.causes[Cause::Issue], account.executions);
      issued += account.executions;
    }
    // What is left of the total lies behind the last issue.
    ASSERT_FALSE(got.run.issues.empty());
    EXPECT_EQ(issued, got.run.issues.size());
    EXPECT_EQ(stalls + issued, got.run.issues.back() + 1);
  });
}

TEST(Accounts, RegionsOverTheWholeProgramSumToTheTotal) {
  for_all([](const Reported& got) {
    CauseCycles outer;
    std::uint64_t instructions = 0;
    for (const RegionAccount& region : got.report.regions) {
      if (region.region.name != "outer") continue;
      outer += region.causes;
      instructions += region.instructions;
    }
    EXPECT_EQ(outer, got.report.causes);
    EXPECT_EQ(instructions, got.run.issues.size());
  });
}

// A loop holds the loops in it and its own instructions.
TEST(Accounts, LoopsSumWhatIsInThem) {
  std::uint64_t nested = 0;
  for_all([&](const Reported& got) {
    const auto& loops = got.report.loops;
    for (std::size_t at = 0; at < loops.size(); ++at) {
      CauseCycles sum;
      std::size_t child = at + 1;
      for (std::uint32_t pc = loops[at].start; pc <= loops[at].end; ++pc) {
        if (child < loops.size() && loops[child].start == pc) {
          sum += loops[child].causes;
          pc = loops[child].end;
          while (child < loops.size() && loops[child].start <= pc) ++child;
          ++nested;
        } else {
          sum += got.report.instructions[pc].causes;
        }
      }
      EXPECT_EQ(sum, loops[at].causes);
    }
  });
  EXPECT_GT(nested, 0U);
}

TEST(Accounts, EveryCycleOfEveryUnitIsBusyWaitingOrFree) {
  for_all([](const Reported& got) {
    if (!got.report.units) return;
    for (const UnitAccount& unit : *got.report.units) {
      EXPECT_EQ(unit.busy + unit.waiting.total() + unit.nothing_to_do, got.run.total);
      EXPECT_LE(unit.nothing_to_do, got.run.total) << "a negative rest";
    }
  });
}

// The bytes a program moves are its own, not those of a profile.
TEST(Accounts, EveryProfileMovesTheSameBursts) {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const BurstTraffic first = report_on(seed, kSettings[0]).report.traffic;
    for (const Setting& setting : kSettings) {
      const BurstTraffic traffic = report_on(seed, setting).report.traffic;
      EXPECT_EQ(traffic.read, first.read) << setting.profile << " program " << seed;
      EXPECT_EQ(traffic.written, first.written) << setting.profile << " program " << seed;
    }
  }
}

// ------------------------------------------------------------ a memory that never answers

// Fails the first time anybody waits for it, as a memory does whose queues cannot drain.
class StuckMemory final : public HbmModel {
 public:
  Ticket start(const TransferStart&, const TransferRows&) override { return 0; }
  Cycle delivered(Ticket, std::uint32_t, std::uint32_t) override { return give_up(); }
  Cycle accepted(Ticket) override { return give_up(); }
  Cycle complete(Ticket) override { return give_up(); }
  bool accepted_by(Ticket, Cycle) override { return failure_.has_value(); }
  bool complete_by(Ticket, Cycle) override { return failure_.has_value(); }
  Cycle first_complete(std::span<const Ticket>) override { return give_up(); }
  void release(Ticket) override {}
  [[nodiscard]] PeakRate peak() const override { return {}; }

 private:
  Cycle give_up() {
    if (!failure_) failure_ = Error{ErrorCode::Trap, "the memory never answers", {}, {}};
    return 0;
  }
};

TEST(Deadlock, IsAnErrorWithTheStateOfTheQueues) {
  const TimedRunOptions options = run_with("pipelined");
  // C_SET_ADDR_REG, H_PREFETCH_V twice at cycles 3 and 4, then V_RED_SUM of a row that never comes.
  const std::vector<std::uint32_t> words = {
      encode({.op = Op::C_SET_ADDR_REG, .rd = 1}), encode({.op = Op::C_SET_SCALE_REG}),
      encode({.op = Op::H_PREFETCH_V, .rs2 = 1}), encode({.op = Op::V_RED_SUM, .rd = 1})};
  auto machine = Machine::create(options.settings);
  const auto program = prepare(words, options.settings, {});
  auto clock = Timing::create(options.profile, std::make_unique<StuckMemory>(),
                              instructions(**program), options.settings, {});
  EXPECT_EQ(run(*machine, **program, {.observer = clock->get()}).reason, StopReason::Halted);

  const Status drained = (*clock)->drain();
  ASSERT_FALSE(drained);
  EXPECT_EQ(drained.error().code, ErrorCode::Trap);
  EXPECT_EQ(drained.error().message, "the memory never answers");
  EXPECT_NE(drained.error().hint.find("load V: pc 2 issued at cycle 4"), std::string::npos)
      << drained.error().hint;
}

}  // namespace
}  // namespace plena
