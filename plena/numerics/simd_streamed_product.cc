// Weights straight from HBM in SIMD, one lane a block of four: the four elements of a block lie in
// one 32-bit lane (two of bf16), so that a fused multiply-add a place in the block sums all blocks
// of a row in order. The tree over the blocks is taken for as many rows as a vector has lanes.
//
// Elements of E4M3 are multiplied as f32 that are 2^-120 times too small: their bits are moved into
// place and nothing else. The activations are made larger by as much, and a block's scale meets
// its sum. All that is exact while nothing on the way is subnormal or infinite, which the exponents
// of the activations bound: scales beyond the bounds are left to the plain order.
#include <algorithm>
#include <bit>
#include <cstring>

#include "plena/numerics/highway_targets.h"
#include "plena/numerics/scratch.h"
#include "plena/numerics/streamed_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plena/numerics/simd_streamed_product.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plena::HWY_NAMESPACE {
#if PLENA_HWY_HAS_FMA
namespace hn = hwy::HWY_NAMESPACE;

namespace streamed {

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using U8 = hn::Repartition<std::uint8_t, F32>;
using V = hn::Vec<F32>;
using V32 = hn::Vec<U32>;
using V8 = hn::Vec<U8>;

constexpr std::size_t kLanes = hn::MaxLanes(F32());
constexpr std::size_t kBlock = 4;                // BLEN
constexpr std::size_t kGroup = kLanes * kBlock;  // elements whose blocks fill a vector
constexpr std::size_t kTreeLevels = 32;
constexpr std::size_t kTilesAhead = 2;  // whose bytes are asked for beforehand

// The activations of a group, [place in the block][block].
struct Group {
  V at[kBlock];
};

HWY_INLINE Group load_group(const float* arranged) {
  Group group;
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < kBlock; ++i) group.at[i] = hn::Load(F32(), arranged + i * kLanes);
  return group;
}

// Sums of neighbours, those of `left` in the lower half.
HWY_INLINE V pair_up(V left, V right) {
  return hn::Add(hn::ConcatEven(F32(), right, left), hn::ConcatOdd(F32(), right, left));
}

struct ArrangedScratch {};

// `a` group by group as Group has it, times `factor`, a power of two.
inline const float* arrange(const float* a, std::size_t n, float factor) {
  const F32 d;
  auto* arranged = static_cast<float*>(thread_scratch<ArrangedScratch>(n * sizeof(float)));
  const V scale = hn::Set(d, factor);
  for (std::size_t k = 0; k < n; k += kGroup) {
    V v0, v1, v2, v3;
    hn::LoadInterleaved4(d, a + k, v0, v1, v2, v3);
    hn::Store(hn::Mul(v0, scale), d, arranged + k);
    hn::Store(hn::Mul(v1, scale), d, arranged + k + kLanes);
    hn::Store(hn::Mul(v2, scale), d, arranged + k + 2 * kLanes);
    hn::Store(hn::Mul(v3, scale), d, arranged + k + 3 * kLanes);
  }
  return arranged;
}

// ------------------------------------------------------------ bf16

class Bf16Rows {
 public:
  static constexpr std::size_t kElementBytes = 2;

  Bf16Rows(const float* /*a*/, std::size_t /*n*/) {}

  static constexpr bool can_run() { return true; }
  static constexpr float activation_factor() { return 1; }
  void begin_rows() {}
  // A NaN or infinity among the weights or activations shows in the root.
  static HWY_INLINE bool rows_are_right(V roots) { return hn::AllFalse(F32(), hn::IsNaN(roots)); }
  static constexpr bool rest_is_harmless(const StreamedRows& /*rows*/, std::size_t /*n*/) {
    return false;
  }

  HWY_INLINE V block_sums(const Group& a, const std::uint8_t* elements,
                          const std::uint8_t* /*scales*/, std::size_t /*k*/) {
    const U32 d;
    const F32 f;
    const auto first = hn::BitCast(d, hn::LoadU(U8(), elements));
    const auto second = hn::BitCast(d, hn::LoadU(U8(), elements + hn::MaxLanes(U8())));
    const V32 even = hn::ConcatEven(d, second, first);  // elements 0 and 1 of each block
    const V32 odd = hn::ConcatOdd(d, second, first);    // elements 2 and 3
    const V32 upper = hn::Set(d, 0xFFFF0000U);
    V sum = hn::MulAdd(a.at[0], hn::BitCast(f, hn::ShiftLeft<16>(even)), hn::Zero(f));
    sum = hn::MulAdd(a.at[1], hn::BitCast(f, hn::And(even, upper)), sum);
    sum = hn::MulAdd(a.at[2], hn::BitCast(f, hn::ShiftLeft<16>(odd)), sum);
    return hn::MulAdd(a.at[3], hn::BitCast(f, hn::And(odd, upper)), sum);
  }
};

