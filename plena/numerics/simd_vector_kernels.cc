// Lane operations in SIMD, for rows of bf16 and fp32.
#include <cmath>
#include <cstring>
#include <limits>

#include "plena/numerics/block_tree.h"
#include "plena/numerics/float_format.h"
#include "plena/numerics/highway_targets.h"
#include "plena/numerics/simd_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plena/numerics/simd_vector_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#if PLENA_HWY_HAS_FMA
#include "plena/numerics/simd_exp-inl.h"
#include "plena/numerics/simd_lanes-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace plena::HWY_NAMESPACE {
#if PLENA_HWY_HAS_FMA
namespace hn = hwy::HWY_NAMESPACE;

// Calls step(a, out) on whole chunks; what is left of the row takes the same path through a copy
// that is padded with zeros.
template <class Lanes, class Step>
HWY_INLINE void each_chunk(const void* a, void* out, std::size_t n, Step step) {
  using Element = typename Lanes::Element;
  const auto* from = static_cast<const Element*>(a);
  auto* to = static_cast<Element*>(out);
  std::size_t i = 0;
  for (; i + Lanes::kChunk <= n; i += Lanes::kChunk) step(from + i, to + i);
  if (i == n) return;
  Element padded[Lanes::kChunk] = {};
  std::memcpy(padded, from + i, (n - i) * sizeof(Element));
  step(padded, padded);
  std::memcpy(to + i, padded, (n - i) * sizeof(Element));
}

template <class Lanes, class Operation>
HWY_INLINE void map(const void* a, void* out, std::size_t n, Operation operation) {
  using Element = typename Lanes::Element;
  each_chunk<Lanes>(a, out, n, [&](const Element* from, Element* to) HWY_ATTR {
    typename Lanes::Chunk chunk = Lanes::load(from);
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < Lanes::kVectors; ++v) chunk.v[v] = operation(chunk.v[v]);
    Lanes::store(chunk, to);
  });
}

template <class Lanes, class Operation>
HWY_INLINE void map_pairs(const void* a, const void* b, void* out, std::size_t n,
                          Operation operation) {
  using Element = typename Lanes::Element;
  const auto step = [&](const Element* left, const Element* right, Element* to) HWY_ATTR {
    typename Lanes::Chunk chunk = Lanes::load(left);
    const typename Lanes::Chunk other = Lanes::load(right);
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < Lanes::kVectors; ++v) {
      chunk.v[v] = operation(chunk.v[v], other.v[v]);
    }
    Lanes::store(chunk, to);
  };
  const auto* left = static_cast<const Element*>(a);
  const auto* right = static_cast<const Element*>(b);
  auto* to = static_cast<Element*>(out);
  std::size_t i = 0;
  for (; i + Lanes::kChunk <= n; i += Lanes::kChunk) step(left + i, right + i, to + i);
  if (i == n) return;
  Element padded_left[Lanes::kChunk] = {};
  Element padded_right[Lanes::kChunk] = {};
  std::memcpy(padded_left, left + i, (n - i) * sizeof(Element));
  std::memcpy(padded_right, right + i, (n - i) * sizeof(Element));
  step(padded_left, padded_right, padded_left);
  std::memcpy(to + i, padded_left, (n - i) * sizeof(Element));
}

template <class Lanes>
void add(const void* a, const void* b, void* out, std::size_t n) {
  map_pairs<Lanes>(a, b, out, n, [](V32 x, V32 y) HWY_ATTR { return hn::Add(x, y); });
}
template <class Lanes>
void subtract(const void* a, const void* b, void* out, std::size_t n) {
  map_pairs<Lanes>(a, b, out, n, [](V32 x, V32 y) HWY_ATTR { return hn::Sub(x, y); });
}
template <class Lanes>
void multiply(const void* a, const void* b, void* out, std::size_t n) {
  map_pairs<Lanes>(a, b, out, n, [](V32 x, V32 y) HWY_ATTR { return hn::Mul(x, y); });
}

template <class Lanes>
void add_scalar(const void* a, float scalar, void* out, std::size_t n) {
  const V32 s = hn::Set(F32(), scalar);
  map<Lanes>(a, out, n, [s](V32 x) HWY_ATTR { return hn::Add(x, s); });
}
template <class Lanes>
void subtract_scalar(const void* a, float scalar, void* out, std::size_t n) {
  const V32 s = hn::Set(F32(), scalar);
  map<Lanes>(a, out, n, [s](V32 x) HWY_ATTR { return hn::Sub(x, s); });
}
template <class Lanes>
void subtract_from_scalar(const void* a, float scalar, void* out, std::size_t n) {
  const V32 s = hn::Set(F32(), scalar);
  map<Lanes>(a, out, n, [s](V32 x) HWY_ATTR { return hn::Sub(s, x); });
}
template <class Lanes>
void multiply_scalar(const void* a, float scalar, void* out, std::size_t n) {
  const V32 s = hn::Set(F32(), scalar);
  map<Lanes>(a, out, n, [s](V32 x) HWY_ATTR { return hn::Mul(x, s); });
}

