// Dot products in the order of the flattened systolic array (semantics 4.5).
//
// A dot product of length n is cut into blocks of `blen`; each block is summed in order with fused
// multiply-add from +0, block sums meet in a balanced tree, and the root is added to the
// accumulator. All in f32. The order is part of the result: every kernel here keeps it to the bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plena/config/data_type.h"
#include "plena/numerics/simd_target.h"

namespace plena {

/// Geometry of one product out[r][c] += sum over k < n of a[r][k] * w(k, c).
struct ProductShape {
  std::size_t rows = 0;     // r
  std::size_t columns = 0;  // c
  std::size_t n = 0;        // k
  std::size_t blen = 0;     // block of the dot product; divides n
  // No weight is infinite or NaN: a block whose activations are all 0 then sums to +0, whatever
  // the weights, and need not be read.
  bool finite_weights = false;
};

struct MatrixKernels {
  /// w(k, c) = weights[k * weight_stride + c]: M_MM, M_MV, M_BMM.
  /// a is f32 [rows][a_stride], out f32 [rows][out_stride]; weights are of the table's format.
  void (*product)(const ProductShape& shape, const float* a, std::size_t a_stride,
                  const void* weights, std::size_t weight_stride, float* out,
                  std::size_t out_stride){};
  /// w(k, c) = weights[c * weight_stride + k]: M_TMM, M_TMV, M_BTMM.
  void (*product_transposed)(const ProductShape& shape, const float* a, std::size_t a_stride,
                             const void* weights, std::size_t weight_stride, float* out,
                             std::size_t out_stride){};
  /// to[k][r] = from[r][k] of a tile [side][side]; bits as they are.
  void (*transpose)(const void* from, void* to, std::size_t side){};
};

/// The fastest kernels the target has for tiles of a format; every target gives the same bits.
const MatrixKernels& matrix_kernels(ElementType format, SimdTarget target = simd_target());

/// The plain implementation all others are compared with.
const MatrixKernels& portable_matrix_kernels(ElementType format);

}  // namespace plena
