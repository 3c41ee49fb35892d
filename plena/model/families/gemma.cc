#include "plena/model/families/gemma.h"

#include <cmath>

#include "plena/model/families/decoder.h"

namespace plena {

namespace {

Norm add_one(Norm norm) {
  if (norm) norm.weight = norm.weight.plus(1);
  return norm;
}

void read_gemma(ConfigReader& config, ModelConfig& sizes) {
  sizes.ffn = config.count("intermediate_size", kMostHidden * 8);
  sizes.activation = Activation::TanhGelu;
  sizes.embedding_scale = std::sqrt(static_cast<float>(sizes.hidden));
  sizes.score_scale =
      static_cast<float>(1 / std::sqrt(config.number("query_pre_attn_scalar", 256)));
  sizes.score_cap = static_cast<float>(config.number("attn_logit_softcapping", 0));
  sizes.logit_cap = static_cast<float>(config.number("final_logit_softcapping", 0));
  const std::string activation =
      config.text("hidden_activation", config.text("hidden_act", "gelu_pytorch_tanh"));
  if (activation != "gelu_pytorch_tanh") {
    config.reject(ErrorCode::Unsupported,
                  fmt::format("{}: hidden_activation is {}", config.name(), activation),
                  "this family uses gelu_pytorch_tanh");
  }
}

}  // namespace

void import_gemma(ConfigReader& config, WeightReader& weights, bool head_norms, Model& model) {
  ModelConfig& sizes = model.config;
  read_gemma(config, sizes);
  read_special_tokens(config, model);
  bind_ends(config, weights, true, model);
  model.final_norm = add_one(model.final_norm);
  const bool bias = config.flag("attention_bias", false);
  for (std::size_t i = 0; i < sizes.layers.size() && weights.ok(); ++i) {
    const std::string prefix = layer_prefix(i);
    const auto norm = [&](const char* name) {
      return add_one(weights.norm(prefix + name, sizes.hidden));
    };
    LayerWeights layer;
    layer.attention_norm = norm("input_layernorm");
    bind_attention(weights, prefix + "self_attn.", sizes,
                   {.qkv_bias = bias, .output_bias = bias, .head_norms = head_norms}, layer);
    layer.q_norm = add_one(layer.q_norm);
    layer.k_norm = add_one(layer.k_norm);
    layer.post_attention_norm = norm("post_attention_layernorm");
    layer.ffn_norm = norm("pre_feedforward_layernorm");
    layer.ffn = bind_gated(weights, prefix + "mlp.", sizes, sizes.ffn);
    layer.post_ffn_norm = norm("post_feedforward_layernorm");
    model.layers.push_back(std::move(layer));
  }
}

}  // namespace plena
