// Llama 1 to 3, SmolLM, TinyLlama and others of the same plan.
#include "plena/model/families/decoder.h"

namespace plena {

void import_llama(ConfigReader& config, WeightReader& weights, Model& model) {
  const bool bias = config.flag("attention_bias", false);
  import_plain_decoder(config, weights, {.qkv_bias = bias, .output_bias = bias}, 10000, model);
}

}  // namespace plena
