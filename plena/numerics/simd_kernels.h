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

/// Decodes MX elements to SRAM values from the start of a row, which lies on a block, with `scales`
/// at the first one's scale byte. Returns how many elements it has done: it stops before elements
/// that need rounding, infinities and NaN.
using BlockDecoder = std::size_t (*)(const std::uint8_t* elements, const std::uint8_t* scales,
                                     std::uint32_t block, std::size_t n, void* out);

/// Encodes a row of n SRAM values, whole blocks, as HbmCodec::encode() does.
using BlockEncoder = void (*)(const void* row, std::size_t n, std::uint32_t block,
                              std::uint8_t* elements, std::uint8_t* scales);

/// nullptr where the target has nothing for the pair of types.
BlockDecoder simd_block_decoder(SimdTarget target, DataType hbm, ElementType sram);
BlockEncoder simd_block_encoder(SimdTarget target, DataType hbm, ElementType sram);

/// MX types whose blocks are a power of two from 8 on, and rows of bf16 or fp32: kernels exist for
/// nothing else.
bool has_block_kernels(DataType hbm, ElementType sram);

}  // namespace plena
