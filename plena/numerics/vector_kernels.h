// Lane operations of the vector unit on rows of one SRAM format.
//
// A table of functions is chosen once, when a program is prepared. Rows are arrays of
// storage_bytes(format) each; destination and sources may be the same row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plena/config/data_type.h"
#include "plena/numerics/simd_target.h"

namespace plena {

struct VectorKernels {
  using Binary = void (*)(const void* a, const void* b, void* out, std::size_t n);
  // `scalar` is an f32 that is already a value of the row's format.
  using WithScalar = void (*)(const void* a, float scalar, void* out, std::size_t n);
  using Unary = void (*)(const void* a, void* out, std::size_t n);

  Binary add{};       // a + b
  Binary subtract{};  // a - b
  Binary multiply{};
  WithScalar add_scalar{};
  WithScalar subtract_scalar{};       // a - scalar
  WithScalar subtract_from_scalar{};  // scalar - a
  WithScalar multiply_scalar{};
  WithScalar max_scalar{};  // maximumNumber
  WithScalar min_scalar{};  // minimumNumber
  Unary exp{};
  Unary reciprocal{};
  Unary canonical{};  // a copy in which every NaN is the canonical one

  void (*to_f32)(const void* row, float* out, std::size_t n){};
  void (*from_f32)(const float* values, void* out, std::size_t n){};  // one rounding, canonical NaN
  float (*sum)(const void* row, std::size_t n){};      // root of the tree, semantics 4.6
  float (*maximum)(const void* row, std::size_t n){};  // maximumNumber over n >= 1 lanes
};

/// The fastest kernels the target has for a format; every target gives the same bits.
const VectorKernels& vector_kernels(ElementType format, SimdTarget target = simd_target());

/// The plain implementation all others are compared with.
const VectorKernels& portable_vector_kernels(ElementType format);

}  // namespace plena