// maximumNumber and minimumNumber where y is not NaN: a NaN in x fails the comparison and gives y;
// of two equal operands (zeros may differ in sign) both bits decide.
HWY_INLINE V32 maximum_with_number(V32 x, V32 y) {
  const V32 larger = hn::IfThenElse(hn::Gt(x, y), x, y);
  return hn::IfThenElse(hn::Eq(x, y), hn::And(x, y), larger);
}
HWY_INLINE V32 minimum_with_number(V32 x, V32 y) {
  const V32 smaller = hn::IfThenElse(hn::Lt(x, y), x, y);
  return hn::IfThenElse(hn::Eq(x, y), hn::Or(x, y), smaller);
}

template <class Lanes>
void copy(const void* a, void* out, std::size_t n) {
  map<Lanes>(a, out, n, [](V32 x) HWY_ATTR { return x; });
}
template <class Lanes>
void max_scalar(const void* a, float scalar, void* out, std::size_t n) {
  if (std::isnan(scalar)) return copy<Lanes>(a, out, n);  // a NaN loses to every number
  const V32 s = hn::Set(F32(), scalar);
  map<Lanes>(a, out, n, [s](V32 x) HWY_ATTR { return maximum_with_number(x, s); });
}
template <class Lanes>
void min_scalar(const void* a, float scalar, void* out, std::size_t n) {
  if (std::isnan(scalar)) return copy<Lanes>(a, out, n);
  const V32 s = hn::Set(F32(), scalar);
  map<Lanes>(a, out, n, [s](V32 x) HWY_ATTR { return minimum_with_number(x, s); });
}

// Without widening: what is above infinity as an integer is a NaN.
void copy_bf16(const void* a, void* out, std::size_t n) {
  const hn::Repartition<std::int16_t, F32> d;
  each_chunk<Bf16Lanes>(a, out, n, [d](const std::uint16_t* from, std::uint16_t* to) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> d16;
    const auto bits = hn::BitCast(d, hn::LoadU(d16, from));
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFF));
    const auto nan = hn::Gt(magnitude, hn::Set(d, 0x7F80));
    hn::StoreU(hn::BitCast(d16, hn::IfThenElse(nan, hn::Set(d, 0x7FC0), bits)), d16, to);
  });
}

void exp_bf16_row(const void* a, void* out, std::size_t n) {
  map<Bf16Lanes>(a, out, n, [](V32 x) HWY_ATTR { return exp_for_bf16(x); });
}
void exp_f32_row(const void* a, void* out, std::size_t n) {
  constexpr std::size_t kHalf = F32Lanes::kChunk / 2;
  each_chunk<F32Lanes>(a, out, n, [](const float* from, float* to) HWY_ATTR {
    exp_f32(from, to);
    exp_f32(from + kHalf, to + kHalf);
  });
}

// The f32 quotient of a bf16 is never so close to a midpoint of bf16 that its own rounding matters.
template <class Lanes>
void reciprocal(const void* a, void* out, std::size_t n) {
  const V32 one = hn::Set(F32(), 1.0F);
  map<Lanes>(a, out, n, [one](V32 x) HWY_ATTR { return hn::Div(one, x); });
}

void bf16_to_f32_row(const void* row, float* out, std::size_t n) {
  const F32 d;
  const hn::Rebind<std::uint16_t, F32> d16;
  const auto* from = static_cast<const std::uint16_t*>(row);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto wide = hn::PromoteTo(U32(), hn::LoadU(d16, from + i));
    hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(wide)), d, out + i);
  }
  for (; i < n; ++i) out[i] = bf16_to_f32(from[i]);
}

void f32_to_bf16_row(const float* values, void* out, std::size_t n) {
  const F32 d;
  const hn::Rebind<std::uint16_t, F32> d16;
  const hn::RebindToSigned<F32> di;
  auto* to = static_cast<std::uint16_t*>(out);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto bits = hn::ShiftRight<16>(round_to_upper_half(hn::LoadU(d, values + i)));
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, bits)), d16, to + i);
  }
  for (; i < n; ++i) to[i] = f32_to_bf16(values[i]);
}

void f32_to_f32_row(const void* row, float* out, std::size_t n) {
  std::memcpy(out, row, n * sizeof(float));
}
void f32_from_f32_row(const float* values, void* out, std::size_t n) {
  copy<F32Lanes>(values, out, n);
}

