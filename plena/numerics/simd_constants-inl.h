// Constants and byte tables for the files that Highway compiles once a target.
//
// They come from memory: GCC builds constants it knows anew in every turn of a loop with many, on
// the port of the shuffles.

// Toggled by foreach_target.h, so that the header is seen again for every target.
#if defined(PLENA_NUMERICS_SIMD_CONSTANTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLENA_NUMERICS_SIMD_CONSTANTS_INL_H_
#undef PLENA_NUMERICS_SIMD_CONSTANTS_INL_H_
#else
#define PLENA_NUMERICS_SIMD_CONSTANTS_INL_H_
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plena::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::ScalableTag<std::uint8_t>;
using Words = hn::Repartition<std::uint16_t, Bytes>;
using Doublewords = hn::Repartition<std::uint32_t, Bytes>;
using V8 = hn::Vec<Bytes>;
using V16 = hn::Vec<Words>;
using VU32 = hn::Vec<Doublewords>;

// `constants`, as if nobody knew what lies there.
template <class T>
HWY_INLINE const T* from_memory(const T* constants) {
  asm("" : "+r"(constants));
  return constants;
}

// A table of 16 bytes for every 128-bit block, for TableLookupBytes.
HWY_INLINE V8 table(const std::uint8_t (&bytes)[16]) {
  return hn::LoadDup128(Bytes(), from_memory(bytes));
}

// kValue in every lane.
template <std::uint8_t kValue>
HWY_INLINE V8 all_u8() {
  static constexpr std::uint8_t kLanes[16] = {kValue, kValue, kValue, kValue, kValue, kValue,
                                              kValue, kValue, kValue, kValue, kValue, kValue,
                                              kValue, kValue, kValue, kValue};
  return hn::LoadDup128(Bytes(), from_memory(kLanes));
}
template <std::uint16_t kValue>
HWY_INLINE V16 all_u16() {
  static constexpr std::uint16_t kLanes[8] = {kValue, kValue, kValue, kValue,
                                              kValue, kValue, kValue, kValue};
  return hn::LoadDup128(Words(), from_memory(kLanes));
}
template <std::uint32_t kValue>
HWY_INLINE VU32 all_u32() {
  static constexpr std::uint32_t kLanes[4] = {kValue, kValue, kValue, kValue};
  return hn::LoadDup128(Doublewords(), from_memory(kLanes));
}

}  // namespace plena::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PLENA_NUMERICS_SIMD_CONSTANTS_INL_H_
