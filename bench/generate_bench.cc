// Simulated tokens a second: stories260K, fed greedily from its start, one thread.
#include <algorithm>

#include <benchmark/benchmark.h>

#include "plena/compiler/compile.h"
#include "plena/model/llama.h"
#include "plena/runtime/session.h"

namespace plena {
namespace {

constexpr const char* kModel = PLENA_SOURCE_DIR "/models/stories260K/stories260K.bin";

Settings default_types() {
  return {};
}

// bf16 in HBM and on chip.
Settings bf16_types() {
  Settings settings;
  for (DataType* type : {&settings.hbm_m_weight_type, &settings.hbm_m_kv_type,
                         &settings.hbm_v_act_type, &settings.hbm_v_kv_type}) {
    *type = DataType::plain(kBf16);
  }
  return settings;
}

std::uint32_t likeliest(std::span<const float> logits) {
  return static_cast<std::uint32_t>(std::max_element(logits.begin(), logits.end()) -
                                    logits.begin());
}

// Decodes `positions` tokens from BOS on; a step is what one iteration counts.
void decode(benchmark::State& state, const Settings& settings) {
  const auto positions = static_cast<std::uint32_t>(state.range(0));
  auto model = open_llama2c(kModel);
  if (!model) return state.SkipWithError(model.error().render().c_str());
  auto image = compile(describe(*model), {.settings = settings, .model_name = "stories260K"});
  if (!image) return state.SkipWithError(image.error().render().c_str());
  auto session = Session::create(*image);
  if (!session) return state.SkipWithError(session.error().render().c_str());
  for (auto _ : state) {
    std::uint32_t token = 1;
    for (std::uint32_t position = 0; position < positions; ++position) {
      auto logits = session->step(token, position);
      if (!logits) return state.SkipWithError(logits.error().render().c_str());
      token = likeliest(*logits);
    }
  }
  state.counters["tokens/s"] =
      benchmark::Counter(static_cast<double>(positions) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

void decode_mxfp8(benchmark::State& state) {
  decode(state, default_types());
}
void decode_bf16(benchmark::State& state) {
  decode(state, bf16_types());
}
BENCHMARK(decode_mxfp8)->Arg(200)->Arg(512)->Unit(benchmark::kMillisecond);
BENCHMARK(decode_bf16)->Arg(200)->Arg(512)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plena