// The tree over the lanes of one vector. Neighbours, then neighbouring pairs, change places within
// their 128-bit block and are added; then blocks, lower before upper.
HWY_INLINE float tree_of_lanes(V32 v) {
  v = hn::Add(v, hn::Shuffle2301(v));
  v = hn::Add(v, hn::Shuffle1032(v));
  const hn::Half<F32> half;
  if constexpr (hn::MaxLanes(F32()) == 16) {
    const hn::Half<decltype(half)> quarter;
    const auto lower = hn::LowerHalf(half, v);
    const auto upper = hn::UpperHalf(half, v);
    const auto first = hn::Add(hn::LowerHalf(quarter, lower), hn::UpperHalf(quarter, lower));
    const auto second = hn::Add(hn::LowerHalf(quarter, upper), hn::UpperHalf(quarter, upper));
    return hn::GetLane(hn::Add(first, second));
  } else {
    return hn::GetLane(hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// A chunk is a power of two of lanes, so its tree is a subtree of the row's; what is left of the
// row is the odd end of the lowest levels and has a tree of its own.
template <class Lanes>
float sum(const void* row, std::size_t n) {
  const auto* from = static_cast<const typename Lanes::Element*>(row);
  BlockTree tree;
  std::size_t i = 0;
  for (; i + Lanes::kChunk <= n; i += Lanes::kChunk) {
    tree.add(tree_of_lanes(Lanes::sum_of_vectors(Lanes::load(from + i))));
  }
  if (i < n) {
    float rest[Lanes::kChunk];
    Lanes::widen(from + i, rest, n - i);
    tree.add(tree_sum(rest, n - i));
  }
  return tree.root();
}

template <class Lanes>
float maximum(const void* row, std::size_t n) {
  const auto* from = static_cast<const typename Lanes::Element*>(row);
  const hn::RebindToSigned<F32> di;
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  V32 largest = hn::Set(F32(), kLeast);
  std::size_t i = 0;
  for (; i + Lanes::kChunk <= n; i += Lanes::kChunk) {
    const typename Lanes::Chunk chunk = Lanes::load(from + i);
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < Lanes::kVectors; ++v) {
      largest = maximum_with_number(chunk.v[v], largest);
    }
  }
  // As integers with the lower bits of negative numbers flipped, f32 are in order, -0 below +0.
  const auto bits = hn::BitCast(di, largest);
  const auto key = hn::Xor(bits, hn::And(hn::ShiftRight<31>(bits), hn::Set(di, 0x7FFFFFFF)));
  const std::int32_t top = hn::GetLane(hn::MaxOfLanes(di, key));
  float result = std::bit_cast<float>(top ^ (top >> 31 & 0x7FFFFFFF));
  float rest[Lanes::kChunk];
  Lanes::widen(from + i, rest, n - i);
  for (std::size_t k = 0; k < n - i; ++k) result = maximum_number(result, rest[k]);
  // Either there is no number above -infinity or there is none at all.
  return result != kLeast ? result : portable_vector_kernels(Lanes::kFormat).maximum(row, n);
}

template <class Lanes>
constexpr VectorKernels kernels_of(VectorKernels::Unary exp_row, VectorKernels::Unary canonical,
                                   decltype(VectorKernels::to_f32) to,
                                   decltype(VectorKernels::from_f32) from) {
  return {.add = add<Lanes>,
          .subtract = subtract<Lanes>,
          .multiply = multiply<Lanes>,
          .add_scalar = add_scalar<Lanes>,
          .subtract_scalar = subtract_scalar<Lanes>,
          .subtract_from_scalar = subtract_from_scalar<Lanes>,
          .multiply_scalar = multiply_scalar<Lanes>,
          .max_scalar = max_scalar<Lanes>,
          .min_scalar = min_scalar<Lanes>,
          .exp = exp_row,
          .reciprocal = reciprocal<Lanes>,
          .canonical = canonical,
          .to_f32 = to,
          .from_f32 = from,
          .sum = sum<Lanes>,
          .maximum = maximum<Lanes>};
}

constexpr VectorKernels kBf16Kernels =
    kernels_of<Bf16Lanes>(exp_bf16_row, copy_bf16, bf16_to_f32_row, f32_to_bf16_row);
constexpr VectorKernels kF32Kernels =
    kernels_of<F32Lanes>(exp_f32_row, copy<F32Lanes>, f32_to_f32_row, f32_from_f32_row);
#endif  // PLENA_HWY_HAS_FMA
}  // namespace plena::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plena {

const VectorKernels* simd_vector_kernels(SimdTarget target, ElementType format) {
  if (format != kBf16 && format != kFp32) return nullptr;
  switch (common_target(target)) {
#if HWY_TARGETS & HWY_AVX2
    case SimdTarget::Avx2:
      return format == kBf16 ? &N_AVX2::kBf16Kernels : &N_AVX2::kF32Kernels;
#endif
#if HWY_TARGETS & HWY_AVX3
    case SimdTarget::Avx512:
      return format == kBf16 ? &N_AVX3::kBf16Kernels : &N_AVX3::kF32Kernels;
#endif
    default:
      return nullptr;
  }
}

}  // namespace plena
#endif  // HWY_ONCE
