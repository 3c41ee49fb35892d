// Products of many rows at once on the CPU's own matrix unit (AMX), where it has one: a tile of
// weights times a block of activations, both bf16, in the order of semantics 4.5 to the bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plena/config/data_type.h"
#include "plena/numerics/simd_target.h"

namespace plena {

/// Operands are packed once and multiplied often. Packed memory begins on a cache line.
struct MatrixUnit {
  /// Rows or columns that the unit takes at a time; what is packed is filled up with zeros.
  static constexpr std::size_t kPanel = 16;

  static constexpr std::size_t packed_bytes(std::size_t rows, std::size_t n) {
    return 64 + (rows + kPanel - 1) / kPanel * kPanel * n * sizeof(std::uint16_t);
  }

  /// Weights w(k, c) = weights[c * n + k], a multiple of kPanel columns.
  void (*pack_weights)(const void* weights, std::size_t columns, std::size_t n, void* packed){};
  /// Activations a[r][k] = rows[r * stride + k].
  void (*pack_rows)(const void* rows, std::size_t stride, std::size_t count, std::size_t n,
                    void* packed){};
  /// out[c * out_stride + r] += sum over k < n of a[r][k] * w(k, c), for whole panels of rows.
  /// False where the exponents of the operands are such that the unit could round otherwise than
  /// the law, since it takes subnormals for 0; nothing has changed then.
  bool (*product)(const void* packed_rows, std::size_t rows, const void* packed_weights,
                  std::size_t columns, std::size_t n, float* out, std::size_t out_stride){};
};

/// For dot products of length `n` in blocks of `blen` with tiles of `format`; null where the target
/// has none.
const MatrixUnit* matrix_unit(ElementType format, std::size_t n, std::size_t blen,
                              SimdTarget target = simd_target());

}  // namespace plena