// ------------------------------------------------------------ E4M3

// Exponents of the activations, and how far below the smallest one their last bit lies.
struct ActivationRange {
  int least = 0;  // of those that are not 0
  int most = 0;
  int mantissa_bits = 0;
  bool finite = true;
};

inline ActivationRange activation_range(const float* a, std::size_t n) {
  const U32 d;
  const auto magnitude_mask = hn::Set(d, 0x7FFFFFFFU);
  V32 least = magnitude_mask;
  V32 most = hn::Zero(d);
  V32 any = hn::Zero(d);
  for (std::size_t k = 0; k < n; k += kLanes) {
    const auto bits = hn::BitCast(d, hn::LoadU(F32(), a + k));
    const auto magnitude = hn::And(bits, magnitude_mask);
    any = hn::Or(any, bits);
    most = hn::Max(most, magnitude);
    // 0 becomes the largest of all.
    least = hn::Min(least, hn::Sub(magnitude, hn::Set(d, 1)));
  }
  const std::uint32_t largest = hn::GetLane(hn::MaxOfLanes(d, most));
  const std::uint32_t smallest = hn::GetLane(hn::MinOfLanes(d, least)) + 1;
  if (largest == 0) return {};
  ActivationRange range;
  range.finite = largest < 0x7F800000U;
  range.least = static_cast<int>(smallest >> 23) - 127;
  range.most = static_cast<int>(largest >> 23) - 127;
  const bool bf16 = hn::AllTrue(d, hn::Eq(hn::ShiftLeft<16>(any), hn::Zero(d)));
  range.mantissa_bits = bf16 ? 7 : 23;
  return range;
}

// kScales scale bytes cover a group.
template <std::size_t kScales>
class E4m3Rows {
 public:
  static constexpr std::size_t kElementBytes = 1;
  static constexpr std::size_t kScaleBlock = kGroup / kScales;

  E4m3Rows(const float* a, std::size_t n) {
    // E4M3: magnitudes below 2^9, the last bit of the smallest is 2^-9; its exponent field is that
    // of f32 with a bias of 7 instead of 127.
    constexpr int kMost = 9;
    constexpr int kLast = -9;
    constexpr int kBiasGap = 120;
    constexpr int kLeastExponent = -126;  // of a normal f32
    constexpr int kMostExponent = 127;
    constexpr int kExactScales = 117;  // bf16 holds every element times 2^±117
    const ActivationRange range = activation_range(a, n);
    const int last = range.least - range.mantissa_bits + kLast;  // of any product
    const int shift = std::min(kBiasGap, kMostExponent - 1 - range.most);
    excess_ = shift - kBiasGap;  // sums are 2^excess times too large, before their scale
    factor_ = std::bit_cast<float>(static_cast<std::uint32_t>(std::max(shift, -126) + 127) << 23);
    const int block_sum_bits = kMost + 1 + 2;  // the activation's mantissa, four of them
    const int least = std::max(-kExactScales, kLeastExponent - last);
    const int most = std::min(
        {kExactScales, kMostExponent - block_sum_bits - range.most, kMostExponent + excess_});
    can_run_ = range.finite && last + excess_ >= kLeastExponent && shift > -126 && least <= most;
    least_ = static_cast<std::uint8_t>(least + kScaleBias);
    most_ = static_cast<std::uint8_t>(most + kScaleBias);
    begin_rows();
  }

  [[nodiscard]] bool can_run() const { return can_run_; }
  [[nodiscard]] float activation_factor() const { return factor_; }

  void begin_rows() {
    nearest_nan_ = hn::Set(U8(), 0xFF);
    least_scale_ = hn::Set(U32(), 0x7F800000U);
    most_scale_ = hn::Zero(U32());
  }

  HWY_INLINE bool rows_are_right(V /*roots*/) {
    const I32 d;
    if (!hn::AllFalse(U8(), hn::Eq(nearest_nan_, hn::Zero(U8())))) return false;
    const auto below = hn::Gt(hn::Set(d, std::int32_t{least_} << 23), hn::BitCast(d, least_scale_));
    const auto above = hn::Gt(hn::BitCast(d, most_scale_), hn::Set(d, std::int32_t{most_} << 23));
    return hn::AllFalse(d, hn::Or(below, above));
  }

