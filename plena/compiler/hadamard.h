// A Hadamard rotation of vectors: an orthogonal matrix whose elements all have the same magnitude.
// It spreads every element over its block, so that none is left to set the scale of the others.
//
// Folded into the matrices that write a vector and those that read it, it costs the machine nothing
// and changes no result but by what quantisation does to the weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plena {

/// H D, block after block: Sylvester's matrix over sqrt(block) behind fixed random signs, without
/// which a mean of the elements would gather in one of them. Where x becomes H D x and rows of W
/// become H D too, W x stays the same: the transform is orthogonal, and only ever needed forwards.
struct Hadamard {
  std::uint32_t block = 1;  // elements that turn together, a power of two; 1: none turn

  explicit operator bool() const { return block > 1; }

  /// Turns a vector of whole blocks.
  void turn(std::span<float> vector) const;

  /// Turns the columns of a matrix [whole blocks, columns].
  void turn_columns(std::span<float> rows, std::size_t columns) const;

  friend bool operator==(const Hadamard&, const Hadamard&) = default;
};

/// The largest blocks that divide a vector of `width` elements and rows of `mlen`.
Hadamard widest_hadamard(std::uint32_t width, std::uint32_t mlen);

}  // namespace plena
