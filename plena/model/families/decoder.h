// What most families share: the config keys and tensor names that Llama introduced. A family's file
// calls these and adds what is its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "plena/model/families/family.h"

namespace plena {

// Larger than any published model, and small enough that no product of three leaves 64 bits.
inline constexpr std::uint32_t kMostHidden = 1U << 18;
inline constexpr std::uint32_t kMostLayers = 1U << 10;
inline constexpr std::uint32_t kMostHeads = 1U << 14;
inline constexpr std::uint32_t kMostHeadDim = 1U << 14;
inline constexpr std::uint32_t kMostVocab = 1U << 24;
inline constexpr std::uint32_t kMostContext = 1U << 28;
inline constexpr std::uint32_t kMostExperts = 1U << 10;

/// hidden_size, num_attention_heads, num_key_value_heads, head_dim, num_hidden_layers, vocab_size,
/// max_position_embeddings, rms_norm_eps; scores scaled by 1 / sqrt(head_dim).
void read_sizes(ConfigReader& config, ModelConfig& sizes);

/// intermediate_size and hidden_act, which has to be SiLU.
void read_swiglu(ConfigReader& config, ModelConfig& sizes);

/// One rotary table from rope_theta and rope_scaling, or the newer rope_parameters.
void read_rotary(ConfigReader& config, ModelConfig& sizes, double default_theta);

/// The window of each layer: `window` positions in those that `layer_types` or, without that key,
/// `slides` names, all positions in the others.
void set_windows(ConfigReader& config, ModelConfig& sizes, std::uint32_t window,
                 const std::function<bool(std::uint32_t)>& slides);

/// BOS and EOS.
void read_special_tokens(ConfigReader& config, Model& model);

struct AttentionParts {
  bool qkv_bias = false;
  bool output_bias = false;
  bool head_norms = false;
};

/// q_proj, k_proj, v_proj, o_proj, q_norm, k_norm behind `prefix`.
void bind_attention(WeightReader& weights, const std::string& prefix, const ModelConfig& sizes,
                    AttentionParts parts, LayerWeights& layer);

/// gate_proj, up_proj, down_proj behind `prefix`, `width` wide.
FeedForwardWeights bind_gated(WeightReader& weights, const std::string& prefix,
                              const ModelConfig& sizes, std::uint32_t width, bool bias = false);

/// Embedding, final norm and output, which is the embedding where tie_word_embeddings, or without
/// that key `tied_by_default`, says so.
void bind_ends(ConfigReader& config, WeightReader& weights, bool tied_by_default, Model& model);

/// `model.layers.N`, then what follows.
std::string layer_prefix(std::size_t layer);

/// Sizes, rotation, tensors of a model that differs from Llama only in `parts`.
void import_plain_decoder(ConfigReader& config, WeightReader& weights, AttentionParts parts,
                          double default_theta, Model& model);

}  // namespace plena
