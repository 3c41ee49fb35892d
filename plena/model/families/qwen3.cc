// Qwen3: Llama with a norm on each head of q and k, and a head size of its own.
#include "plena/model/families/decoder.h"
#include "plena/model/families/qwen.h"

namespace plena {

void import_qwen3(ConfigReader& config, WeightReader& weights, Model& model) {
  const bool bias = config.flag("attention_bias", false);
  import_plain_decoder(config, weights, {.qkv_bias = bias, .output_bias = bias, .head_norms = true},
                       10000, model);
  set_qwen_windows(config, model.config);
}

}  // namespace plena