  // A block of zeros has scale 0 (semantics 5.2), whatever the bounds; its sum is 0 here as well.
  [[nodiscard]] bool rest_is_harmless(const StreamedRows& rows, std::size_t n) const {
    if (!hn::AllFalse(U8(), hn::Eq(nearest_nan_, hn::Zero(U8())))) return false;
    for (std::size_t r = 0; r < kLanes; ++r) {
      for (std::size_t block = 0; block < n / kScaleBlock; ++block) {
        const std::uint8_t scale = rows.scales[r * rows.scale_pitch + block];
        if (scale >= least_ && scale <= most_) continue;
        const std::uint8_t* codes = rows.elements + r * rows.element_pitch + block * kScaleBlock;
        const auto zero = [](std::uint8_t code) { return (code & 0x7F) == 0; };
        if (scale != 0 || !std::all_of(codes, codes + kScaleBlock, zero)) return false;
      }
    }
    return true;
  }

  HWY_INLINE V block_sums(const Group& a, const std::uint8_t* elements, const std::uint8_t* scales,
                          std::size_t k) {
    const U32 d;
    const F32 f;
    const V8 codes = hn::LoadU(U8(), elements);
    const V8 all_ones = hn::Set(U8(), 0x7F);
    nearest_nan_ = hn::Min(nearest_nan_, hn::And(hn::Xor(codes, all_ones), all_ones));
    const V32 lanes = hn::BitCast(d, codes);
    V sum = hn::MulAdd(a.at[0], element<24>(lanes), hn::Zero(f));
    sum = hn::MulAdd(a.at[1], element<16>(lanes), sum);
    sum = hn::MulAdd(a.at[2], element<8>(lanes), sum);
    sum = hn::MulAdd(a.at[3], element<0>(lanes), sum);
    const V32 exponents = load_scales(scales + k / kScaleBlock);
    least_scale_ = hn::Min(least_scale_, exponents);
    most_scale_ = hn::Max(most_scale_, exponents);
    const V32 excess = hn::Set(d, static_cast<std::uint32_t>(-excess_) << 23);
    return hn::Mul(sum, hn::BitCast(f, hn::Add(exponents, excess)));
  }

 private:
  static constexpr int kScaleBias = 127;

  // The element kLeft bits below the top of each lane: its sign to the sign, the rest to the lower
  // half of the exponent field and the top of the mantissa.
  template <int kLeft>
  static HWY_INLINE V element(V32 lanes) {
    const auto top = hn::BitCast(I32(), hn::ShiftLeft<kLeft>(lanes));
    const auto bits = hn::BitCast(U32(), hn::ShiftRight<4>(top));
    return hn::BitCast(F32(), hn::And(bits, hn::Set(U32(), 0x87F00000U)));
  }

  // Each lane's scale as the exponent field of an f32.
  static HWY_INLINE V32 load_scales(const std::uint8_t* scales) {
    struct Places {
      alignas(64) std::uint8_t bytes[kGroup];
    };
    static constexpr Places kPlaces = [] {
      Places places{};
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        for (std::size_t i = 0; i < 3; ++i) places.bytes[4 * lane + i] = 0x80;
        places.bytes[4 * lane + 3] = static_cast<std::uint8_t>(lane * kBlock / kScaleBlock);
      }
      return places;
    }();
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, scales, kScales);
    const hn::Repartition<std::uint64_t, F32> d64;
    const V8 all = hn::BitCast(U8(), hn::Set(d64, bytes));
    const V8 upper = hn::TableLookupBytes(all, hn::Load(U8(), kPlaces.bytes));
    return hn::ShiftRight<1>(hn::BitCast(U32(), upper));
  }

  int excess_ = 0;
  float factor_ = 1;
  bool can_run_ = false;
  std::uint8_t least_ = 0;  // scale bytes that need no look
  std::uint8_t most_ = 0;
  V8 nearest_nan_;   // 0 where a code was that of NaN
  V32 least_scale_;  // seen so far, as exponent fields
  V32 most_scale_;
};

// ------------------------------------------------------------ rows

