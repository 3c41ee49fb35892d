// Dot products in plain C++: the order of semantics 4.5 as it is written there, for every format.
#include <cmath>

#include "plena/numerics/block_tree.h"
#include "plena/numerics/matrix_kernels.h"
#include "plena/numerics/simd_kernels.h"
#include "plena/numerics/sram_formats.h"

namespace plena {

namespace {

// Root of one dot product: sum over k of a[k] * weights[k * step].
float dot(ElementType format, const ProductShape& shape, const float* a, const void* weights,
          std::size_t first, std::size_t step) {
  BlockTree tree;
  for (std::size_t block = 0; block < shape.n; block += shape.blen) {
    float sum = 0;
    for (std::size_t k = block; k < block + shape.blen; ++k) {
      sum = std::fma(a[k], row_value(format, weights, first + k * step), sum);
    }
    tree.add(sum);
  }
  return tree.root();
}

void product(ElementType format, const ProductShape& shape, const float* a, std::size_t a_stride,
             const void* weights, std::size_t weight_stride, float* out, std::size_t out_stride) {
  for (std::size_t r = 0; r < shape.rows; ++r) {
    for (std::size_t c = 0; c < shape.columns; ++c) {
      out[r * out_stride + c] += dot(format, shape, a + r * a_stride, weights, c, weight_stride);
    }
  }
}

void product_transposed(ElementType format, const ProductShape& shape, const float* a,
                        std::size_t a_stride, const void* weights, std::size_t weight_stride,
                        float* out, std::size_t out_stride) {
  for (std::size_t r = 0; r < shape.rows; ++r) {
    for (std::size_t c = 0; c < shape.columns; ++c) {
      out[r * out_stride + c] +=
          dot(format, shape, a + r * a_stride, weights, c * weight_stride, 1);
    }
  }
}

template <class Element>
void transpose(const void* from, void* to, std::size_t side) {
  for (std::size_t r = 0; r < side; ++r) {
    for (std::size_t k = 0; k < side; ++k) {
      static_cast<Element*>(to)[k * side + r] = static_cast<const Element*>(from)[r * side + k];
    }
  }
}

template <ElementType kFormat>
struct Products {
  template <auto kBody>
  static constexpr auto bind =
      [](const ProductShape& shape, auto... arguments) { kBody(kFormat, shape, arguments...); };

  static constexpr MatrixKernels kernels{.product = bind<product>,
                                         .product_transposed = bind<product_transposed>,
                                         .transpose = storage_bytes(kFormat) == 2
                                                          ? transpose<std::uint16_t>
                                                          : transpose<std::uint32_t>};
};

constexpr auto kKernels = for_every_sram_format<MatrixKernels, Products>();

}  // namespace

const MatrixKernels& portable_matrix_kernels(ElementType format) {
  return kKernels[sram_format_index(format)];
}

const MatrixKernels& matrix_kernels(ElementType format, SimdTarget target) {
  const MatrixKernels* kernels = simd_matrix_kernels(target, format);
  return kernels != nullptr ? *kernels : portable_matrix_kernels(format);
}

}  // namespace plena
