// Gemma 2: soft caps, and a window in every other layer.
#include "plena/model/families/decoder.h"
#include "plena/model/families/gemma.h"

namespace plena {

void import_gemma2(ConfigReader& config, WeightReader& weights, Model& model) {
  read_sizes(config, model.config);
  read_rotary(config, model.config, 10000);
  set_windows(config, model.config, config.count("sliding_window", kMostContext, 4096),
              [](std::uint32_t layer) { return layer % 2 == 0; });
  import_gemma(config, weights, false, model);
}

}  // namespace plena
