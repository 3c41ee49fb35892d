// Weights in the order the program reads them: whole tiles, one after the other, rows of outputs,
// in the HBM type of weights. Every dense product walks this stream with one pointer (rstride 0).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plena/base/error.h"
#include "plena/compiler/graph.h"
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

/// Elements of the least whole number of blocks and bytes.
std::size_t whole_unit(DataType type);

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

/// How the tiles of a product are filled from a matrix.
struct PackedProduct {
  const Matrix& matrix;
  const LaneMap& outputs;  // row of W for each lane of the product's output tiles
  const LaneMap& inputs;   // column of W for each lane of its input tiles
};

/// Appends the tiles of a product from output tile `first` on, `count` of them: for each output
/// tile one tile for every input tile. Element (j, k) of a tile is W[outputs[j]][inputs[k]], so
/// that an MX block holds inputs of one output, as files have them; lanes beyond the matrix are 0.
void append_tiles(Quantiser& stream, const PackedProduct& product, std::uint32_t mlen,
                  std::size_t first, std::size_t count);

/// All output tiles.
void append_tiles(Quantiser& stream, const PackedProduct& product, std::uint32_t mlen);

}  // namespace plena
