// LLaDA: Llama blocks under other names, without a causal mask; a text is made by filling in mask
// tokens.
#include <cmath>

#include <nlohmann/json.hpp>

#include "plena/model/families/decoder.h"
#include "plena/model/rotary.h"

namespace plena {

namespace {

void read_llada(ConfigReader& config, ModelConfig& sizes) {
  sizes.hidden = config.count("d_model", kMostHidden);
  sizes.heads = config.count("n_heads", kMostHeads);
  sizes.kv_heads = config.count("n_kv_heads", kMostHeads, sizes.heads);
  sizes.head_dim = sizes.hidden / sizes.heads;
  sizes.layers.resize(config.count("n_layers", kMostLayers));
  sizes.ffn = config.count("mlp_hidden_size", kMostHidden * 8,
                           sizes.hidden * config.count("mlp_ratio", 8, 4));
  // Rows beyond the vocabulary are padding of the embedding.
  sizes.vocab = config.count("embedding_size", kMostVocab, config.count("vocab_size", kMostVocab));
  sizes.context = config.count("max_sequence_length", kMostContext);
  sizes.norm_epsilon = static_cast<float>(config.number("rms_norm_eps", 1e-5));
  sizes.score_scale = 1 / std::sqrt(static_cast<float>(sizes.head_dim));
  sizes.causal = false;
  sizes.rotary = {
      scaled_rotary(config, {}, config.number("rope_theta", 10000), sizes.head_dim, sizes.context)};
  const auto demand = [&](const char* key, std::string_view value) {
    const std::string found = config.text(key, value);
    if (found == value) return;
    config.reject(ErrorCode::Unsupported, fmt::format("{}: {} is {}", config.name(), key, found),
                  fmt::format("LLaDA as published has {}", value));
  };
  demand("block_type", "llama");
  demand("activation_type", "silu");
  demand("layer_norm_type", "rms");
}

}  // namespace

void import_llada(ConfigReader& config, WeightReader& weights, Model& model) {
  ModelConfig& sizes = model.config;
  read_llada(config, sizes);
  read_special_tokens(config, model);
  const std::string trunk = "model.transformer.";
  const bool bias = config.flag("include_bias", false);
  const bool qkv_bias = config.flag("include_qkv_bias", false) || bias;
  model.embedding = weights.tensor(trunk + "wte.weight", {sizes.vocab, sizes.hidden});
  for (std::size_t i = 0; i < sizes.layers.size() && weights.ok(); ++i) {
    const std::string prefix = fmt::format("{}blocks.{}.", trunk, i);
    const auto linear = [&](const char* name, std::uint64_t out, std::uint64_t in, bool biased) {
      return weights.linear(prefix + name, out, in, biased);
    };
    LayerWeights layer;
    layer.attention_norm = weights.norm(prefix + "attn_norm", sizes.hidden);
    layer.q = linear("q_proj", sizes.query_width(), sizes.hidden, qkv_bias);
    layer.k = linear("k_proj", sizes.kv_width(), sizes.hidden, qkv_bias);
    layer.v = linear("v_proj", sizes.kv_width(), sizes.hidden, qkv_bias);
    layer.o = linear("attn_out", sizes.hidden, sizes.query_width(), bias);
    layer.ffn_norm = weights.norm(prefix + "ff_norm", sizes.hidden);
    layer.ffn.gate = linear("ff_proj", sizes.ffn, sizes.hidden, bias);
    layer.ffn.up = linear("up_proj", sizes.ffn, sizes.hidden, bias);
    layer.ffn.down = linear("ff_out", sizes.hidden, sizes.ffn, bias);
    model.layers.push_back(std::move(layer));
  }
  model.final_norm = weights.norm(trunk + "ln_f", sizes.hidden);
  model.tied = config.flag("weight_tying", false);
  if (model.tied) {
    model.output.weight = model.embedding;
  } else {
    model.output = weights.linear(trunk + "ff_out", sizes.vocab, sizes.hidden, bias);
  }
}

void import_masked_llama(ConfigReader& config, WeightReader& weights, Model& model) {
  import_llama(config, weights, model);
  model.config.causal = false;
}

}  // namespace plena
