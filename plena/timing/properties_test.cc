// What holds for every program: values do not change, cycles add up, profiles bound each other, and
// the pipelined issue is what a model without any cleverness says.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "plena/cases/compare.h"
#include "plena/timing/operand_ranges.h"
#include "plena/timing/testing/random_program.h"
#include "plena/timing/testing/timed_run.h"

namespace plena {
namespace {

constexpr std::uint64_t kPrograms = 300;

TimedRunOptions options_for(const std::string& profile, std::uint64_t seed) {
  TimedRunOptions options = run_with(profile);
  options.settings = random_program_settings(seed % 2 == 1);
  options.dialect = *Dialect::parse("plena+moe+bmv+minmax");
  options.profile.queue_depth = static_cast<std::uint32_t>(1 + seed % 3);
  if (seed % 5 == 0) options.hbm.tick_fs = 3'700'000;
  if (seed % 7 == 0) options.hbm.bursts_per_tick = 1;
  return options;
}

std::string describe(std::uint64_t seed) {
  return "program " + std::to_string(seed);
}

TEST(Properties, RandomProgramsRunToTheirEnd) {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const auto options = options_for("serial", seed);
    const auto words = random_program(seed, options.settings);
    auto machine = Machine::create(options.settings, options.dialect);
    const auto program = prepare(words, options.settings, options.dialect);
    ASSERT_TRUE(program) << describe(seed) << ": " << program.error().values;
    const Stop stop = run(*machine, **program);
    EXPECT_EQ(stop.reason, StopReason::Halted)
        << describe(seed) << " pc " << (stop.trap ? stop.trap->pc : 0) << ": "
        << (stop.trap ? stop.trap->values + ", " + stop.trap->rule : "");
  }
}

TEST(Properties, SerialIsSlowerThanPipelinedIsSlowerThanIdeal) {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const auto options = options_for("pipelined", seed);
    const auto words = random_program(seed, options.settings);
    const Cycle serial = timed_run(words, options_for("serial", seed)).total;
    const Cycle pipelined = timed_run(words, options).total;
    const Cycle ideal = timed_run(words, options_for("ideal", seed)).total;
    EXPECT_GE(serial, pipelined) << describe(seed);
    EXPECT_GE(pipelined, ideal) << describe(seed);
  }
}

TEST(Properties, CausesOfAllInstructionsSumToTheTotal) {
  for (const char* profile : {"serial", "pipelined", "ideal", "plena-rs"}) {
    for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
      const auto options = options_for(profile, seed);
      const TimedRun run = timed_run(random_program(seed, options.settings), options);
      std::uint64_t sum = 0;
      for (const InstructionAccount& account : run.timing->model().accounts())
        sum += account.causes.total();
      EXPECT_EQ(sum, run.total) << profile << " " << describe(seed);
    }
  }
}

TEST(Properties, EveryCycleOfEveryUnitHasOneCause) {
  for (const char* profile : {"serial", "pipelined"}) {
    for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
      const auto options = options_for(profile, seed);
      const TimedRun run = timed_run(random_program(seed, options.settings), options);
      const auto units = run.timing->model().unit_accounts();
      ASSERT_TRUE(units);
      for (const UnitAccount& unit : *units) {
        EXPECT_EQ(unit.busy + unit.waiting.total() + unit.nothing_to_do, run.total)
            << profile << " " << describe(seed);
        EXPECT_LE(unit.nothing_to_do, run.total) << "a negative rest";
      }
    }
  }
}

// ------------------------------------------------------------ a model without cleverness

// Rules 1 to 7 word for word: one time for each element, byte and entry, every transfer's times
// computed when it issues.
class PlainPipeline final : public Observer {
 public:
  PlainPipeline(const TimedRunOptions& options, const TimedProgram& program)
      : program_(program),
        rules_(options.settings, options.dialect),
        depth_(options.profile.queue_depth),
        hbm_(options.hbm, options.profile.clock_mhz) {}

  std::vector<Cycle> issues;
  std::vector<Cause> causes;
  Cycle total = 0;

  void about_to_run(const Machine& m, std::uint64_t, const Instruction& i) override {
    rs1_before_ = m.gp[i.rs1];
  }
  void moved_row(const HbmRow& row) override { rows_.push_back(row); }

  void retired(const Machine& m, std::uint64_t pc, const Instruction& instruction) override {
    const TimedInstruction& i = program_.timed[pc];
    reads_.clear();
    writes_.clear();
    if (is_transfer_unit(i.unit)) {
      transfer_ranges(m, i);
    } else {
      visit_ranges(i, m, rules_, rs1_before_, *this);
    }
    const Cycle at = place(i);
    finish(m, i, at, instruction);
    rows_.clear();
  }

