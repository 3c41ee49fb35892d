#include "plena/model/families/decoder.h"

#include <cmath>

#include "plena/model/rotary.h"

namespace plena {

void read_sizes(ConfigReader& config, ModelConfig& sizes) {
  sizes.hidden = config.count("hidden_size", kMostHidden);
  sizes.heads = config.count("num_attention_heads", kMostHeads);
  sizes.kv_heads = config.count("num_key_value_heads", kMostHeads, sizes.heads);
  sizes.head_dim = config.count("head_dim", kMostHeadDim, sizes.hidden / sizes.heads);
  sizes.layers.resize(config.count("num_hidden_layers", kMostLayers));
  sizes.vocab = config.count("vocab_size", kMostVocab);
  sizes.context = config.count("max_position_embeddings", kMostContext);
  sizes.norm_epsilon = static_cast<float>(config.number("rms_norm_eps", 1e-6));
  sizes.score_scale = 1 / std::sqrt(static_cast<float>(sizes.head_dim));
}

void read_swiglu(ConfigReader& config, ModelConfig& sizes) {
  sizes.ffn = config.count("intermediate_size", kMostHidden * 8);
  const std::string activation = config.text("hidden_act", "silu");
  if (activation != "silu" && activation != "swiglu") {
    config.reject(ErrorCode::Unsupported,
                  fmt::format("{}: hidden_act is {}", config.name(), activation),
                  "this family uses silu");
  }
}

void read_rotary(ConfigReader& config, ModelConfig& sizes, double default_theta) {
  const bool newer = config.has("rope_parameters");
  ConfigReader parameters(config.object("rope_parameters"), config.name() + ": rope_parameters");
  const double theta = newer ? parameters.number("rope_theta", default_theta)
                             : config.number("rope_theta", default_theta);
  sizes.rotary = {scaled_rotary(config, config.object(newer ? "rope_parameters" : "rope_scaling"),
                                theta, sizes.head_dim, sizes.context)};
}

void set_windows(ConfigReader& config, ModelConfig& sizes, std::uint32_t window,
                 const std::function<bool(std::uint32_t)>& slides) {
  const auto types = config.texts("layer_types");
  if (!types.empty() && types.size() != sizes.layers.size()) {
    config.reject(ErrorCode::Format,
                  fmt::format("{}: layer_types has {} entries", config.name(), types.size()),
                  fmt::format("one for each of {} layers", sizes.layers.size()));
    return;
  }
  for (std::uint32_t i = 0; i < sizes.layers.size(); ++i) {
    if (!types.empty() && types[i] != "sliding_attention" && types[i] != "full_attention") {
      config.reject(ErrorCode::Unsupported,
                    fmt::format("{}: layer {} is {}", config.name(), i, types[i]),
                    "layers are sliding_attention or full_attention");
    }
    const bool sliding = types.empty() ? slides(i) : types[i] == "sliding_attention";
    sizes.layers[i].window = sliding ? window : 0;
  }
}

void read_special_tokens(ConfigReader& config, Model& model) {
  model.special.begin = config.id("bos_token_id");
  model.special.ends = config.ids("eos_token_id");
  model.special.mask = config.id("mask_token_id");
}

void bind_attention(WeightReader& weights, const std::string& prefix, const ModelConfig& sizes,
                    AttentionParts parts, LayerWeights& layer) {
  layer.q = weights.linear(prefix + "q_proj", sizes.query_width(), sizes.hidden, parts.qkv_bias);
  layer.k = weights.linear(prefix + "k_proj", sizes.kv_width(), sizes.hidden, parts.qkv_bias);
  layer.v = weights.linear(prefix + "v_proj", sizes.kv_width(), sizes.hidden, parts.qkv_bias);
  layer.o = weights.linear(prefix + "o_proj", sizes.hidden, sizes.query_width(), parts.output_bias);
  if (parts.head_norms) {
    layer.q_norm = weights.norm(prefix + "q_norm", sizes.head_dim);
    layer.k_norm = weights.norm(prefix + "k_norm", sizes.head_dim);
  }
}

FeedForwardWeights bind_gated(WeightReader& weights, const std::string& prefix,
                              const ModelConfig& sizes, std::uint32_t width, bool bias) {
  return {weights.linear(prefix + "gate_proj", width, sizes.hidden, bias),
          weights.linear(prefix + "up_proj", width, sizes.hidden, bias),
          weights.linear(prefix + "down_proj", sizes.hidden, width, bias)};
}

void bind_ends(ConfigReader& config, WeightReader& weights, bool tied_by_default, Model& model) {
  const ModelConfig& sizes = model.config;
  model.embedding = weights.tensor("model.embed_tokens.weight", {sizes.vocab, sizes.hidden});
  model.final_norm = weights.norm("model.norm", sizes.hidden);
  model.tied = config.flag("tie_word_embeddings", tied_by_default);
  if (model.tied) {
    model.output.weight = model.embedding;
  } else {
    model.output = weights.linear("lm_head", sizes.vocab, sizes.hidden);
  }
}

std::string layer_prefix(std::size_t layer) {
  return fmt::format("model.layers.{}.", layer);
}

void import_plain_decoder(ConfigReader& config, WeightReader& weights, AttentionParts parts,
                          double default_theta, Model& model) {
  read_sizes(config, model.config);
  read_swiglu(config, model.config);
  read_rotary(config, model.config, default_theta);
  read_special_tokens(config, model);
  bind_ends(config, weights, false, model);
  const bool mlp_bias = config.flag("mlp_bias", false);
  for (std::size_t i = 0; i < model.config.layers.size() && weights.ok(); ++i) {
    const std::string prefix = layer_prefix(i);
    LayerWeights layer;
    layer.attention_norm = weights.norm(prefix + "input_layernorm", model.config.hidden);
    bind_attention(weights, prefix + "self_attn.", model.config, parts, layer);
    layer.ffn_norm = weights.norm(prefix + "post_attention_layernorm", model.config.hidden);
    layer.ffn = bind_gated(weights, prefix + "mlp.", model.config, model.config.ffn, mlp_bias);
    model.layers.push_back(std::move(layer));
  }
}

}  // namespace plena
