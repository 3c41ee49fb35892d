// Rows of bf16 or fp32 as vectors of f32, for the files that Highway compiles once a target.
//
// A chunk of a bf16 row is loaded whole: its even lanes become one f32 vector by a shift, its odd
// lanes another by a mask, and both go back into place when they are stored. No lane crosses.

// Toggled by foreach_target.h, so that the header is seen again for every target.
#if defined(PLENA_NUMERICS_SIMD_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLENA_NUMERICS_SIMD_LANES_INL_H_
#undef PLENA_NUMERICS_SIMD_LANES_INL_H_
#else
#define PLENA_NUMERICS_SIMD_LANES_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "plena/numerics/float_format.h"

HWY_BEFORE_NAMESPACE();
namespace plena::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using V32 = hn::Vec<F32>;

// Rounds to bf16, ties to even, any NaN to the canonical one; the result is the upper half of each
// u32, the lower half is not cleared.
HWY_INLINE hn::Vec<U32> round_to_upper_half(V32 value) {
  const U32 d;
  const auto bits = hn::BitCast(d, value);
  const auto last_kept = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(d, 0x7FFF)), last_kept);
  return hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(value)), hn::Set(d, 0x7FC00000), rounded);
}

struct Bf16Lanes {
  using Element = std::uint16_t;
  static constexpr ElementType kFormat = kBf16;
  static constexpr std::size_t kVectors = 2;
  static constexpr std::size_t kChunk = 2 * hn::MaxLanes(F32());
  struct Chunk {
    V32 v[kVectors];  // even lanes, odd lanes
  };

  static HWY_INLINE Chunk load(const Element* row) {
    const hn::Repartition<Element, F32> d16;
    const auto both = hn::BitCast(U32(), hn::LoadU(d16, row));
    return {{hn::BitCast(F32(), hn::ShiftLeft<16>(both)),
             hn::BitCast(F32(), hn::And(both, hn::Set(U32(), 0xFFFF0000U)))}};
  }

  static HWY_INLINE void store(const Chunk& chunk, Element* row) {
    const hn::Repartition<Element, F32> d16;
    const auto even = hn::BitCast(d16, hn::ShiftRight<16>(round_to_upper_half(chunk.v[0])));
    const auto odd = hn::BitCast(d16, round_to_upper_half(chunk.v[1]));
    hn::StoreU(hn::OddEven(odd, even), d16, row);
  }

  // The lowest level of the tree over the chunk: even lanes plus their odd neighbours.
  static HWY_INLINE V32 sum_of_vectors(const Chunk& chunk) {
    return hn::Add(chunk.v[0], chunk.v[1]);
  }
  static void widen(const Element* row, float* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = bf16_to_f32(row[i]);
  }
};

struct F32Lanes {
  using Element = float;
  static constexpr ElementType kFormat = kFp32;
  static constexpr std::size_t kVectors = 1;
  static constexpr std::size_t kChunk = hn::MaxLanes(F32());
  struct Chunk {
    V32 v[kVectors];
  };

  static HWY_INLINE Chunk load(const Element* row) { return {{hn::LoadU(F32(), row)}}; }

  static HWY_INLINE void store(const Chunk& chunk, Element* row) {
    const auto nan = hn::BitCast(F32(), hn::Set(U32(), 0x7FC00000));
    hn::StoreU(hn::IfThenElse(hn::IsNaN(chunk.v[0]), nan, chunk.v[0]), F32(), row);
  }

  static HWY_INLINE V32 sum_of_vectors(const Chunk& chunk) { return chunk.v[0]; }
  static void widen(const Element* row, float* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = row[i];
  }
};

}  // namespace plena::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PLENA_NUMERICS_SIMD_LANES_INL_H_
