// Requests a second through the HBM controller: sequential and random reads, one and eight
// channels, both policies.
#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>

#include "plena/dram/controller.h"

namespace plena::dram {
namespace {

constexpr std::uint64_t kSpan = std::uint64_t{1} << 25;  // bursts, 1 GiB

enum class Pattern : std::uint8_t { Sequential, Random, Mixed };

Request request(Pattern pattern, std::uint64_t k, std::uint64_t& random) {
  if (pattern == Pattern::Sequential) return {.address = 32 * (k % kSpan), .id = k};
  if (pattern == Pattern::Mixed)
    return {.address = 32 * (k % kSpan), .id = k, .is_write = k % 2 == 1};
  random = random * 6364136223846793005U + 1442695040888963407U;
  return {.address = 32 * (random >> 33 & (kSpan - 1)), .id = k};
}

void run(benchmark::State& state, const char* preset, std::uint32_t channels, const Policy& policy,
         Pattern pattern) {
  auto memory = Controller::make(
      {.preset = *find_dram_preset(preset), .channels = channels, .policy = policy});
  Tick tick = 0;
  Tick finished = 0;
  std::uint64_t k = 0;
  std::uint64_t random = 1;
  for (auto _ : state) {
    tick = memory->submit(request(pattern, k, random), tick);
    if (++k % 1024 != 0) continue;
    memory->take_completions([&](const Completion& one) { finished = one.finished; });
  }
  benchmark::DoNotOptimize(finished);
  state.SetItemsProcessed(static_cast<std::int64_t>(k));
}

void add(const std::string& name, const char* preset, std::uint32_t channels, const Policy& policy,
         Pattern pattern) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    run(state, preset, channels, policy, pattern);
  });
}

const bool kRegistered = [] {
  for (const char* preset : {"hbm2-2000", "hbm3-6400"}) {
    for (const std::uint32_t channels : {1U, 8U}) {
      for (const bool open : {false, true}) {
        const Policy policy = open ? kOpenPolicy : kReferencePolicy;
        const std::string name =
            fmt::format("dram/{}/{}ch/{}", preset, channels, open ? "open" : "reference");
        add(name + "/sequential", preset, channels, policy, Pattern::Sequential);
        add(name + "/random", preset, channels, policy, Pattern::Random);
        add(name + "/mixed", preset, channels, policy, Pattern::Mixed);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace plena::dram
