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

}  // namespace plena