  // Ranges as (memory, element): v, m, f, n and h for bytes of HBM.
  using Element = std::pair<char, std::uint64_t>;
  void vram_read(std::uint64_t first, std::uint32_t lanes, std::uint32_t rows, std::uint64_t step) {
    add(reads_, 'v', first, lanes, rows, step);
  }
  void vram_write(std::uint64_t first, std::uint32_t lanes, std::uint32_t rows,
                  std::uint64_t step) {
    add(writes_, 'v', first, lanes, rows, step);
  }
  void tile_read(std::uint64_t address, std::uint32_t first_row, std::uint32_t rows) {
    const std::uint64_t tile = std::uint64_t{rules_.mlen} * rules_.mlen;
    add(reads_, 'm', address / tile * tile + std::uint64_t{first_row} * rules_.mlen, rules_.mlen,
        rows, rules_.mlen);
  }
  void fp_read(std::uint64_t first, std::uint64_t count) { add(reads_, 'f', first, count, 1, 0); }
  void fp_write(std::uint64_t first, std::uint64_t count) { add(writes_, 'f', first, count, 1, 0); }
  void int_read(std::uint64_t first, std::uint64_t count) { add(reads_, 'n', first, count, 1, 0); }
  void int_write(std::uint64_t first, std::uint64_t count) {
    add(writes_, 'n', first, count, 1, 0);
  }

 private:
  struct When {
    Cycle written = 0;
    bool by_transfer = false;
    Cycle read = 0;
  };

  static void add(std::vector<Element>& to, char memory, std::uint64_t first, std::uint64_t count,
                  std::uint32_t rows, std::uint64_t step) {
    for (std::uint32_t r = 0; r < rows; ++r) {
      for (std::uint64_t e = 0; e < count; ++e) to.emplace_back(memory, first + r * step + e);
    }
  }

  void transfer_ranges(const Machine& m, const TimedInstruction& i) {
    auto& sram = i.unit == Unit::Store ? reads_ : writes_;
    auto& bytes = i.unit == Unit::Store ? writes_ : reads_;
    const char memory = i.unit == Unit::LoadM ? 'm' : 'v';
    const std::uint32_t lanes = i.unit == Unit::LoadM ? rules_.mlen : rules_.vlen;
    add(sram, memory, m.gp[i.rd], lanes, static_cast<std::uint32_t>(rows_.size()), lanes);
    for (const HbmRow& row : rows_) {
      add(bytes, 'h', row.element_address, row.element_bytes, 1, 0);
      add(bytes, 'h', row.scale_address, row.scale_bytes, 1, 0);
    }
  }

  Cycle place(const TimedInstruction& i) {
    // By Cause: when the condition no longer holds.
    std::array<Cycle, kCauseCount> free{};
    const auto hold = [&](Cause cause, Cycle until) {
      Cycle& cycle = free[static_cast<std::size_t>(cause)];
      cycle = std::max(cycle, until);
    };
    for (const Slot slot : i.sources) hold(Cause::Register, ready_[slot]);
    if (i.kind == TimedKind::LoopEnd && !by_loop_.contains(i.rd))
      hold(Cause::Register, ready_[i.rd]);
    if (i.kind == TimedKind::SetSpecial) {
      hold(Cause::Register, ready_[i.destination]);
      hold(Cause::Register, special_read_[i.destination]);
    }
    const auto written = [&](const Element& e) {
      const When& when = times_[e];
      hold(when.by_transfer ? Cause::HbmData : Cause::SramRange, when.written);
    };
    for (const Element& e : reads_) written(e);
    for (const Element& e : writes_) {
      written(e);
      hold(Cause::SramRange, times_[e].read);
    }
    hold(i.unit == Unit::Control ? Cause::Control : Cause::BusyUnit, unit_free(i.unit));
    auto& queue = queues_[static_cast<std::size_t>(i.unit)];
    if (is_transfer_unit(i.unit) && queue.size() >= depth_) {
      // The place that is free when all but depth - 1 of the transfers are complete.
      const std::vector<Cycle> sorted(queue.begin(), queue.end());
      hold(Cause::FullQueue, sorted[sorted.size() - depth_]);
    }
    const Cycle at = std::max(next_, *std::max_element(free.begin(), free.end()));
    issues.push_back(at);
    const auto cause = std::find(free.begin(), free.end(), at) - free.begin();
    causes.push_back(at == next_ ? Cause::Issue : static_cast<Cause>(cause));
    next_ = at + 1;
    unit_free(i.unit) = at + i.interval;
    return at;
  }

