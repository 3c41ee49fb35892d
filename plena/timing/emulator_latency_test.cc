// The profile `plena-rs` against the public emulator's own latencies, measured on the compiled
// kernels (conformance/README.md).
#include <cstdlib>

#include <gtest/gtest.h>

#include "plena/base/files.h"
#include "plena/base/shared_data.h"
#include "plena/cases/bundle.h"
#include "plena/cases/collect.h"
#include "plena/cases/emulator_run.h"
#include "plena/timing/emulator_hbm.h"
#include "plena/timing/timing.h"

namespace plena {
namespace {

struct Latency {
  std::string kernel;
  Cycle ours = 0;
  Cycle emulators = 0;
  std::uint64_t hbm_bytes = 0;

  [[nodiscard]] double deviation() const {
    return static_cast<double>(ours) / static_cast<double>(emulators) - 1;
  }
};

// The whole number behind a key. bundle.json may hold a bare NaN, which no JSON parser takes.
std::uint64_t number_after(const std::string& json, const std::string& key) {
  const std::size_t at = json.find(key);
  EXPECT_NE(at, std::string::npos) << key;
  return std::strtoull(json.c_str() + at + key.size(), nullptr, 10);
}

Latency measure(const std::string& folder) {
  const auto bundle = load_bundle(folder);
  const std::string json = *read_text(folder + "/bundle.json");
  const auto text = emulator_program(bundle->program, bundle->name);
  const auto program = prepare(text->program.words, bundle->settings, Dialect::plena_rs());
  auto timing = Timing::create(*load_profile("plena-rs"), std::make_unique<EmulatorHbm>(1000),
                               instructions(**program), bundle->settings, Dialect::plena_rs());
  EXPECT_TRUE(timing) << timing.error().render();
  const auto run = run_emulator({.settings = bundle->settings,
                                 .program = &*text,
                                 .hbm = bundle->hbm,
                                 .fp_sram = bundle->fp_sram,
                                 .int_sram = bundle->int_sram,
                                 .vram = bundle->vram},
                                {.observer = timing->get()});
  EXPECT_TRUE(run) << run.error().render();
  EXPECT_TRUE((*timing)->drain());
  return {bundle->name, (*timing)->model().total(), number_after(json, "\"emulator_latency_ns\": "),
          bundle->hbm_read + bundle->hbm_written};
}

// Without memory traffic to the nanosecond. With it the emulator itself moves by a few nanoseconds
// with the host's memory layout (dialect-plena-rs 7 allows 0.1 %): a request that was refused and
// the memory's next tick are two timers of one instant, and their addresses decide which is first.
TEST(EmulatorLatency, KernelsTakeTheEmulatorsTime) {
  PLENA_NEEDS_SHARED();
  const auto folders = collect_cases({shared_data() + "/conformance/kernels"});
  ASSERT_TRUE(folders);
  EXPECT_EQ(folders->size(), 48U);
  std::size_t exact = 0;
  for (const std::string& folder : *folders) {
    const Latency latency = measure(folder);
    if (latency.hbm_bytes == 0) {
      EXPECT_EQ(latency.ours, latency.emulators) << latency.kernel;
    }
    EXPECT_NEAR(latency.deviation(), 0.0, 0.001) << latency.kernel;
    if (latency.ours == latency.emulators) ++exact;
  }
  EXPECT_GE(exact, 43U);
}

}  // namespace
}  // namespace plena
