// GPT-OSS: attention sinks, a window in every other layer, biases everywhere, and experts with a
// clamped SwiGLU whose gate and up columns alternate. Experts come as bf16 [experts, in, out] or as
// MXFP4 [experts, out, in].
#include "plena/model/families/decoder.h"

namespace plena {

namespace {

// One expert's matrix, [out, in].
using ExpertMatrix = std::function<Tensor(std::uint32_t expert)>;

ExpertMatrix bind_matrices(WeightReader& weights, const std::string& name, std::uint64_t count,
                           std::uint64_t out, std::uint64_t in) {
  if (weights.has(name + "_blocks")) {
    const Tensor all = weights.mxfp4(name, count, out, in);
    return [=](std::uint32_t expert) { return all.slice_rows(expert * out, out); };
  }
  if (weights.makes_up()) {  // in the order they are read in
    const Tensor all = weights.tensor(name, {count, out, in});
    return [=](std::uint32_t expert) { return all.slice_rows(expert * out, out); };
  }
  const Tensor all = weights.tensor(name, {count, in, out});
  return [=](std::uint32_t expert) { return all.slice_rows(expert * in, in).transposed(); };
}

void bind_experts(WeightReader& weights, const std::string& prefix, const ModelConfig& sizes,
                  LayerWeights& layer) {
  const std::uint64_t count = sizes.experts.count;
  const std::uint64_t hidden = sizes.hidden;
  const std::uint64_t width = sizes.experts.hidden;
  layer.router = weights.linear(prefix + "router", count, hidden, true);
  const std::string gate_up_name = prefix + "experts.gate_up_proj";
  const std::string down_name = prefix + "experts.down_proj";
  const auto gate_up = bind_matrices(weights, gate_up_name, count, 2 * width, hidden);
  const Tensor gate_up_bias = weights.tensor(gate_up_name + "_bias", {count, 2 * width});
  const auto down = bind_matrices(weights, down_name, count, hidden, width);
  const Tensor down_bias = weights.tensor(down_name + "_bias", {count, hidden});
  if (!weights.ok()) return;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Tensor matrix = gate_up(i);
    const Tensor bias = gate_up_bias.slice_rows(i, 1).transposed();  // [2 * width, 1]
    layer.experts.push_back({{matrix.every_row(0, 2), bias.every_row(0, 2).transposed()},
                             {matrix.every_row(1, 2), bias.every_row(1, 2).transposed()},
                             {down(i), down_bias.slice_rows(i, 1)}});
  }
}

void read_gpt_oss(ConfigReader& config, ModelConfig& sizes) {
  read_sizes(config, sizes);
  read_rotary(config, sizes, 150000);
  sizes.ffn = config.count("intermediate_size", kMostHidden * 8);
  sizes.activation = Activation::ClampedSwiglu;
  sizes.swiglu_limit = static_cast<float>(config.number("swiglu_limit", 7));
  sizes.swiglu_alpha = static_cast<float>(config.number("swiglu_alpha", 1.702));
  sizes.experts.count = config.count("num_local_experts", kMostExperts, 128);
  const char* chosen =
      config.has("num_experts_per_tok") ? "num_experts_per_tok" : "experts_per_token";
  sizes.experts.chosen = config.count(chosen, sizes.experts.count, 4);
  sizes.experts.hidden = sizes.ffn;
  for (LayerConfig& layer : sizes.layers) layer.experts = true;
  set_windows(config, sizes, config.count("sliding_window", kMostContext, 128),
              [](std::uint32_t layer) { return layer % 2 == 0; });
}

}  // namespace

void import_gpt_oss(ConfigReader& config, WeightReader& weights, Model& model) {
  ModelConfig& sizes = model.config;
  read_gpt_oss(config, sizes);
  read_special_tokens(config, model);
  bind_ends(config, weights, false, model);
  const bool bias = config.flag("attention_bias", true);
  for (std::size_t i = 0; i < sizes.layers.size() && weights.ok(); ++i) {
    const std::string prefix = layer_prefix(i);
    LayerWeights layer;
    layer.attention_norm = weights.norm(prefix + "input_layernorm", sizes.hidden);
    bind_attention(weights, prefix + "self_attn.", sizes, {.qkv_bias = bias, .output_bias = bias},
                   layer);
    layer.sinks = weights.tensor(prefix + "self_attn.sinks", {sizes.heads});
    layer.ffn_norm = weights.norm(prefix + "post_attention_layernorm", sizes.hidden);
    bind_experts(weights, prefix + "mlp.", sizes, layer);
    model.layers.push_back(std::move(layer));
  }
}

}  // namespace plena