// The tree over the blocks of one group for kRows rows from `row` on: kLanes / kRows partial sums
// of each, row by row.
template <std::size_t kRows, class Rows>
HWY_INLINE V group_sums(Rows& rows, const Group& a, const StreamedRows& from, std::size_t row,
                        std::size_t k, std::size_t ahead) {
  if constexpr (kRows == 1) {
    const std::uint8_t* elements =
        from.elements + row * from.element_pitch + k * Rows::kElementBytes;
    for (std::size_t line = 0; line < kGroup * Rows::kElementBytes; line += 64) {
      __builtin_prefetch(elements + ahead + line);
    }
    return rows.block_sums(a, elements, from.scales + row * from.scale_pitch, k);
  } else {
    const V left = group_sums<kRows / 2>(rows, a, from, row, k, ahead);
    return pair_up(left, group_sums<kRows / 2>(rows, a, from, row + kRows / 2, k, ahead));
  }
}

// Roots of as many rows as a vector has lanes.
template <class Rows>
HWY_INLINE V roots_of_rows(Rows& rows, const float* arranged, std::size_t n,
                           const StreamedRows& from, std::size_t ahead) {
  if (n == kGroup) return group_sums<kLanes>(rows, load_group(arranged), from, 0, 0, ahead);
  V levels[kTreeLevels];  // as BlockTree has them
  std::size_t depth = 0;
  for (std::size_t k = 0, done = 0; k < n; k += kGroup, ++done) {
    V part = group_sums<kLanes>(rows, load_group(arranged + k), from, 0, k, ahead);
    for (std::size_t bit = done; (bit & 1) != 0; bit >>= 1) part = hn::Add(levels[--depth], part);
    levels[depth++] = part;
  }
  V root = levels[--depth];
  while (depth > 0) root = hn::Add(levels[--depth], root);
  return root;
}

template <class Rows>
std::size_t product(const float* a, std::size_t n, const StreamedRows& weights, std::size_t count,
                    float* out) {
  const F32 d;
  Rows rows(a, n);
  if (!rows.can_run()) return 0;
  const float* arranged = arrange(a, n, rows.activation_factor());
  // Tiles that follow each other in memory are fetched in time; others find their own way.
  const bool contiguous = weights.element_pitch == n * Rows::kElementBytes;
  const std::size_t ahead = contiguous ? kTilesAhead * count * weights.element_pitch : 0;
  StreamedRows from = weights;
  std::size_t done = 0;
  for (; done + kLanes <= count; done += kLanes) {
    rows.begin_rows();
    const V roots = roots_of_rows(rows, arranged, n, from, ahead);
    if (HWY_UNLIKELY(!rows.rows_are_right(roots)) && !rows.rest_is_harmless(from, n)) break;
    hn::StoreU(hn::Add(hn::LoadU(d, out + done), roots), d, out + done);
    from.elements += kLanes * from.element_pitch;
    from.scales += kLanes * from.scale_pitch;
  }
  return done;
}

StreamedProduct for_e4m3(std::uint32_t block) {
  switch (kGroup / block) {
    case 1:
      return product<E4m3Rows<1>>;
    case 2:
      return product<E4m3Rows<2>>;
    case 4:
      return product<E4m3Rows<4>>;
    case 8:
      return kGroup / 8 >= 8 ? product<E4m3Rows<8>> : nullptr;
    default:
      return nullptr;
  }
}

StreamedProduct choose(DataType hbm, std::size_t n, std::size_t blen) {
  if (blen != kBlock || n == 0 || n % kGroup != 0) return nullptr;
  if (!hbm.is_mx()) return hbm.element == kBf16 ? product<Bf16Rows> : nullptr;
  const bool whole_scales = hbm.block >= 8 && kGroup % hbm.block == 0;
  return hbm.element == kE4M3 && whole_scales ? for_e4m3(hbm.block) : nullptr;
}

}  // namespace streamed
#endif  // PLENA_HWY_HAS_FMA
}  // namespace plena::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plena {

StreamedProduct streamed_product(DataType hbm, ElementType sram, std::size_t n, std::size_t blen,
                                 SimdTarget target) {
  if (sram != kBf16 && sram != kFp32) return nullptr;
  switch (target) {
#if HWY_TARGETS & HWY_AVX2
    case SimdTarget::Avx2:
      return N_AVX2::streamed::choose(hbm, n, blen);
#endif
#if HWY_TARGETS & HWY_AVX3
    case SimdTarget::Avx512:
      return N_AVX3::streamed::choose(hbm, n, blen);
#endif
    default:
      return nullptr;
  }
}

}  // namespace plena
#endif  // HWY_ONCE
