// Products of one vector with weights as they lie in HBM, stored by output: what M_TMV computes of
// a tile that was never decoded, or of rows of bf16 in Matrix SRAM. The order of semantics 4.5 is
// kept to the bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plena/config/data_type.h"
#include "plena/numerics/simd_target.h"

namespace plena {

/// Rows of weights in HBM; an output has a row.
struct StreamedRows {
  const std::uint8_t* elements = nullptr;  // of row 0, on a whole block and a whole byte
  const std::uint8_t* scales = nullptr;    // of row 0; unused for a plain type
  std::size_t element_pitch = 0;           // bytes from one row's elements to the next one's
  std::size_t scale_pitch = 0;             // bytes from one row's scales to the next one's

  friend bool operator==(const StreamedRows&, const StreamedRows&) = default;
};

/// The product of one vector of n activations with rows of n weights.
struct StreamedProduct {
  /// Bytes that hold n activations as prepare() arranges them, from a cache line's start on.
  static constexpr std::size_t prepared_bytes(std::size_t n) { return 64 + n * sizeof(float); }

  /// Arranges activations once for all tiles they meet.
  void (*prepare)(const float* a, std::size_t n, void* prepared) = nullptr;

  /// out[r] += sum over k < n of a[k] * w(r, k) for r < rows, where w is the decoded element. Goes
  /// from row 0 on and returns how many rows it has done: it stops before values that the plain
  /// order has to take (NaN, infinities, subnormals on the way, scales out of the common range),
  /// and before rows that do not fill a vector.
  std::size_t (*product)(const void* prepared, std::size_t n, const StreamedRows& weights,
                         std::size_t rows, float* out) = nullptr;

  explicit operator bool() const { return product != nullptr; }
};

/// Where rows lie: those of HBM are often followed by the next tiles', which are fetched ahead.
enum class TilePlace : std::uint8_t { Hbm, Sram };

/// The product for rows of `n` weights of a type in blocks of `blen`, decoded to `sram`; none where
/// the target has none.
StreamedProduct streamed_product(DataType type, ElementType sram, std::size_t n, std::size_t blen,
                                 SimdTarget target = simd_target(),
                                 TilePlace place = TilePlace::Hbm);

}  // namespace plena
