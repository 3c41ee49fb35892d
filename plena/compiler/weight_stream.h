// Weights in the order the program reads them: whole tiles, one after the other, K-major, in the
// HBM type of weights. Every dense product walks this stream with one pointer (rstride 0).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plena/compiler/tiling.h"
#include "plena/config/data_type.h"
#include "plena/numerics/hbm_codec.h"
#include "plena/numerics/scale_search.h"

namespace plena {

/// A quantised tensor: its element bytes and, for an Mx type, its scale bytes.
struct QuantisedTensor {
  std::vector<std::uint8_t> elements;
  std::vector<std::uint8_t> scales;
};

/// Quantises values as they come, whole blocks at a time: as the machine stores (semantics 5.2), or
/// with the scales of least error.
class Quantiser {
 public:
  explicit Quantiser(DataType type, ScaleRule rule = ScaleRule::Floor);

  void append(std::span<const float> values);

  /// Values appended so far.
  [[nodiscard]] std::uint64_t count() const { return count_; }

  /// The tensor, padded with zeros to a whole block and byte.
  [[nodiscard]] QuantisedTensor finish() &&;

 private:
  void encode_pending(std::size_t n);

  HbmCodec codec_;
  ScaleRule rule_;
  std::size_t unit_;  // elements of the least whole number of blocks and bytes
  std::uint64_t count_ = 0;
  std::vector<float> pending_;
  QuantisedTensor tensor_;
};

/// A matrix of the model [out, in], row-major, y = W x, and how its tiles are filled.
struct PackedProduct {
  std::span<const float> weights;     // [out, in]
  std::size_t columns = 0;            // in
  std::span<const float> input_gain;  // [in]: each column is multiplied by it; empty: by 1
  float factor = 1.0F;                // and every element by this
  const LaneMap& outputs;             // row of W for each lane of the product's output tiles
  const LaneMap& inputs;              // column of W for each lane of its input tiles
};

/// Appends the tiles of a product from output tile `first` on, `count` of them: for each output
/// tile one tile for every input tile. Element (k, j) of a tile is W[outputs[j]][inputs[k]].
void append_tiles(Quantiser& stream, const PackedProduct& product, std::uint32_t mlen,
                  std::size_t first, std::size_t count);

/// All output tiles.
void append_tiles(Quantiser& stream, const PackedProduct& product, std::uint32_t mlen);

}  // namespace plena
