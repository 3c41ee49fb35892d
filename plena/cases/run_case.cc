// Runs a case and says what differs from what it expects.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plena/asm/assembler.h"
#include "plena/cases/case.h"
#include "plena/cases/compare.h"
#include "plena/sim/engine.h"
#include "plena/sim/tile_cache.h"

namespace plena {

namespace {

// No case comes near it; a run that does is a fault of the engine or of the case.
constexpr std::uint64_t kBudget = 50'000'000;

// Bytes for decoded tiles: all of a case's, and nothing that takes long to set up.
constexpr std::size_t kTileCache = std::size_t{1} << 18;

Status lay_over(const std::vector<CaseSegment>& segments, Machine& machine) {
  for (const CaseSegment& segment : segments) {
    if (auto written = machine.write_elements(segment.memory, segment.first, segment.bytes);
        !written)
      return written;
  }
  return {};
}

Result<Machine> initial_machine(const Case& test) {
  auto machine = Machine::create(test.settings, test.dialect);
  if (!machine) return machine;
  if (auto laid = lay_over(test.initial, *machine); !laid) return tl::unexpected(laid.error());
  return machine;
}

struct Outcome {
  std::optional<Trap> trap;
  std::vector<std::uint64_t> breaks;
};

// A run with a budget is watched; one without takes the loop that users' runs take.
Outcome execute(const Case& test, const CaseHost& host, Machine& machine, std::uint64_t budget) {
  Outcome outcome;
  auto program = prepare(test.words, test.settings, test.dialect, host.simd);
  if (!program) {
    outcome.trap = std::move(program).error();
    machine.pc = outcome.trap->pc;
    return outcome;
  }
  TileCache tile_cache(kTileCache);
  for (;;) {
    Stop stop =
        run(machine, **program,
            {.max_instructions = budget, .tile_cache = &tile_cache, .workers = host.workers});
    if (stop.reason != StopReason::Trapped) return outcome;
    if (stop.trap->cause != TrapCause::Breakpoint || !test.continue_after_break) {
      outcome.trap = std::move(stop.trap);
      return outcome;
    }
    outcome.breaks.push_back(stop.trap->pc);
    resume_after_break(machine, **program);
  }
}

std::string describe_end(std::string_view trap, std::uint64_t pc) {
  return trap.empty() ? "halt" : fmt::format("trap {} at pc {}", trap, pc);
}

void compare_end(const Case& test, const Outcome& outcome, std::vector<std::string>& lines) {
  const std::string expected = describe_end(test.expected_trap, test.expected_pc);
  const std::string got = outcome.trap
                              ? describe_end(trap_name(outcome.trap->cause), outcome.trap->pc)
                              : describe_end("", 0);
  if (expected != got) lines.push_back(fmt::format("expected {}, got {}", expected, got));
  if (outcome.breaks != test.breaks) {
    lines.push_back(fmt::format("breakpoints passed: expected [{}], got [{}]",
                                fmt::join(test.breaks, ", "), fmt::join(outcome.breaks, ", ")));
  }
}

template <class Values, class Registers>
void compare_file(const char* file, const Values& expected, const Registers& got,
                  std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < std::min(expected.size(), got.size()); ++i) {
    if (expected[i] != got[i]) {
      lines.push_back(
          fmt::format("{}{}: expected 0x{:X}, got 0x{:X}", file, i, expected[i], got[i]));
    }
  }
}

void compare_registers(const CaseRegisters& expected, const Machine& got,
                       std::vector<std::string>& lines) {
  compare_file("gp", expected.gp, got.gp, lines);
  compare_file("f", expected.f, got.f, lines);
  compare_file("a", expected.a, got.a, lines);
  const auto one = [&](const char* name, std::uint64_t want, std::uint64_t have) {
    if (want != have) lines.push_back(fmt::format("{}: expected {}, got {}", name, want, have));
  };
  one("SCALE_REG", expected.scale, got.scale);
  one("STRIDE_REG", expected.stride, got.stride);
  one("V_MASK", expected.v_mask, got.v_mask);
  one("retired", expected.retired, got.retired);
}

void compare_assembly(const Case& test, std::vector<std::string>& lines) {
  if (!test.assembly_matches) return;
  const Assembly assembled = assemble(test.assembly, {.source_name = "program.asm",
                                                      .dialect = test.dialect,
                                                      .symbols = integer_symbols(test.settings)});
  if (!assembled.ok()) {
    lines.push_back(first_error(assembled).render());
  } else if (assembled.program.words != test.words) {
    lines.emplace_back("program.asm does not assemble to program.mem");
  }
}

// What a run of the case leaves that it does not expect.
Result<std::vector<std::string>> run_differences(const Case& test, const CaseHost& host,
                                                 const Machine& expected, std::uint64_t budget) {
  auto machine = initial_machine(test);
  if (!machine) return forward_error(machine);
  const Outcome outcome = execute(test, host, *machine, budget);
  std::vector<std::string> lines;
  compare_end(test, outcome, lines);
  compare_registers(test.registers, *machine, lines);
  for (std::string& line : memory_differences(expected, *machine)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace

Result<std::vector<std::string>> run_case(const Case& test, const CaseHost& host) {
  auto expected = initial_machine(test);
  if (!expected) return forward_error(expected);
  if (auto laid = lay_over(test.final, *expected); !laid) return tl::unexpected(laid.error());

  auto lines = run_differences(test, host, *expected, kBudget);
  // Only a program that is known to end is run again without a budget.
  if (lines && lines->empty()) {
    lines = run_differences(test, host, *expected, 0);
    if (!lines) return lines;
    for (std::string& line : *lines) line += " (without a budget)";
  }
  if (lines) compare_assembly(test, *lines);
  return lines;
}

}  // namespace plena
