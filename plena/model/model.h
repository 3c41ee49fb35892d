// The description of a transformer that every importer produces and the compiler reads: numbers and
// tensors, and no family's name. Whatever sets one family apart from another is a field here.
//
// One forward pass, which a field that is absent leaves out of:
//
//     x = embedding[token] * embedding_scale + positions[position]
//     for each layer:
//       a = attention(norm(x, attention_norm));  x += norm(a, post_attention_norm)
//       f = feed_forward(norm(x, ffn_norm));     x += norm(f, post_ffn_norm)
//     logits = cap(output(norm(x, final_norm)), logit_cap)        cap(v, c) = c * tanh(v / c)
//
// Attention of one query head: q, k and v are linear maps (and biases); each head of q and k goes
// through q_norm and k_norm and then the rotation; scores are cap(scale * q·k, score_cap) over the
// visible positions, and a head's sink is one more score whose weight is dropped after the softmax.
// Query head h reads key-value head h / (heads / kv_heads).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plena/model/tensor.h"

namespace plena {

enum class NormKind : std::uint8_t {
  Rms,    // x / sqrt(mean(x^2) + epsilon) * weight
  Layer,  // (x - mean) / sqrt(variance + epsilon) * weight + bias
};

enum class Activation : std::uint8_t {
  Silu,      // x * sigmoid(x)
  TanhGelu,  // x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
  ErfGelu,   // x/2 * (1 + erf(x / sqrt(2)))
  // g * sigmoid(alpha * g) * (u + 1), where g is the gate, at most limit, and u is up, within
  // -limit … limit. Gated only.
  ClampedSwiglu,
};

/// Which elements of a head turn together.
enum class RotaryPairing : std::uint8_t {
  Neighbours,  // 2i and 2i + 1
  Halves,      // i and i + n, n being the number of frequencies
};

/// Rotary positions: pair i of a head turns by position * inverse_frequency[i]; the first element
/// becomes a cos - b sin, the second b cos + a sin, both times `attention_factor`. Elements beyond
/// the pairs stay as they are.
struct RotaryTable {
  std::vector<double> inverse_frequency;  // [pairs], radians a position; at most head_dim / 2
  double attention_factor = 1;            // of YaRN: on cosine and sine, so its square on a score

  friend bool operator==(const RotaryTable&, const RotaryTable&) = default;
};

/// How a token's experts are weighed.
enum class ExpertWeighting : std::uint8_t {
  SoftmaxOfChosen,  // over the chosen router logits; the same as a renormalised softmax over all
  SoftmaxOfAll,     // over all router logits, the chosen ones taken as they are
};

struct ExpertsConfig {
  std::uint32_t count = 0;   // 0: no layer has experts
  std::uint32_t chosen = 0;  // best router logits (with bias) a token; the lower index on a tie
  std::uint32_t hidden = 0;  // width of one expert
  ExpertWeighting weighting = ExpertWeighting::SoftmaxOfChosen;
};

/// What may differ from layer to layer.
struct LayerConfig {
  std::uint32_t window = 0;  // positions seen, itself included; 0: all. Causal models only
  std::uint32_t rotary = 0;  // index into ModelConfig::rotary; without meaning where that is empty
  bool experts = false;      // experts instead of one feed-forward network
};

struct ModelConfig {
  std::uint32_t hidden = 0;  // width of the residual stream
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;  // divides heads
  std::uint32_t head_dim = 0;  // even; heads * head_dim need not be hidden
  std::uint32_t ffn = 0;       // width of a feed-forward network without experts
  std::uint32_t vocab = 0;
  std::uint32_t context = 0;  // positions the model was made for

  NormKind norm = NormKind::Rms;
  float norm_epsilon = 1e-5F;

  float embedding_scale = 1;
  float logit_cap = 0;  // 0: none

  bool causal = true;     // false: every position sees every other
  float score_scale = 0;  // mostly 1 / sqrt(head_dim)
  float score_cap = 0;    // 0: none

  RotaryPairing pairing = RotaryPairing::Halves;
  std::vector<RotaryTable> rotary;  // empty: no rotation

  Activation activation = Activation::Silu;
  bool gated = true;       // down(activation(gate(x)) * up(x)); else down(activation(up(x)))
  float swiglu_limit = 0;  // of ClampedSwiglu
  float swiglu_alpha = 0;  // of ClampedSwiglu
  ExpertsConfig experts;

  std::vector<LayerConfig> layers;

  [[nodiscard]] std::uint32_t query_width() const { return heads * head_dim; }
  [[nodiscard]] std::uint32_t kv_width() const { return kv_heads * head_dim; }
};

/// y = W x + b.
struct Linear {
  Tensor weight;  // [out, in]
  Tensor bias;    // [1, out]; may be absent
};

struct Norm {
  Tensor weight;  // [1, n]; absent: there is no such norm
  Tensor bias;    // [1, n]; only with NormKind::Layer, and may be absent there

  explicit operator bool() const { return static_cast<bool>(weight); }
};

struct FeedForwardWeights {
  Linear gate;  // [ffn, hidden]; absent unless gated
  Linear up;    // [ffn, hidden]
  Linear down;  // [hidden, ffn]
};

struct LayerWeights {
  Norm attention_norm;       // [hidden]
  Linear q;                  // [heads * head_dim, hidden]
  Linear k;                  // [kv_heads * head_dim, hidden]
  Linear v;                  // [kv_heads * head_dim, hidden]
  Linear o;                  // [hidden, heads * head_dim]
  Norm q_norm;               // [head_dim], the same for every head; may be absent
  Norm k_norm;               // [head_dim]; may be absent
  Tensor sinks;              // [1, heads]; may be absent
  Norm post_attention_norm;  // [hidden]; may be absent

  Norm ffn_norm;           // [hidden]
  FeedForwardWeights ffn;  // of a layer without experts
  Linear router;           // [count, hidden]; of a layer with experts
  std::vector<FeedForwardWeights> experts;
  Norm post_ffn_norm;  // [hidden]; may be absent
};

/// Token ids with a meaning of their own.
struct SpecialTokens {
  std::optional<std::uint32_t> begin;  // BOS
  std::vector<std::uint32_t> ends;     // EOS; any of them ends a text
  std::optional<std::uint32_t> mask;   // stands for what a denoising model has yet to fill in
};

struct Model {
  std::string architecture;  // as the file calls it; for people, never to be compared with
  ModelConfig config;
  Tensor embedding;  // [vocab, hidden]
  Tensor positions;  // [context, hidden], added to the embedding; absent with rotary positions
  std::vector<LayerWeights> layers;
  Norm final_norm;  // [hidden]
  Linear output;    // [vocab, hidden]; views the embedding where the two are tied
  bool tied = false;
  SpecialTokens special;

  std::vector<std::shared_ptr<const void>> storage;  // what the tensors look into
};

}  // namespace plena
