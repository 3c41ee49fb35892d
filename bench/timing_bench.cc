// What the clock costs: the same program functionally and under each profile, so that the ratio is
// one of a single run. Counters: simulated instructions a second.
#include <memory>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>

#include "plena/asm/assembler.h"
#include "plena/compiler/compile.h"
#include "plena/model/llama.h"
#include "plena/runtime/session.h"
#include "plena/timing/hbm_choice.h"
#include "plena/timing/timing.h"

namespace plena {
namespace {

constexpr const char* kNoClock = "none";

// `name`: a profile over the ideal memory, or with the memory's preset behind a slash.
std::unique_ptr<Timing> make_clock(const std::string& name, const std::vector<Instruction>& program,
                                   const Settings& settings, const Dialect& dialect) {
  if (name == kNoClock) return nullptr;
  const std::size_t slash = name.find('/');
  TimingProfile profile = *load_profile(name.substr(0, slash));
  const std::string preset = slash == std::string::npos ? "ideal" : name.substr(slash + 1);
  if (!choose_hbm_preset(profile, preset)) return nullptr;
  return *Timing::create(profile, *make_hbm(profile), program, settings, dialect);
}

void run_program(benchmark::State& state, std::string_view text, const std::string& profile) {
  const Assembly assembly = assemble(text, {.source_name = "bench.asm"});
  if (!assembly.ok()) return state.SkipWithError(first_error(assembly).message.c_str());
  const Settings settings;
  const auto program = prepare(assembly.program.words, settings, {});
  auto machine = Machine::create(settings);
  const auto clock = make_clock(profile, instructions(**program), settings, {});
  for (auto _ : state) {
    machine->pc = 0;
    run(*machine, **program, {.observer = clock.get()});
  }
  state.counters["instructions/s"] =
      benchmark::Counter(static_cast<double>(machine->retired), benchmark::Counter::kIsRate);
}

// Address arithmetic as it surrounds every kernel.
constexpr std::string_view kScalar = R"(
      C_LOOP_START gp1, 100000
      S_ADDI_INT gp2, gp2, 64
      S_ADDI_INT gp3, gp3, 64
      S_ADD_INT  gp4, gp2, gp3
      S_ADDI_INT gp5, gp0, 17
      S_MUL_INT  gp6, gp5, gp4
      S_ADD_FP   f1, f2, f3
      S_SUB_INT  gp7, gp6, gp5
      C_LOOP_END gp1
)";

// Rows through the vector unit.
constexpr std::string_view kVector = R"(
      S_ADDI_INT gp2, gp0, 64
      S_ADDI_INT gp3, gp0, 128
      C_LOOP_START gp1, 20000
      V_ADD_VV   gp2, gp3, gp0, 0
      V_MUL_VF   gp3, gp2, f1, 0
      V_EXP_V    gp0, gp3, 0
      V_RED_SUM  f1, gp0
      C_LOOP_END gp1
)";

// A tile streamed in, multiplied by a row, written out.
constexpr std::string_view kTiles = R"(
      S_ADDI_INT      gp2, gp0, 65536
      C_SET_ADDR_REG  a1, gp0, gp0
      C_SET_SCALE_REG gp2
      S_ADDI_INT      gp4, gp0, 4096
      C_LOOP_START    gp1, 2000
      H_PREFETCH_M    gp0, gp3, a1, 0, 0
      H_PREFETCH_M    gp4, gp3, a1, 0, 0
      M_MV            0, gp0, gp0
      M_MV            0, gp0, gp4
      M_MV_WO         gp0, 64
      C_LOOP_END      gp1
)";

void scalar(benchmark::State& state, const std::string& profile) {
  run_program(state, kScalar, profile);
}
void vector(benchmark::State& state, const std::string& profile) {
  run_program(state, kVector, profile);
}
void tiles(benchmark::State& state, const std::string& profile) {
  run_program(state, kTiles, profile);
}

// One token of the small story model at position 128.
void story_token(benchmark::State& state, const std::string& profile) {
  const auto model = open_llama2c(PLENA_SOURCE_DIR "/models/stories260K/stories260K.bin");
  if (!model) return state.SkipWithError(model.error().message.c_str());
  const auto image = compile(describe(*model), {});
  if (!image) return state.SkipWithError(image.error().message.c_str());
  const auto program = prepare(image->program.words, image->settings, image->dialect);
  const auto clock = make_clock(profile, instructions(**program), image->settings, image->dialect);
  auto session = Session::create(*image, {.observer = clock.get()});
  constexpr std::uint32_t kPosition = 128;
  for (std::uint32_t position = 0; position < kPosition; ++position) {
    if (!session->step(1, position)) return state.SkipWithError("the token failed");
  }
  const std::uint64_t before = session->machine().retired;
  for (auto _ : state) benchmark::DoNotOptimize(session->step(1, kPosition));
  state.counters["instructions/s"] = benchmark::Counter(
      static_cast<double>(session->machine().retired - before), benchmark::Counter::kIsRate);
}

#define PLENA_BENCH_UNDER_ALL_PROFILES(name)                                        \
  BENCHMARK_CAPTURE(name, functional, std::string(kNoClock));                       \
  BENCHMARK_CAPTURE(name, serial, std::string("serial"));                           \
  BENCHMARK_CAPTURE(name, pipelined, std::string("pipelined"));                     \
  BENCHMARK_CAPTURE(name, pipelined_hbm2_2000, std::string("pipelined/hbm2-2000")); \
  BENCHMARK_CAPTURE(name, ideal, std::string("ideal"))

PLENA_BENCH_UNDER_ALL_PROFILES(scalar);
PLENA_BENCH_UNDER_ALL_PROFILES(vector);
PLENA_BENCH_UNDER_ALL_PROFILES(tiles);
PLENA_BENCH_UNDER_ALL_PROFILES(story_token);

}  // namespace
}  // namespace plena
