// GPT-2: LayerNorm, learned positions, one matrix for q, k and v, a plain MLP. OpenAI's files keep
// matrices as [in, out] (Conv1D); minGPT's keep them as [out, in] and say so with model_type gpt-*.
#include <cmath>

#include "plena/model/families/decoder.h"

namespace plena {

namespace {

void read_gpt2(ConfigReader& config, ModelConfig& sizes) {
  sizes.hidden = config.count("n_embd", kMostHidden);
  sizes.heads = config.count("n_head", kMostHeads);
  sizes.kv_heads = sizes.heads;
  sizes.head_dim = sizes.hidden / sizes.heads;
  sizes.layers.resize(config.count("n_layer", kMostLayers));
  sizes.ffn = config.count("n_inner", kMostHidden * 8, 4 * sizes.hidden);
  sizes.vocab = config.count("vocab_size", kMostVocab);
  sizes.context =
      config.count(config.has("block_size") ? "block_size" : "n_positions", kMostContext);
  sizes.norm = NormKind::Layer;
  sizes.norm_epsilon = static_cast<float>(config.number("layer_norm_epsilon", 1e-5));
  sizes.score_scale = 1 / std::sqrt(static_cast<float>(sizes.head_dim));
  sizes.gated = false;
  const std::string activation = config.text("activation_function", "gelu_new");
  if (activation == "gelu_new" || activation == "gelu_pytorch_tanh") {
    sizes.activation = Activation::TanhGelu;
  } else if (activation == "gelu") {
    sizes.activation = Activation::ErfGelu;
  } else {
    config.reject(ErrorCode::Unsupported,
                  fmt::format("{}: activation_function is {}", config.name(), activation),
                  "this family uses gelu_new or gelu");
  }
}

class Gpt2Binder {
 public:
  Gpt2Binder(WeightReader& weights, const ModelConfig& sizes, bool in_first)
      : weights_(weights), sizes_(sizes), in_first_(in_first) {}

  LayerWeights layer(const std::string& prefix) {
    const std::uint64_t hidden = sizes_.hidden;
    LayerWeights layer;
    layer.attention_norm = weights_.norm(prefix + "ln_1", hidden);
    const Linear qkv = linear(prefix + "attn.c_attn", 3 * hidden, hidden);
    layer.q = part(qkv, 0);
    layer.k = part(qkv, 1);
    layer.v = part(qkv, 2);
    layer.o = linear(prefix + "attn.c_proj", hidden, hidden);
    layer.ffn_norm = weights_.norm(prefix + "ln_2", hidden);
    layer.ffn.up = linear(prefix + "mlp.c_fc", sizes_.ffn, hidden);
    layer.ffn.down = linear(prefix + "mlp.c_proj", hidden, sizes_.ffn);
    return layer;
  }

 private:
  Linear linear(const std::string& prefix, std::uint64_t out, std::uint64_t in) {
    if (!in_first_) return weights_.linear(prefix, out, in, true);
    return {weights_.tensor(prefix + ".weight", {in, out}).transposed(),
            weights_.tensor(prefix + ".bias", {out})};
  }

  // q, k or v of the fused matrix.
  [[nodiscard]] Linear part(const Linear& fused, std::uint64_t index) const {
    if (!fused.weight || !fused.bias) return {};
    const std::uint64_t hidden = sizes_.hidden;
    return {fused.weight.slice_rows(index * hidden, hidden),
            fused.bias.transposed().slice_rows(index * hidden, hidden).transposed()};
  }

  WeightReader& weights_;
  const ModelConfig& sizes_;
  bool in_first_;
};

}  // namespace

void import_gpt2(ConfigReader& config, WeightReader& weights, Model& model) {
  ModelConfig& sizes = model.config;
  read_gpt2(config, sizes);
  read_special_tokens(config, model);
  const bool in_first = !config.text("model_type", "gpt2").starts_with("gpt-");
  // OpenAI's own upload leaves the prefix out that the library's class writes.
  const std::string prefix = weights.has("wte.weight") ? "" : "transformer.";
  model.embedding = weights.tensor(prefix + "wte.weight", {sizes.vocab, sizes.hidden});
  model.positions = weights.tensor(prefix + "wpe.weight", {sizes.context, sizes.hidden});
  Gpt2Binder binder(weights, sizes, in_first);
  for (std::size_t i = 0; i < sizes.layers.size() && weights.ok(); ++i) {
    model.layers.push_back(binder.layer(fmt::format("{}h.{}.", prefix, i)));
  }
  model.final_norm = weights.norm(prefix + "ln_f", sizes.hidden);
  model.tied = config.flag("tie_word_embeddings", in_first) && !weights.has("lm_head.weight");
  if (model.tied) {
    model.output.weight = model.embedding;
  } else {
    model.output = weights.linear("lm_head", sizes.vocab, sizes.hidden);
  }
}

}  // namespace plena
