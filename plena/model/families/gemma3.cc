// Gemma 3 (text): a norm on each head of q and k, most layers with a window, and frequencies of
// their own for the layers with and without one.
#include <nlohmann/json.hpp>

#include "plena/model/families/decoder.h"
#include "plena/model/families/gemma.h"
#include "plena/model/rotary.h"

namespace plena {

namespace {

constexpr std::uint32_t kFull = 0;  // indices of the rotary tables
constexpr std::uint32_t kSliding = 1;

// Newer configs have rope_parameters for either kind of layer, older ones rope_theta and
// rope_scaling of the full layers and rope_local_base_freq of the others.
void read_gemma3_rotary(ConfigReader& config, ModelConfig& sizes) {
  const auto table = [&](const nlohmann::json& scaling, double theta) {
    return scaled_rotary(config, scaling, theta, sizes.head_dim, sizes.context);
  };
  const ConfigReader parameters(config.object("rope_parameters"), config.name());
  if (config.has("rope_parameters")) {
    const auto newer = [&](const char* kind, double default_theta) {
      const nlohmann::json& object = parameters.object(kind);
      ConfigReader reader(object, fmt::format("{}: rope_parameters: {}", config.name(), kind));
      return table(object, reader.number("rope_theta", default_theta));
    };
    sizes.rotary = {newer("full_attention", 1e6), newer("sliding_attention", 1e4)};
  } else {
    sizes.rotary = {table(config.object("rope_scaling"), config.number("rope_theta", 1e6)),
                    table({}, config.number("rope_local_base_freq", 1e4))};
  }
  for (LayerConfig& layer : sizes.layers) layer.rotary = layer.window == 0 ? kFull : kSliding;
}

}  // namespace

void import_gemma3(ConfigReader& config, WeightReader& weights, Model& model) {
  read_sizes(config, model.config);
  const std::uint32_t pattern = config.count("sliding_window_pattern", kMostLayers, 6);
  set_windows(config, model.config, config.count("sliding_window", kMostContext, 4096),
              [pattern](std::uint32_t layer) { return (layer + 1) % pattern != 0; });
  read_gemma3_rotary(config, model.config);
  import_gemma(config, weights, true, model);
}

}  // namespace plena
