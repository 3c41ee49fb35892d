// A Llama-family model in memory: its sizes and its f32 tensors. What the compiler reads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plena/base/error.h"
#include "plena/base/files.h"
#include "plena/model/model.h"

namespace plena {

struct LlamaConfig {
  std::uint32_t dim = 0;         // width of the residual stream
  std::uint32_t hidden_dim = 0;  // width of the feed-forward layer
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;  // divides heads
  std::uint32_t vocab = 0;
  std::uint32_t context = 0;  // positions
  float norm_epsilon = 1e-5F;
  float rope_theta = 10000.0F;  // pairs of neighbouring elements rotate together

  [[nodiscard]] std::uint32_t head_dim() const { return dim / heads; }
  [[nodiscard]] std::uint32_t kv_dim() const { return head_dim() * kv_heads; }
};

/// Weights of one layer; a matrix [out, in] is row-major and maps x to W x.
struct LlamaLayer {
  std::span<const float> attention_norm;  // [dim]
  std::span<const float> wq;              // [dim, dim]
  std::span<const float> wk;              // [kv_dim, dim]
  std::span<const float> wv;              // [kv_dim, dim]
  std::span<const float> wo;              // [dim, dim]
  std::span<const float> ffn_norm;        // [dim]
  std::span<const float> w1;              // [hidden_dim, dim], gate
  std::span<const float> w2;              // [dim, hidden_dim], down
  std::span<const float> w3;              // [hidden_dim, dim], up
};

struct LlamaModel {
  LlamaConfig config;
  std::span<const float> token_embedding;  // [vocab, dim]
  std::vector<LlamaLayer> layers;
  std::span<const float> final_norm;  // [dim]
  std::span<const float> output;      // [vocab, dim]; the embedding where they are tied

  std::shared_ptr<const MappedFile> storage;  // what the spans look into
};

/// Opens a llama2.c checkpoint (version 0: seven int32, then f32 tensors; a negative vocab_size
/// means an untied output matrix). The file is mapped, not read; every size is checked against the
/// file's length.
Result<LlamaModel> open_llama2c(const std::string& path);

/// The same model in the general description.
Model describe(const LlamaModel& llama);

}  // namespace plena
