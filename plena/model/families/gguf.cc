// Models in GGUF files. Their tensors have the same names in all families, and mostly say
// themselves which parts a layer has; a row of the table below says the rest.
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
  RotaryPairing pairing;  // llama's q and k rows are permuted when they are converted, others' not
};

constexpr std::array<GgufArchitecture, 4> kArchitectures{{
    {"llama", RotaryPairing::Neighbours},
    {"qwen2", RotaryPairing::Halves},
    {"qwen3", RotaryPairing::Halves},
    {"qwen3moe", RotaryPairing::Halves},
}};

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
    read_rotary();
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
    sizes_.norm_epsilon =
        static_cast<float>(config_.number(key("attention.layer_norm_rms_epsilon")));
    sizes_.score_scale = 1 / std::sqrt(static_cast<float>(sizes_.head_dim));
    sizes_.pairing = architecture_.pairing;
    // The vocabulary is as large as the embedding; the key for it is often missing.
    const auto embedding = tensors_.find("token_embd.weight");
    if (embedding != tensors_.end() && embedding->second.shape.size() == 2 &&
        embedding->second.shape[0] <= kMostVocab) {
      sizes_.vocab = static_cast<std::uint32_t>(embedding->second.shape[0]);
    }
    read_experts();
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
         config_.number(key("rope.scaling.original_context_length"), sizes_.context)}};
    if (scaling["rope_type"] == "none") scaling["rope_type"] = "default";
    sizes_.rotary = {scaled_rotary(config_, scaling, theta, width, sizes_.context)};
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
    layer.q = linear(prefix + "attn_q", sizes_.query_width(), sizes_.hidden);
    layer.k = linear(prefix + "attn_k", sizes_.kv_width(), sizes_.hidden);
    layer.v = linear(prefix + "attn_v", sizes_.kv_width(), sizes_.hidden);
    layer.o = linear(prefix + "attn_output", sizes_.hidden, sizes_.query_width());
    layer.q_norm = optional_norm(prefix + "attn_q_norm", sizes_.head_dim);
    layer.k_norm = optional_norm(prefix + "attn_k_norm", sizes_.head_dim);
    layer.ffn_norm = weights_.norm(prefix + "ffn_norm", sizes_.hidden);
    if (sizes_.layers[index].experts) {
      bind_experts(prefix, layer);
    } else {
      layer.ffn = {linear(prefix + "ffn_gate", sizes_.ffn, sizes_.hidden),
                   linear(prefix + "ffn_up", sizes_.ffn, sizes_.hidden),
                   linear(prefix + "ffn_down", sizes_.hidden, sizes_.ffn)};
    }
    model_.layers.push_back(std::move(layer));
  }

  void bind_experts(const std::string& prefix, LayerWeights& layer) {
    const std::uint64_t count = sizes_.experts.count;
    const std::uint64_t width = sizes_.experts.hidden;
    layer.router = linear(prefix + "ffn_gate_inp", count, sizes_.hidden);
    const auto stack = [&](const char* name, std::uint64_t out, std::uint64_t in) {
      return weights_.tensor(prefix + name, {count, out, in});
    };
    const Tensor gate = stack("ffn_gate_exps.weight", width, sizes_.hidden);
    const Tensor up = stack("ffn_up_exps.weight", width, sizes_.hidden);
    const Tensor down = stack("ffn_down_exps.weight", sizes_.hidden, width);
    for (std::uint64_t i = 0; i < count && weights_.ok(); ++i) {
      layer.experts.push_back({{gate.slice_rows(i * width, width), {}},
                               {up.slice_rows(i * width, width), {}},
                               {down.slice_rows(i * sizes_.hidden, sizes_.hidden), {}}});
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
