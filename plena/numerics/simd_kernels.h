// The kernels of each instruction set, for the formats that have their own; other formats and other
// targets use the portable ones (vector_kernels.h, matrix_kernels.h choose).
#pragma once

#include "plena/numerics/matrix_kernels.h"
#include "plena/numerics/simd_target.h"
#include "plena/numerics/vector_kernels.h"

namespace plena {

/// nullptr where the target has no kernels of its own for the format: all but bf16 and fp32.
const VectorKernels* simd_vector_kernels(SimdTarget target, ElementType format);

/// nullptr where the target has none; bf16 and fp32 tiles are read as they are, tiles of other
/// formats are decoded panel by panel.
const MatrixKernels* simd_matrix_kernels(SimdTarget target, ElementType format);

/// Kernels for blocks of MX elements. Each works through a row from its start, which lies on a
/// block, and returns how many elements it has done: it stops before elements that need rounding,
/// clamping or a NaN, and before what does not fill a vector.
struct BlockKernels {
  /// Elements of whole bytes to SRAM values; `scales` at the first one's scale byte.
  std::size_t (*decode)(const std::uint8_t* elements, const std::uint8_t* scales,
                        std::uint32_t block, std::size_t n, void* out){};
  std::size_t (*encode)(const void* row, std::size_t n, std::uint8_t* elements,
                        std::uint8_t* scales){};
};

/// Members are nullptr where the target has nothing for the pair of types.
BlockKernels simd_block_kernels(SimdTarget target, DataType hbm, ElementType sram);

}  // namespace plena
