// A tensor of HBM as pieces: each can be quantised by itself, in any order and on any thread, so
// that no tensor has to be in memory as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plena/compiler/weight_stream.h"
#include "plena/config/data_type.h"
#include "plena/numerics/scale_search.h"

namespace plena {

struct TensorPiece {
  std::uint64_t first = 0;  // element: the start of a block and of a byte
  /// Appends all elements from `first` up to the next piece. What it refers to outlives it.
  std::function<void(Quantiser&)> append;
};

/// Pieces in order, without gaps.
struct TensorPieces {
  DataType type;
  ScaleRule scales = ScaleRule::Floor;
  std::uint64_t elements = 0;  // of all pieces
  std::vector<TensorPiece> pieces;

  /// `count` more elements at the end: a piece of their own, if the last one ends with a block and
  /// a byte.
  void add(std::uint64_t count, std::function<void(Quantiser&)> append);
};

/// All of it at once; for small ones.
QuantisedTensor quantise(const TensorPieces& tensor);

}  // namespace plena