  void finish(const Machine& m, const TimedInstruction& i, Cycle at,
              const Instruction& instruction) {
    Cycle done = at + i.latency;
    Cycle& computed = computed_[i.shape];
    if (i.kind == TimedKind::WriteOut) done = std::max(at, computed) + i.latency;
    if (i.kind == TimedKind::Compute) computed = std::max(computed, done);
    if (is_transfer_unit(i.unit)) {
      done = transfer(m, i, at, instruction);
    } else {
      for (const Element& e : reads_) times_[e].read = std::max(times_[e].read, at + i.interval);
      for (const Element& e : writes_) times_[e] = {done, false, times_[e].read};
      if (i.destination != kSinkSlot) {
        done = std::max(done, ready_[i.destination] + 1);
        ready_[i.destination] = done;
      }
    }
    for (const Slot slot : i.sources)
      if (slot >= kAddrSlot) special_read_[slot] = std::max(special_read_[slot], at + i.interval);
    if (i.kind == TimedKind::LoopStart || i.kind == TimedKind::LoopEnd) {
      by_loop_.insert(i.rd);
    } else {
      by_loop_.erase(i.destination);
    }
    total = std::max(total, done);
  }

  Cycle transfer(const Machine& m, const TimedInstruction& i, Cycle at,
                 const Instruction& instruction) {
    const Ticket ticket = hbm_.start({i.unit, at, 1, i.latency - 1}, transfer_rows(m, instruction));
    const std::uint32_t lanes = i.unit == Unit::LoadM ? rules_.mlen : rules_.vlen;
    for (std::size_t n = 0; n < (i.unit == Unit::Store ? reads_ : writes_).size(); ++n) {
      const auto row = static_cast<std::uint32_t>(n / lanes);
      if (i.unit == Unit::Store) {
        When& when = times_[reads_[n]];
        when.read = std::max(when.read, at + 1 + row);
      } else {
        times_[writes_[n]] = {hbm_.delivered(ticket, row, row), true, times_[writes_[n]].read};
      }
    }
    if (i.unit == Unit::Store) {
      for (const Element& e : writes_) times_[e] = {hbm_.accepted(ticket), true, times_[e].read};
    }
    const Cycle done = hbm_.complete(ticket);
    queues_[static_cast<std::size_t>(i.unit)].insert(done);
    return done;
  }

  Cycle& unit_free(Unit unit) { return unit_free_[static_cast<std::size_t>(unit)]; }

  const TimedProgram& program_;
  RangeRules rules_;
  std::size_t depth_;
  IdealHbm hbm_;
  std::uint32_t rs1_before_ = 0;
  std::vector<HbmRow> rows_;
  std::vector<Element> reads_, writes_;
  std::map<Element, When> times_;
  std::array<Cycle, kSlotCount> ready_{};
  std::array<Cycle, kSlotCount> special_read_{};
  std::set<int> by_loop_;
  std::map<ArrayShape, Cycle> computed_;
  std::array<Cycle, kUnitCount> unit_free_{};
  std::array<std::multiset<Cycle>, kUnitCount> queues_;
  Cycle next_ = 0;
};

TEST(Properties, PipelinedIssueIsWhatThePlainModelSays) {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const auto options = options_for("pipelined", seed);
    const auto words = random_program(seed, options.settings);
    const TimedRun fast = timed_run(words, options);

    PlainPipeline plain(options, fast.timing->program());
    auto machine = Machine::create(options.settings, options.dialect);
    const auto program = prepare(words, options.settings, options.dialect);
    run(*machine, **program, {.observer = &plain});

    ASSERT_EQ(fast.issues.size(), plain.issues.size()) << describe(seed);
    for (std::size_t n = 0; n < plain.issues.size(); ++n) {
      ASSERT_EQ(fast.issues[n], plain.issues[n]) << describe(seed) << " instruction " << n;
      if (fast.stalls[n] != 0) {
        ASSERT_EQ(cause_name(fast.causes[n]), cause_name(plain.causes[n]))
            << describe(seed) << " instruction " << n;
      }
    }
    EXPECT_EQ(fast.total, plain.total) << describe(seed);
  }
}

TEST(Properties, ATimedRunEndsInTheSameState) {
  for (const char* profile : {"serial", "pipelined", "ideal", "plena-rs"}) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const auto options = options_for(profile, seed);
      const auto words = random_program(seed, options.settings);
      const auto program = prepare(words, options.settings, options.dialect);
      auto timed = Machine::create(options.settings, options.dialect);
      auto untimed = Machine::create(options.settings, options.dialect);
      auto timing = Timing::create(options.profile, std::make_unique<IdealHbm>(options.hbm, 1000),
                                   instructions(**program), options.settings, options.dialect);
      run(*timed, **program, {.observer = timing->get()});
      run(*untimed, **program);
      EXPECT_EQ(timed->gp, untimed->gp);
      EXPECT_EQ(timed->f, untimed->f);
      EXPECT_EQ(timed->retired, untimed->retired);
      EXPECT_TRUE(memory_differences(*untimed, *timed).empty());
    }
  }
}

}  // namespace
}  // namespace plena
