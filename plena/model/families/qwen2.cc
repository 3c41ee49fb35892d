// Qwen2 and Qwen2.5: Llama with biases on q, k and v, and an optional window in the upper layers.
#include "plena/model/families/decoder.h"
#include "plena/model/families/qwen.h"

namespace plena {

void set_qwen_windows(ConfigReader& config, ModelConfig& sizes) {
  if (!config.flag("use_sliding_window", false) || !config.has("sliding_window")) return;
  const std::uint32_t first = config.id("max_window_layers").value_or(28);
  set_windows(config, sizes, config.count("sliding_window", kMostContext),
              [first](std::uint32_t layer) { return layer >= first; });
}

void import_qwen2(ConfigReader& config, WeightReader& weights, Model& model) {
  import_plain_decoder(config, weights, {.qkv_bias = true}, 10000, model);
  set_qwen_windows(config, model.config);
}

}  // namespace plena
