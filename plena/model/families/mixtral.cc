// Mixtral: Mistral with experts, whose weights are a softmax over the chosen ones.
#include "plena/model/families/decoder.h"

namespace plena {

namespace {

void bind_mixtral_experts(WeightReader& weights, const std::string& prefix,
                          const ModelConfig& sizes, LayerWeights& layer) {
  layer.router = weights.linear(prefix + "gate", sizes.experts.count, sizes.hidden);
  for (std::uint32_t i = 0; i < sizes.experts.count && weights.ok(); ++i) {
    const std::string expert = fmt::format("{}experts.{}.", prefix, i);
    layer.experts.push_back({weights.linear(expert + "w1", sizes.experts.hidden, sizes.hidden),
                             weights.linear(expert + "w3", sizes.experts.hidden, sizes.hidden),
                             weights.linear(expert + "w2", sizes.hidden, sizes.experts.hidden)});
  }
}

}  // namespace

void import_mixtral(ConfigReader& config, WeightReader& weights, Model& model) {
  ModelConfig& sizes = model.config;
  read_sizes(config, sizes);
  read_swiglu(config, sizes);
  read_rotary(config, sizes, 1e6);
  read_special_tokens(config, model);
  sizes.experts.count = config.count("num_local_experts", kMostExperts, 8);
  sizes.experts.chosen = config.count("num_experts_per_tok", sizes.experts.count, 2);
  sizes.experts.hidden = sizes.ffn;
  for (LayerConfig& layer : sizes.layers) layer.experts = true;
  if (config.has("sliding_window")) {
    set_windows(config, sizes, config.count("sliding_window", kMostContext),
                [](std::uint32_t) { return true; });
  }
  bind_ends(config, weights, false, model);
  for (std::size_t i = 0; i < sizes.layers.size() && weights.ok(); ++i) {
    const std::string prefix = layer_prefix(i);
    LayerWeights layer;
    layer.attention_norm = weights.norm(prefix + "input_layernorm", sizes.hidden);
    bind_attention(weights, prefix + "self_attn.", sizes, {}, layer);
    layer.ffn_norm = weights.norm(prefix + "post_attention_layernorm", sizes.hidden);
    bind_mixtral_experts(weights, prefix + "block_sparse_moe.", sizes, layer);
    model.layers.push_back(std::move(layer));
  }
}

}  // namespace plena
