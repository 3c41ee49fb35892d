// What drawing a run costs: the same program with the clock alone, with a trace into a file, and
// with what the report gathers, so that the ratio is one of a single run.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <benchmark/benchmark.h>

#include "plena/asm/assembler.h"
#include "plena/base/files.h"
#include "plena/observe/timeline_bins.h"
#include "plena/observe/timeline_trace.h"
#include "plena/timing/hbm_choice.h"

namespace plena {
namespace {

enum class Drawing { None, Trace, Report };

void run_drawn(benchmark::State& state, const std::string& memory, Drawing drawing) {
  const auto text = read_text(PLENA_SOURCE_DIR "/examples/tiles.asm");
  const Settings settings;
  const Assembly assembly =
      assemble(*text, {.source_name = "tiles.asm", .symbols = integer_symbols(settings)});
  if (!assembly.ok()) return state.SkipWithError(first_error(assembly).message.c_str());
  auto profile = *load_profile("pipelined");
  if (!choose_hbm_preset(profile, memory)) return state.SkipWithError("no such memory");
  const auto program = prepare(assembly.program.words, settings, {});
  const auto clock =
      *Timing::create(profile, *make_hbm(profile), instructions(**program), settings, {});
  const auto path = std::filesystem::temp_directory_path() / "plena_bench.pftrace";
  std::unique_ptr<TimelineTrace> trace;
  std::optional<TimelineBins> bins;
  if (drawing == Drawing::Trace) {
    trace = *TimelineTrace::create({.path = path, .title = "bench"}, assembly.program, *clock,
                                   settings, {});
    clock->set_listener(trace.get());
  } else if (drawing == Drawing::Report) {
    clock->set_listener(&bins.emplace(*clock, assembly.program));
  }
  auto machine = Machine::create(settings);
  for (auto _ : state) {
    machine->pc = 0;
    run(*machine, **program, {.observer = clock.get()});
  }
  state.counters["instructions/s"] =
      benchmark::Counter(static_cast<double>(machine->retired), benchmark::Counter::kIsRate);
  clock->set_listener(nullptr);
  if (trace && !trace->finish()) state.SkipWithError("the trace could not be written");
  std::filesystem::remove(path);
}

void drawn_tiles(benchmark::State& state, const char* memory, Drawing drawing) {
  run_drawn(state, memory, drawing);
}
BENCHMARK_CAPTURE(drawn_tiles, hbm2_clock, "hbm2-2000", Drawing::None);
BENCHMARK_CAPTURE(drawn_tiles, hbm2_trace, "hbm2-2000", Drawing::Trace);
BENCHMARK_CAPTURE(drawn_tiles, hbm2_report, "hbm2-2000", Drawing::Report);
BENCHMARK_CAPTURE(drawn_tiles, ideal_clock, "ideal", Drawing::None);
BENCHMARK_CAPTURE(drawn_tiles, ideal_trace, "ideal", Drawing::Trace);
BENCHMARK_CAPTURE(drawn_tiles, ideal_report, "ideal", Drawing::Report);

}  // namespace
}  // namespace plena
