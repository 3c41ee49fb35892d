#include "plena/timing/testing/timed_run.h"

#include <charconv>
#include <map>

#include <gtest/gtest.h>

#include "plena/sim/engine.h"

namespace plena {

namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  while (!line.empty()) {
    const std::size_t begin = line.find_first_not_of(" ,\t");
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(" ,\t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

std::uint32_t number_of(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_of("0123456789"), word.size()));
  std::uint32_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

class Recorder final : public TimelineListener {
 public:
  explicit Recorder(TimedRun& run) : run_(run) {}
  void issued(const IssueEvent& event) override {
    if (is_transfer_unit(event.unit)) transfers_[{event.pc, event.issue}] = run_.issues.size();
    run_.issues.push_back(event.issue);
    run_.completes.push_back(event.complete);
    run_.stalls.push_back(event.stall);
    run_.causes.push_back(event.cause);
  }
  void transferred(const TransferEvent& event) override {
    run_.completes[transfers_.at({event.pc, event.issue})] = event.complete;
  }

 private:
  TimedRun& run_;
  std::map<std::pair<std::uint32_t, Cycle>, std::size_t> transfers_;
};

}  // namespace

std::vector<Instruction> instructions_of(std::string_view text) {
  std::vector<Instruction> instructions;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    const InstructionRow* row = find_row(words[0]);
    if (row == nullptr) {
      ADD_FAILURE() << "unknown instruction " << words[0];
      continue;
    }
    Instruction instruction{.op = row->op};
    const auto operands = row->operands();
    for (std::size_t n = 0; n < operands.size() && n + 1 < words.size(); ++n)
      set_field(instruction, operands[n].field, number_of(words[n + 1]));
    instructions.push_back(instruction);
  }
  return instructions;
}

TimedRunOptions run_with(const std::string& profile) {
  return {.profile = *load_profile(profile)};
}

TimedRun timed_run(const std::vector<Instruction>& instructions, const TimedRunOptions& options) {
  TimedRun run;
  auto machine = Machine::create(options.settings, options.dialect);
  EXPECT_TRUE(machine) << machine.error().render();
  std::vector<std::uint32_t> words;
  for (const Instruction& instruction : instructions) words.push_back(encode(instruction));
  const auto prepared = prepare(words, options.settings, options.dialect);
  EXPECT_TRUE(prepared) << prepared.error().values << ": " << prepared.error().rule;

  auto timing = Timing::create(options.profile,
                               std::make_unique<IdealHbm>(options.hbm, options.profile.clock_mhz),
                               instructions, *machine);
  EXPECT_TRUE(timing) << timing.error().render();
  run.timing = std::move(*timing);
  Recorder recorder(run);
  run.timing->set_listener(&recorder);
  const Stop stop = plena::run(*machine, **prepared, {.observer = run.timing.get()});
  EXPECT_NE(stop.reason, StopReason::Interrupted);
  const Status drained = run.timing->drain();
  EXPECT_TRUE(drained) << drained.error().render();
  run.timing->set_listener(nullptr);
  run.total = run.timing->model().total();
  return run;
}

TimedRun timed_run(std::string_view text, const TimedRunOptions& options) {
  return timed_run(instructions_of(text), options);
}

}  // namespace plena
