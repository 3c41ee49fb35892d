// Mistral: Llama with a sliding window in every layer.
#include "plena/model/families/decoder.h"

namespace plena {

void import_mistral(ConfigReader& config, WeightReader& weights, Model& model) {
  import_plain_decoder(config, weights, {}, 10000, model);
  if (config.has("sliding_window")) {
    set_windows(config, model.config, config.count("sliding_window", kMostContext),
                [](std::uint32_t) { return true; });
  }
}

}  // namespace plena
