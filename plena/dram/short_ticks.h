// Arrays of ticks, compared and moved on many at a time. SSE2 where there is, else plain loops.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "plena/dram/tick.h"

namespace plena::dram {

/// Bit i is set where ticks[i] <= limit. The array is aligned to 16 bytes.
template <unsigned kCount>
std::uint64_t not_after(const ShortTick* ticks, ShortTick limit) {
  static_assert(kCount == 8 || (kCount % 16 == 0 && kCount <= 64));
#if defined(__SSE2__)
  const __m128i limits = _mm_set1_epi32(limit);
  const auto later = [&](unsigned i) {
    return _mm_cmpgt_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(ticks + i)), limits);
  };
  if constexpr (kCount == 8) {
    const __m128i eight = _mm_packs_epi32(later(0), later(4));
    return ~_mm_movemask_epi8(_mm_packs_epi16(eight, eight)) & 0xFF;
  } else {
    std::uint64_t after = 0;
    for (unsigned i = 0; i < kCount; i += 16) {
      const __m128i low = _mm_packs_epi32(later(i), later(i + 4));
      const __m128i high = _mm_packs_epi32(later(i + 8), later(i + 12));
      const int sixteen = _mm_movemask_epi8(_mm_packs_epi16(low, high));
      after |= static_cast<std::uint64_t>(sixteen) << i;
    }
    return ~after & (~std::uint64_t{0} >> (64 - kCount));
  }
#else
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < kCount; ++i) mask |= static_cast<std::uint64_t>(ticks[i] <= limit) << i;
  return mask;
#endif
}

/// ticks[i] = max(ticks[i], now + gaps[i]). Both arrays are aligned to 16 bytes.
template <unsigned kCount>
void raise_to(ShortTick* ticks, ShortTick now, const ShortTick* gaps) {
  static_assert(kCount % 4 == 0);
#if defined(__SSE2__)
  const __m128i start = _mm_set1_epi32(now);
  for (unsigned i = 0; i < kCount; i += 4) {
    auto* vector = reinterpret_cast<__m128i*>(ticks + i);
    const __m128i floor =
        _mm_add_epi32(start, _mm_load_si128(reinterpret_cast<const __m128i*>(gaps + i)));
    const __m128i old = _mm_load_si128(vector);
    const __m128i later = _mm_cmpgt_epi32(old, floor);
    _mm_store_si128(vector,
                    _mm_or_si128(_mm_and_si128(later, old), _mm_andnot_si128(later, floor)));
  }
#else
  for (unsigned i = 0; i < kCount; ++i) ticks[i] = std::max(ticks[i], now + gaps[i]);
#endif
}

}  // namespace plena::dram
