#include "plena/compiler/llama_weights.h"

#include <cmath>
#include <vector>

namespace plena {

namespace {

// Lane maps of a model's vectors, shared by all layers.
struct Lanes {
  LaneMap dim;
  LaneMap hidden;
  LaneMap vocab;
  LaneMap queries;
  LaneMap keys;
};

// x P with P x = (-x1, x0, -x3, x2, ...): row k of the tile says where element k goes.
void append_rotation(Quantiser& stream, std::uint32_t mlen) {
  std::vector<float> row(mlen);
  for (std::uint32_t k = 0; k < mlen; ++k) {
    const std::uint32_t partner = k ^ 1U;
    row[partner] = k % 2 == 0 ? 1.0F : -1.0F;
    stream.append(row);
    row[partner] = 0.0F;
  }
}

class LayerPacker {
 public:
  LayerPacker(Quantiser& stream, const LlamaConfig& config, const LlamaTiling& tiling,
              const Lanes& lanes)
      : stream_(stream),
        config_(config),
        mlen_(tiling.mlen),
        hidden_tiles_(tiling.hidden_tiles),
        lanes_(lanes),
        norm_factor_(std::sqrt(static_cast<float>(config.dim))) {}

  void append(const LlamaLayer& layer) {
    const float query_factor = norm_factor_ / std::sqrt(static_cast<float>(config_.head_dim()));
    append_tiles(stream_, normed(layer.wq, layer.attention_norm, query_factor, lanes_.queries),
                 mlen_);
    append_tiles(stream_, normed(layer.wk, layer.attention_norm, norm_factor_, lanes_.keys), mlen_);
    append_tiles(stream_, normed(layer.wv, layer.attention_norm, norm_factor_, lanes_.keys), mlen_);
    append_tiles(stream_, plain(layer.wo, config_.dim, lanes_.dim, lanes_.queries), mlen_);
    const PackedProduct gate = normed(layer.w1, layer.ffn_norm, -norm_factor_, lanes_.hidden);
    const PackedProduct up = normed(layer.w3, layer.ffn_norm, -norm_factor_, lanes_.hidden);
    for (std::uint32_t tile = 0; tile < hidden_tiles_; ++tile) {
      append_tiles(stream_, gate, mlen_, tile, 1);
      append_tiles(stream_, up, mlen_, tile, 1);
    }
    append_tiles(stream_, plain(layer.w2, config_.hidden_dim, lanes_.dim, lanes_.hidden), mlen_);
  }

  void append_output(const LlamaModel& model) {
    append_tiles(stream_, normed(model.output, model.final_norm, norm_factor_, lanes_.vocab),
                 mlen_);
  }

 private:
  [[nodiscard]] PackedProduct normed(std::span<const float> weights, std::span<const float> gain,
                                     float factor, const LaneMap& outputs) const {
    return {weights, config_.dim, gain, factor, outputs, lanes_.dim};
  }
  [[nodiscard]] PackedProduct plain(std::span<const float> weights, std::size_t columns,
                                    const LaneMap& outputs, const LaneMap& inputs) const {
    return {weights, columns, {}, 1.0F, outputs, inputs};
  }

  Quantiser& stream_;
  const LlamaConfig& config_;
  std::uint32_t mlen_;
  std::uint32_t hidden_tiles_;
  const Lanes& lanes_;
  float norm_factor_;
};

}  // namespace

std::uint64_t weight_tiles(const LlamaConfig& config, const LlamaTiling& tiling) {
  const std::uint64_t dim = tiling.dim_tiles;
  const std::uint64_t queries = tiling.heads.query_tiles();
  const std::uint64_t layer = dim * (queries + tiling.cache_tiles())  // q, k, v
                              + dim * queries                         // attention output
                              + 3 * dim * tiling.hidden_tiles;        // gate, up, down
  return 1 + config.layers * layer + dim * tiling.vocab_tiles;
}

QuantisedTensor pack_weights(const LlamaModel& model, const LlamaTiling& tiling, DataType type,
                             ScaleRule scales) {
  const LlamaConfig& config = model.config;
  const Lanes lanes{dense_lanes(config.dim, tiling.mlen),
                    dense_lanes(config.hidden_dim, tiling.mlen),
                    dense_lanes(config.vocab, tiling.mlen), query_lanes(config, tiling),
                    key_lanes(config, tiling)};
  Quantiser stream(type, scales);
  append_rotation(stream, tiling.mlen);
  LayerPacker packer(stream, config, tiling, lanes);
  for (const LlamaLayer& layer : model.layers) packer.append(layer);
  packer.append_output(model);
  return std::move(stream).finish();
}

QuantisedTensor pack_embedding(const LlamaModel& model, const LlamaTiling& tiling, DataType type,
                               ScaleRule scales) {
  const std::size_t dim = model.config.dim;
  std::vector<float> row(std::size_t{tiling.dim_tiles} * tiling.mlen, 0.0F);
  Quantiser stream(type, scales);
  for (std::size_t token = 0; token < model.config.vocab; ++token) {
    const auto values = model.token_embedding.subspan(token * dim, dim);
    std::copy(values.begin(), values.end(), row.begin());
    stream.append(row);
  }
  return std::move(stream).finish();
}

}  // namespace plena
