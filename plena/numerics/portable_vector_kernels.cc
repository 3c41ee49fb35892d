// Lane operations in plain C++: the meaning of vector_kernels.h, for every format.
#include <array>

#include "plena/numerics/block_tree.h"
#include "plena/numerics/simd_kernels.h"
#include "plena/numerics/sram_formats.h"
#include "plena/numerics/vector_kernels.h"

namespace plena {

namespace {

// The bodies take the format at run time; Lanes<format> below binds it, so that the table's
// functions need no context and the code does not grow with the number of formats.
template <class Operation>
void map_pairs(ElementType format, const void* a, const void* b, void* out, std::size_t n,
               Operation operation) {
  for (std::size_t i = 0; i < n; ++i) {
    const float result = operation(row_value(format, a, i), row_value(format, b, i));
    set_row_bits(format, out, i, encode_fp(format, result));
  }
}

template <class Operation>
void map_values(ElementType format, const void* a, void* out, std::size_t n, Operation operation) {
  for (std::size_t i = 0; i < n; ++i) {
    set_row_bits(format, out, i, encode_fp(format, operation(row_value(format, a, i))));
  }
}

template <class Function>
void map_bits(ElementType format, const void* a, void* out, std::size_t n, Function function) {
  for (std::size_t i = 0; i < n; ++i) {
    set_row_bits(format, out, i, function(format, row_bits(format, a, i)));
  }
}

void add(ElementType format, const void* a, const void* b, void* out, std::size_t n) {
  map_pairs(format, a, b, out, n, [](float x, float y) { return x + y; });
}
void subtract(ElementType format, const void* a, const void* b, void* out, std::size_t n) {
  map_pairs(format, a, b, out, n, [](float x, float y) { return x - y; });
}
void multiply(ElementType format, const void* a, const void* b, void* out, std::size_t n) {
  map_pairs(format, a, b, out, n, [](float x, float y) { return x * y; });
}

void add_scalar(ElementType format, const void* a, float scalar, void* out, std::size_t n) {
  map_values(format, a, out, n, [scalar](float x) { return x + scalar; });
}
void subtract_scalar(ElementType format, const void* a, float scalar, void* out, std::size_t n) {
  map_values(format, a, out, n, [scalar](float x) { return x - scalar; });
}
void subtract_from_scalar(ElementType format, const void* a, float scalar, void* out,
                          std::size_t n) {
  map_values(format, a, out, n, [scalar](float x) { return scalar - x; });
}
void multiply_scalar(ElementType format, const void* a, float scalar, void* out, std::size_t n) {
  map_values(format, a, out, n, [scalar](float x) { return x * scalar; });
}
void max_scalar(ElementType format, const void* a, float scalar, void* out, std::size_t n) {
  map_values(format, a, out, n, [scalar](float x) { return maximum_number(x, scalar); });
}
void min_scalar(ElementType format, const void* a, float scalar, void* out, std::size_t n) {
  map_values(format, a, out, n, [scalar](float x) { return minimum_number(x, scalar); });
}

void exp_lanes(ElementType format, const void* a, void* out, std::size_t n) {
  map_bits(format, a, out, n, exp_fp);
}
void reciprocal_lanes(ElementType format, const void* a, void* out, std::size_t n) {
  map_bits(format, a, out, n, reciprocal_fp);
}

void canonical(ElementType format, const void* a, void* out, std::size_t n) {
  map_values(format, a, out, n, [](float x) { return x; });
}

void to_f32(ElementType format, const void* row, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = row_value(format, row, i);
}
void from_f32(ElementType format, const float* values, void* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) set_row_bits(format, out, i, encode_fp(format, values[i]));
}

float sum(ElementType format, const void* row, std::size_t n) {
  BlockTree tree;
  for (std::size_t i = 0; i < n; ++i) tree.add(row_value(format, row, i));
  return tree.root();
}
float maximum(ElementType format, const void* row, std::size_t n) {
  float largest = row_value(format, row, 0);
  for (std::size_t i = 1; i < n; ++i) largest = maximum_number(largest, row_value(format, row, i));
  return largest;
}

template <ElementType kFormat>
struct Lanes {
  // A function of the table that calls kBody with the format bound.
  template <auto kBody>
  static constexpr auto bind = [](auto... arguments) { return kBody(kFormat, arguments...); };

  static constexpr VectorKernels kernels{
      .add = bind<add>,
      .subtract = bind<subtract>,
      .multiply = bind<multiply>,
      .add_scalar = bind<add_scalar>,
      .subtract_scalar = bind<subtract_scalar>,
      .subtract_from_scalar = bind<subtract_from_scalar>,
      .multiply_scalar = bind<multiply_scalar>,
      .max_scalar = bind<max_scalar>,
      .min_scalar = bind<min_scalar>,
      .exp = bind<exp_lanes>,
      .reciprocal = bind<reciprocal_lanes>,
      .canonical = bind<canonical>,
      .to_f32 = bind<to_f32>,
      .from_f32 = bind<from_f32>,
      .sum = bind<sum>,
      .maximum = bind<maximum>,
  };
};

constexpr auto kKernels = for_every_sram_format<VectorKernels, Lanes>();

}  // namespace

const VectorKernels& portable_vector_kernels(ElementType format) {
  return kKernels[sram_format_index(format)];
}

const VectorKernels& vector_kernels(ElementType format, SimdTarget target) {
  const VectorKernels* kernels = simd_vector_kernels(target, format);
  return kernels != nullptr ? *kernels : portable_vector_kernels(format);
}

}  // namespace plena
