// Qwen3-MoE: Qwen3 with experts in all or some layers; weights are a softmax over all experts,
// renormalised over the chosen ones with norm_topk_prob.
#include <algorithm>

#include "plena/model/families/decoder.h"

namespace plena {

namespace {

void read_experts(ConfigReader& config, ModelConfig& sizes) {
  const char* count_key = config.has("num_experts") ? "num_experts" : "num_local_experts";
  sizes.experts.count = config.count(count_key, kMostExperts, 128);
  sizes.experts.chosen = config.count("num_experts_per_tok", sizes.experts.count, 8);
  sizes.experts.hidden = config.count("moe_intermediate_size", kMostHidden * 8);
  sizes.experts.weighting = config.flag("norm_topk_prob", false) ? ExpertWeighting::SoftmaxOfChosen
                                                                 : ExpertWeighting::SoftmaxOfAll;
  const auto dense = config.ids("mlp_only_layers");
  const std::uint32_t step = config.count("decoder_sparse_step", kMostLayers, 1);
  for (std::uint32_t i = 0; i < sizes.layers.size(); ++i) {
    const bool listed = std::find(dense.begin(), dense.end(), i) != dense.end();
    sizes.layers[i].experts = !listed && (i + 1) % step == 0;
  }
}

}  // namespace

void import_qwen3_moe(ConfigReader& config, WeightReader& weights, Model& model) {
  ModelConfig& sizes = model.config;
  read_sizes(config, sizes);
  read_swiglu(config, sizes);
  read_rotary(config, sizes, 10000);
  read_special_tokens(config, model);
  read_experts(config, sizes);
  if (config.flag("use_sliding_window", false) && config.has("sliding_window")) {
    set_windows(config, sizes, config.count("sliding_window", kMostContext),
                [](std::uint32_t) { return true; });
  }
  bind_ends(config, weights, false, model);
  const bool bias = config.flag("attention_bias", false);
  for (std::size_t i = 0; i < sizes.layers.size() && weights.ok(); ++i) {
    const std::string prefix = layer_prefix(i);
    LayerWeights layer;
    layer.attention_norm = weights.norm(prefix + "input_layernorm", sizes.hidden);
    bind_attention(weights, prefix + "self_attn.", sizes,
                   {.qkv_bias = bias, .output_bias = bias, .head_norms = true}, layer);
    layer.ffn_norm = weights.norm(prefix + "post_attention_layernorm", sizes.hidden);
    if (sizes.layers[i].experts) {
      layer.router = weights.linear(prefix + "mlp.gate", sizes.experts.count, sizes.hidden);
      for (std::uint32_t expert = 0; expert < sizes.experts.count && weights.ok(); ++expert) {
        layer.experts.push_back(bind_gated(weights,
                                           fmt::format("{}mlp.experts.{}.", prefix, expert), sizes,
                                           sizes.experts.hidden));
      }
    } else {
      layer.ffn = bind_gated(weights, prefix + "mlp.", sizes, sizes.ffn);
    }
    model.layers.push_back(std::move(layer));
  }
}

}  // namespace plena
