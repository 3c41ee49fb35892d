// Models in GGUF files. Their tensors have the same names in all families, and mostly say
// themselves which parts a layer has; a row of the table below says the rest. Norms whose weight is
// 1 + w have the 1 added already.
#include "plena/model/gguf.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "plena/model/families/decoder.h"
#include "plena/model/open_model.h"
#include "plena/model/rotary.h"

namespace plena {

namespace {

struct GgufArchitecture {
  std::string_view name;
  // llama's q and k rows are permuted when they are converted, others' not.
  RotaryPairing pairing = RotaryPairing::Halves;
  Activation activation = Activation::Silu;
  bool scaled_embedding = false;  // by the root of its width
  std::uint32_t period = 0;       // all but the last layer of so many have the window; 0: none has
  std::uint32_t window = 0;       // where the file does not say how wide it is
  double sliding_theta = 0;       // of layers with a window; 0: that of the others
  std::uint32_t sums_of_heads = 0;  // a model of so many layers scales scores by its hidden / heads
  bool whole_ramp = true;           // YaRN's ends are rounded outwards
};

constexpr std::array<GgufArchitecture, 9> kArchitectures{{
    {.name = "llama", .pairing = RotaryPairing::Neighbours},
    {.name = "qwen2"},
    {.name = "qwen3"},
    {.name = "qwen3moe"},
    {.name = "gemma", .activation = Activation::TanhGelu, .scaled_embedding = true},
    {.name = "gemma2",
     .activation = Activation::TanhGelu,
     .scaled_embedding = true,
     .period = 2,
     .window = 4096,
     .sums_of_heads = 46},
    {.name = "gemma3",
     .activation = Activation::TanhGelu,
     .scaled_embedding = true,
     .period = 6,
     .sliding_theta = 10000,
     .sums_of_heads = 62},
    {.name = "gpt-oss", .activation = Activation::ClampedSwiglu, .period = 2, .whole_ramp = false},
    {.name = "gpt2", .activation = Activation::TanhGelu},
}};

// Of gpt-oss; no key says them.
constexpr float kSwigluLimit = 7;
constexpr float kSwigluAlpha = 1.702F;

// Of YaRN, where a file does not say otherwise.
constexpr double kBetaFast = 32;
constexpr double kBetaSlow = 1;

constexpr const char* kPositions = "position_embd.weight";

Result<const GgufArchitecture*> find_architecture(const std::string& name,
                                                  const std::string& path) {
  std::string known;
  for (const GgufArchitecture& architecture : kArchitectures) {
    if (architecture.name == name) return &architecture;
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  return fail_with_hint(ErrorCode::Unsupported,
                        fmt::format("{}: unknown architecture {}", path, name),
                        "known ones: " + known);
}

class Importer {
 public:
  Importer(const GgufArchitecture& architecture, const Gguf& gguf, const std::string& path)
      : architecture_(architecture),
        tensors_(gguf.tensors),
        config_(gguf.metadata, path),
        weights_(gguf.tensors, path) {}

  Result<Model> import() {
    model_.architecture = architecture_.name;
    read_sizes();
    read_windows();
    if (!tensors_.contains(kPositions)) read_rotary();
    read_special_tokens();
    if (auto read = config_.status(); !read) return forward_error(read);
    bind_ends();
    for (std::size_t i = 0; i < sizes_.layers.size() && weights_.ok(); ++i) bind_layer(i);
    if (auto bound = weights_.status(); !bound) return forward_error(bound);
    return std::move(model_);
  }

 private:
  [[nodiscard]] std::string key(std::string_view name) const {
    return fmt::format("{}.{}", architecture_.name, name);
  }

  void read_sizes() {
    sizes_.hidden = config_.count(key("embedding_length"), kMostHidden);
    sizes_.heads = config_.count(key("attention.head_count"), kMostHeads);
    sizes_.kv_heads = config_.count(key("attention.head_count_kv"), kMostHeads, sizes_.heads);
    sizes_.head_dim = config_.count(key("attention.key_length"), kMostHeadDim,
                                    std::max(sizes_.hidden / sizes_.heads, 1U));
    sizes_.layers.resize(config_.count(key("block_count"), kMostLayers));
    sizes_.context = config_.count(key("context_length"), kMostContext);
    sizes_.ffn = config_.count(key("feed_forward_length"), kMostHidden * 8);
    read_arithmetic();
    // The vocabulary is as large as the embedding; the key for it is often missing.
    const auto embedding = tensors_.find("token_embd.weight");
    if (embedding != tensors_.end() && embedding->second.shape.size() == 2 &&
        embedding->second.shape[0] <= kMostVocab) {
      sizes_.vocab = static_cast<std::uint32_t>(embedding->second.shape[0]);
    }
    read_experts();
  }

  void read_arithmetic() {
    const std::string layer_norm = key("attention.layer_norm_epsilon");
    sizes_.norm = config_.has(layer_norm) ? NormKind::Layer : NormKind::Rms;
    sizes_.norm_epsilon = static_cast<float>(config_.number(
        sizes_.norm == NormKind::Layer ? layer_norm : key("attention.layer_norm_rms_epsilon")));
    const std::uint32_t summed = sizes_.layers.size() == architecture_.sums_of_heads
                                     ? sizes_.hidden / sizes_.heads
                                     : sizes_.head_dim;
    sizes_.score_scale = 1 / std::sqrt(static_cast<float>(std::max(summed, 1U)));
    sizes_.score_cap = static_cast<float>(config_.number(key("attn_logit_softcapping"), 0));
    sizes_.logit_cap = static_cast<float>(config_.number(key("final_logit_softcapping"), 0));
    sizes_.pairing = architecture_.pairing;
    sizes_.activation = architecture_.activation;
    sizes_.swiglu_limit = kSwigluLimit;
    sizes_.swiglu_alpha = kSwigluAlpha;
    sizes_.gated = tensors_.contains(block(0) + "ffn_gate.weight") ||
                   tensors_.contains(block(0) + "ffn_gate_exps.weight");
    if (architecture_.scaled_embedding) {
      sizes_.embedding_scale = std::sqrt(static_cast<float>(sizes_.hidden));
    }
  }

  // A window, and the period of layers that have it; newer files say the period.
  void read_windows() {
    if (architecture_.period == 0) return;
    const std::string name = key("attention.sliding_window");
    if (architecture_.window == 0 && config_.id(name).value_or(0) == 0) return;
    const std::uint32_t window = config_.count(name, kMostContext, architecture_.window);
    const std::uint32_t period =
        config_.count(key("attention.sliding_window_pattern"), kMostLayers, architecture_.period);
    for (std::size_t i = 0; i < sizes_.layers.size(); ++i) {
      if ((i + 1) % period == 0) continue;
      sizes_.layers[i].window = window;
      sizes_.layers[i].rotary = architecture_.sliding_theta != 0 ? 1 : 0;
    }
  }

  void read_experts() {
    if (!config_.has(key("expert_count"))) return;
    sizes_.experts.count = config_.count(key("expert_count"), kMostExperts);
    sizes_.experts.chosen = config_.count(key("expert_used_count"), sizes_.experts.count);
    sizes_.experts.hidden =
        config_.count(key("expert_feed_forward_length"), kMostHidden * 8, sizes_.ffn);
    for (std::size_t i = 0; i < sizes_.layers.size(); ++i) {
      sizes_.layers[i].experts = tensors_.contains(block(i) + "ffn_gate_inp.weight");
    }
  }

  // The plain table of `width` elements, stretched as the file says by a factor for all pairs,
  // YaRN, or a factor a pair (the tensor rope_freqs.weight, in which Llama 3's scaling is written
  // down).
  void read_rotary() {
    const std::uint32_t width =
        config_.count(key("rope.dimension_count"), sizes_.head_dim, sizes_.head_dim);
    const double theta = config_.number(key("rope.freq_base"), 10000);
    nlohmann::json scaling = {
        {"rope_type", config_.text(key("rope.scaling.type"), "default")},
        {"factor", config_.number(key("rope.scaling.factor"), 1)},
        {"original_max_position_embeddings",
         config_.number(key("rope.scaling.original_context_length"), sizes_.context)},
        {"beta_fast", config_.number(key("rope.scaling.yarn_beta_fast"), kBetaFast)},
        {"beta_slow", config_.number(key("rope.scaling.yarn_beta_slow"), kBetaSlow)},
        {"truncate", architecture_.whole_ramp}};
    if (scaling["rope_type"] == "none") scaling["rope_type"] = "default";
    sizes_.rotary = {scaled_rotary(config_, scaling, theta, width, sizes_.context)};
    if (architecture_.sliding_theta != 0) {
      const double sliding = config_.number(key("rope.freq_base_swa"), architecture_.sliding_theta);
      sizes_.rotary.push_back(plain_rotary(sliding, width));
    }
    if (weights_.has("rope_freqs.weight")) {
      const auto factors = weights_.tensor("rope_freqs.weight", {width / 2}).values();
      for (std::size_t pair = 0; pair < factors.size(); ++pair) {
        sizes_.rotary[0].inverse_frequency[pair] /= factors[pair];
      }
    }
  }

  void read_special_tokens() {
    model_.special.begin = config_.id("tokenizer.ggml.bos_token_id");
    model_.special.mask = config_.id("tokenizer.ggml.mask_token_id");
    for (const char* name : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
      const auto id = config_.id(name);
      const auto& ends = model_.special.ends;
      if (id && std::find(ends.begin(), ends.end(), *id) == ends.end()) {
        model_.special.ends.push_back(*id);
      }
    }
  }

  void bind_ends() {
    model_.embedding = weights_.tensor("token_embd.weight", {sizes_.vocab, sizes_.hidden});
    if (weights_.has(kPositions)) {
      model_.positions = weights_.tensor(kPositions, {sizes_.context, sizes_.hidden});
    }
    model_.final_norm = weights_.norm("output_norm", sizes_.hidden);
    model_.tied = !weights_.has("output.weight");
    if (model_.tied) {
      model_.output.weight = model_.embedding;
    } else {
      model_.output = weights_.linear("output", sizes_.vocab, sizes_.hidden);
    }
  }

  static std::string block(std::size_t layer) { return fmt::format("blk.{}.", layer); }

  Linear linear(const std::string& name, std::uint64_t out, std::uint64_t in) {
    return weights_.linear(name, out, in, weights_.has(name + ".bias"));
  }

  Norm optional_norm(const std::string& name, std::uint64_t size) {
    return weights_.has(name + ".weight") ? weights_.norm(name, size) : Norm{};
  }

  void bind_layer(std::size_t index) {
    const std::string prefix = block(index);
    LayerWeights layer;
    layer.attention_norm = weights_.norm(prefix + "attn_norm", sizes_.hidden);
    bind_queries_keys_values(prefix, layer);
    layer.o = linear(prefix + "attn_output", sizes_.hidden, sizes_.query_width());
    layer.q_norm = optional_norm(prefix + "attn_q_norm", sizes_.head_dim);
    layer.k_norm = optional_norm(prefix + "attn_k_norm", sizes_.head_dim);
    if (weights_.has(prefix + "attn_sinks.weight")) {
      layer.sinks = weights_.tensor(prefix + "attn_sinks.weight", {sizes_.heads});
    }
    bind_inner_norms(prefix, layer);
    if (sizes_.layers[index].experts) {
      bind_experts(prefix, layer);
    } else {
      if (sizes_.gated) layer.ffn.gate = linear(prefix + "ffn_gate", sizes_.ffn, sizes_.hidden);
      layer.ffn.up = linear(prefix + "ffn_up", sizes_.ffn, sizes_.hidden);
      layer.ffn.down = linear(prefix + "ffn_down", sizes_.hidden, sizes_.ffn);
    }
    model_.layers.push_back(std::move(layer));
  }

  // Three matrices, or one with their rows one after the other.
  void bind_queries_keys_values(const std::string& prefix, LayerWeights& layer) {
    const std::uint64_t queries = sizes_.query_width();
    const std::uint64_t keys = sizes_.kv_width();
    if (!weights_.has(prefix + "attn_qkv.weight")) {
      layer.q = linear(prefix + "attn_q", queries, sizes_.hidden);
      layer.k = linear(prefix + "attn_k", keys, sizes_.hidden);
      layer.v = linear(prefix + "attn_v", keys, sizes_.hidden);
      return;
    }
    const Linear all = linear(prefix + "attn_qkv", queries + 2 * keys, sizes_.hidden);
    if (!weights_.ok()) return;
    layer.q = rows_of(all, 0, queries);
    layer.k = rows_of(all, queries, keys);
    layer.v = rows_of(all, queries + keys, keys);
  }

  static Linear rows_of(const Linear& all, std::uint64_t first, std::uint64_t count) {
    Linear part{all.weight.slice_rows(first, count), {}};
    if (all.bias) part.bias = all.bias.transposed().slice_rows(first, count).transposed();
    return part;
  }

  // gpt-oss's norm behind attention is the one before its experts; others have both.
  void bind_inner_norms(const std::string& prefix, LayerWeights& layer) {
    const std::string behind_attention = prefix + "post_attention_norm";
    if (!weights_.has(prefix + "ffn_norm.weight") && weights_.has(behind_attention + ".weight")) {
      layer.ffn_norm = weights_.norm(behind_attention, sizes_.hidden);
      return;
    }
    layer.post_attention_norm = optional_norm(behind_attention, sizes_.hidden);
    layer.ffn_norm = weights_.norm(prefix + "ffn_norm", sizes_.hidden);
    layer.post_ffn_norm = optional_norm(prefix + "post_ffw_norm", sizes_.hidden);
  }

  void bind_experts(const std::string& prefix, LayerWeights& layer) {
    const std::uint64_t count = sizes_.experts.count;
    const std::uint64_t width = sizes_.experts.hidden;
    layer.router = linear(prefix + "ffn_gate_inp", count, sizes_.hidden);
    // [experts, out, in] and biases [experts, out].
    const auto stack = [&](const char* name, std::uint64_t out, std::uint64_t in) {
      Linear all{weights_.tensor(prefix + name + ".weight", {count, out, in}), {}};
      const std::string bias = prefix + name + ".bias";
      if (weights_.has(bias)) all.bias = weights_.tensor(bias, {count, out});
      return all;
    };
    const Linear gate = stack("ffn_gate_exps", width, sizes_.hidden);
    const Linear up = stack("ffn_up_exps", width, sizes_.hidden);
    const Linear down = stack("ffn_down_exps", sizes_.hidden, width);
    if (!weights_.ok()) return;
    const auto expert = [](const Linear& all, std::uint64_t i, std::uint64_t out) {
      return Linear{all.weight.slice_rows(i * out, out),
                    all.bias ? all.bias.slice_rows(i, 1) : Tensor{}};
    };
    for (std::uint64_t i = 0; i < count; ++i) {
      layer.experts.push_back(
          {expert(gate, i, width), expert(up, i, width), expert(down, i, sizes_.hidden)});
    }
  }

  const GgufArchitecture& architecture_;
  const TensorTable& tensors_;
  ConfigReader config_;
  WeightReader weights_;
  Model model_;
  ModelConfig& sizes_ = model_.config;
};

}  // namespace

Result<Model> import_gguf(const Gguf& gguf, const std::string& path) {
  ConfigReader config(gguf.metadata, path);
  const auto architecture = find_architecture(config.text("general.architecture", "none"), path);
  if (!architecture) return tl::unexpected(architecture.error());
  return Importer(**architecture, gguf, path).import();
}

}  // namespace plena
