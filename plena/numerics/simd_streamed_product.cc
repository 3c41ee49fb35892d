// Weights straight from HBM in SIMD, one lane a block of four: the four elements of a block lie in
// one 32-bit lane (two of bf16), so that a fused multiply-add a place in the block sums all blocks
// of a row in order. The tree over the blocks is taken for as many rows as a vector has lanes.
//
// Elements of E4M3 are multiplied as f32 that are 2^-120 times too small: their bits are moved into
// place and nothing else; the activations are made larger by as much. With VBMI a table has them as
// they are, and no operand is subnormal, which costs more than a hundred cycles. A scale meets the
// sum of two blocks. All that is exact while nothing on the way is subnormal or infinite, which the
// exponents of the activations bound: scales beyond the bounds are left to the plain order.
#include <algorithm>
#include <bit>
#include <cstring>

#define PLENA_HWY_WITH_VBMI
#include "plena/numerics/highway_targets.h"
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

// Sums of two of a row's lanes, kApart rows of which each of `left` and `right` has. Which lanes
// are a row's differs: AVX-512 has two shuffles for any order, those of `left` in the lower half;
// AVX2 takes turns, as a blend and one shuffle within the register cost half of that.
#if HWY_TARGET <= HWY_AVX3
constexpr bool kRowsTakeTurns = false;

template <std::size_t kApart>
HWY_INLINE V pair_up(V left, V right) {
  return hn::Add(hn::ConcatEven(F32(), right, left), hn::ConcatOdd(F32(), right, left));
}
#else
constexpr bool kRowsTakeTurns = true;

// Lanes whose number has no bit kApart from `left`, the others from `right`.
template <std::size_t kApart>
HWY_INLINE V take_turns(V left, V right) {
  const hn::Repartition<double, F32> d64;
  if constexpr (kApart == 1) return hn::OddEven(right, left);
  if constexpr (kApart == 4) return hn::OddEvenBlocks(right, left);
  return hn::BitCast(F32(), hn::OddEven(hn::BitCast(d64, right), hn::BitCast(d64, left)));
}
// v[i ^ kApart] in lane i.
template <std::size_t kApart>
HWY_INLINE V exchange(V v) {
  if constexpr (kApart == 1) return hn::Shuffle2301(v);
  if constexpr (kApart == 4) return hn::SwapAdjacentBlocks(v);
  return hn::Shuffle1032(v);
}
template <std::size_t kApart>
HWY_INLINE V pair_up(V left, V right) {
  return hn::Add(take_turns<kApart>(left, right),
                 exchange<kApart>(take_turns<kApart>(right, left)));
}
#endif

// `a` group by group as Group has it, times `factor`, a power of two.
inline void arrange(const float* a, std::size_t n, float factor, float* arranged) {
  const F32 d;
  const V scale = hn::Set(d, factor);
  for (std::size_t k = 0; k < n; k += kGroup) {
    V v0, v1, v2, v3;
    hn::LoadInterleaved4(d, a + k, v0, v1, v2, v3);
    hn::Store(hn::Mul(v0, scale), d, arranged + k);
    hn::Store(hn::Mul(v1, scale), d, arranged + k + kLanes);
    hn::Store(hn::Mul(v2, scale), d, arranged + k + 2 * kLanes);
    hn::Store(hn::Mul(v3, scale), d, arranged + k + 3 * kLanes);
  }
}

// What prepare() leaves: a cache line, then the activations in their arrangement.
struct alignas(64) Prepared {
  bool can_run = true;
  float factor = 1;        // of the activations
  int excess = 0;          // sums are 2^excess times too large, before their scale
  std::uint8_t least = 0;  // scale bytes that need no look
  std::uint8_t most = 0;

  [[nodiscard]] const float* arranged() const { return reinterpret_cast<const float*>(this + 1); }
};

// ------------------------------------------------------------ bf16

template <TilePlace kPlace>
class Bf16Rows {
 public:
  static constexpr std::size_t kElementBytes = 2;
  static constexpr bool kFetchesAhead = kPlace == TilePlace::Hbm;

  explicit Bf16Rows(const Prepared& /*prepared*/) {}
  static Prepared prepare(const float* /*a*/, std::size_t /*n*/) { return {}; }

  void begin_rows() {}
  // A NaN or infinity among the weights or activations shows in the root.
  static HWY_INLINE bool rows_are_right(V roots) { return hn::AllFalse(F32(), hn::IsNaN(roots)); }
  static constexpr bool rest_is_harmless(V /*roots*/, const StreamedRows& /*rows*/,
                                         std::size_t /*n*/) {
    return false;
  }

  HWY_INLINE V block_sums(const Group& a, const std::uint8_t* elements) {
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
  HWY_INLINE V scaled(V sums, const std::uint8_t* /*first*/, const std::uint8_t* /*second*/) {
    return sums;
  }
  static constexpr std::size_t scale_bytes(std::size_t /*k*/) { return 0; }
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

// Elements of four codes a lane: their bits moved into place, 2^-120 times too small.
class MovedBits {
 public:
  static constexpr int kTooSmall = 120;  // the exponent field is that of f32 with another bias

  void begin_rows() { nearest_nan_ = hn::Set(U8(), 0xFF); }
  // A NaN is a finite number here, and has to be looked for.
  HWY_INLINE bool saw_nan(V /*roots*/) {
    return !hn::AllFalse(U8(), hn::Eq(nearest_nan_, hn::Zero(U8())));
  }

  HWY_INLINE V block_sums(const Group& a, const std::uint8_t* elements) {
    const V8 codes = hn::LoadU(U8(), elements);
    const V8 all_ones = hn::Set(U8(), 0x7F);
    nearest_nan_ = hn::Min(nearest_nan_, hn::And(hn::Xor(codes, all_ones), all_ones));
    const V32 lanes = hn::BitCast(U32(), codes);
    V sum = hn::MulAdd(a.at[0], element<24>(lanes), hn::Zero(F32()));
    sum = hn::MulAdd(a.at[1], element<16>(lanes), sum);
    sum = hn::MulAdd(a.at[2], element<8>(lanes), sum);
    return hn::MulAdd(a.at[3], element<0>(lanes), sum);
  }

 private:
  // The element kLeft bits below the top of each lane: its sign to the sign, the rest to the lower
  // half of the exponent field and the top of the mantissa.
  template <int kLeft>
  static HWY_INLINE V element(V32 lanes) {
    const auto top = hn::BitCast(I32(), hn::ShiftLeft<kLeft>(lanes));
    const auto bits = hn::BitCast(U32(), hn::ShiftRight<4>(top));
    return hn::BitCast(F32(), hn::And(bits, hn::Set(U32(), 0x87F00000U)));
  }

  V8 nearest_nan_;  // 0 where a code was that of NaN
};

#if HWY_TARGET == HWY_AVX3_DL
// The two bytes of a bf16 by the magnitude of its code, and the places of codes that leave those of
// a block's first two elements, then of its last two, side by side.
struct E4m3Tables {
  alignas(64) std::uint8_t lower[128];
  alignas(64) std::uint8_t upper[128];
  alignas(64) std::uint8_t places[64];
};

constexpr E4m3Tables kE4m3Tables = [] {
  E4m3Tables tables{};
  for (unsigned code = 0; code < 128; ++code) {
    // Eighths of 2^-6 below the first power of two, as all binades have eighths of theirs.
    const unsigned exponent = code >> 3, mantissa = code & 7;
    unsigned bf16 = (exponent + 120) << 7 | mantissa << 4;
    if (exponent == 0) {
      const auto top = static_cast<unsigned>(std::bit_width(mantissa));
      bf16 = mantissa == 0 ? 0 : (top + 117) << 7 | (mantissa << (8 - top) & 0x7F);
    }
    if (code == 0x7F) bf16 = 0x7FC0;
    tables.lower[code] = static_cast<std::uint8_t>(bf16);
    tables.upper[code] = static_cast<std::uint8_t>(bf16 >> 8);
  }
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned half = i % 16 / 8, block = i % 8 / 2;
    tables.places[i] = static_cast<std::uint8_t>(4 * block + 2 * half + i % 2);
  }
  return tables;
}();

// The same by tables of bytes. A NaN shows in the root.
class TableBytes {
 public:
  static constexpr int kTooSmall = 0;

  HWY_INLINE TableBytes()
      : lower_{hn::Load(U8(), kE4m3Tables.lower), hn::Load(U8(), kE4m3Tables.lower + 64)},
        upper_{hn::Load(U8(), kE4m3Tables.upper), hn::Load(U8(), kE4m3Tables.upper + 64)},
        places_(hn::Load(U8(), kE4m3Tables.places)) {}

  void begin_rows() {}
  HWY_INLINE bool saw_nan(V roots) { return !hn::AllFalse(F32(), hn::IsNaN(roots)); }

  HWY_INLINE V block_sums(const Group& a, const std::uint8_t* elements) {
    const U32 d;
    const F32 f;
    const V8 codes = hn::TableLookupBytes(hn::LoadU(U8(), elements), places_);
    const V8 lower{_mm512_permutex2var_epi8(lower_[0].raw, codes.raw, lower_[1].raw)};
    const V8 magnitude{_mm512_permutex2var_epi8(upper_[0].raw, codes.raw, upper_[1].raw)};
    const V8 upper = hn::OrAnd(magnitude, codes, hn::Set(U8(), 0x80));
    const V32 first = hn::BitCast(d, hn::InterleaveLower(U8(), lower, upper));
    const V32 last = hn::BitCast(d, hn::InterleaveUpper(U8(), lower, upper));
    const V32 upper_half = hn::Set(d, 0xFFFF0000U);
    V sum = hn::MulAdd(a.at[0], hn::BitCast(f, hn::ShiftLeft<16>(first)), hn::Zero(f));
    sum = hn::MulAdd(a.at[1], hn::BitCast(f, hn::And(first, upper_half)), sum);
    sum = hn::MulAdd(a.at[2], hn::BitCast(f, hn::ShiftLeft<16>(last)), sum);
    return hn::MulAdd(a.at[3], hn::BitCast(f, hn::And(last, upper_half)), sum);
  }

 private:
  V8 lower_[2];
  V8 upper_[2];
  V8 places_;
};
using E4m3Codes = TableBytes;
#else
using E4m3Codes = MovedBits;
#endif

// kScales scale bytes cover a group.
template <std::size_t kScales>
class E4m3Rows {
 public:
  static constexpr std::size_t kElementBytes = 1;
  static constexpr bool kFetchesAhead = true;
  static constexpr std::size_t kScaleBlock = kGroup / kScales;

  static Prepared prepare(const float* a, std::size_t n) {
    // E4M3: magnitudes below 2^9, the last bit of the smallest is 2^-9.
    constexpr int kMost = 9;
    constexpr int kLast = -9;
    constexpr int kLeastExponent = -126;  // of a normal f32
    constexpr int kMostExponent = 127;
    constexpr int kExactScales = 117;  // bf16 holds every element times 2^±117
    const ActivationRange range = activation_range(a, n);
    const int last = range.least - range.mantissa_bits + kLast;  // of any product
    const int shift = std::min(E4m3Codes::kTooSmall, kMostExponent - 1 - range.most);
    const int excess = shift - E4m3Codes::kTooSmall;
    const int sum_bits = kMost + 1 + 3;  // the activation's mantissa, eight of them
    const int least = std::max(-kExactScales, kLeastExponent - last);
    const int most =
        std::min({kExactScales, kMostExponent - sum_bits - range.most, kMostExponent + excess});
    Prepared prepared;
    prepared.can_run = range.finite && last + excess >= kLeastExponent && shift > -126 &&
                       range.most + sum_bits + excess <= kMostExponent && least <= most;
    prepared.factor =
        std::bit_cast<float>(static_cast<std::uint32_t>(std::max(shift, -126) + 127) << 23);
    prepared.excess = excess;
    prepared.least = static_cast<std::uint8_t>(least + kScaleBias);
    prepared.most = static_cast<std::uint8_t>(most + kScaleBias);
    return prepared;
  }

  explicit E4m3Rows(const Prepared& prepared) : prepared_(prepared) { begin_rows(); }

  void begin_rows() {
    codes_.begin_rows();
    least_scale_ = hn::Set(U32(), 0x7F800000U);
    most_scale_ = hn::Zero(U32());
  }

  HWY_INLINE bool rows_are_right(V roots) {
    const I32 d;
    if (codes_.saw_nan(roots)) return false;
    const auto least = hn::Set(d, std::int32_t{prepared_.least} << 23);
    const auto most = hn::Set(d, std::int32_t{prepared_.most} << 23);
    const auto below = hn::Gt(least, hn::BitCast(d, least_scale_));
    const auto above = hn::Gt(hn::BitCast(d, most_scale_), most);
    return hn::AllFalse(d, hn::Or(below, above));
  }

  // A block of zeros has scale 0 (semantics 5.2), whatever the bounds; its sum is 0 here as well.
  [[nodiscard]] bool rest_is_harmless(V roots, const StreamedRows& rows, std::size_t n) {
    if (codes_.saw_nan(roots)) return false;
    for (std::size_t r = 0; r < kLanes; ++r) {
      for (std::size_t block = 0; block < n / kScaleBlock; ++block) {
        const std::uint8_t scale = rows.scales[r * rows.scale_pitch + block];
        if (scale >= prepared_.least && scale <= prepared_.most) continue;
        const std::uint8_t* codes = rows.elements + r * rows.element_pitch + block * kScaleBlock;
        const auto zero = [](std::uint8_t code) { return (code & 0x7F) == 0; };
        if (scale != 0 || !std::all_of(codes, codes + kScaleBlock, zero)) return false;
      }
    }
    return true;
  }

  HWY_INLINE V block_sums(const Group& a, const std::uint8_t* elements) {
    return codes_.block_sums(a, elements);
  }

  // Sums of two blocks each of two rows, times the scales from `first` and `second` on.
  HWY_INLINE V scaled(V sums, const std::uint8_t* first, const std::uint8_t* second) {
    const U32 d;
    V32 exponents = load_scales(first, second);
    least_scale_ = hn::Min(least_scale_, exponents);
    most_scale_ = hn::Max(most_scale_, exponents);
    if constexpr (E4m3Codes::kTooSmall != 0) {
      const auto excess = static_cast<std::uint32_t>(-prepared_.excess) << 23;
      exponents = hn::Add(exponents, hn::Set(d, excess));
    }
    return hn::Mul(sums, hn::BitCast(F32(), exponents));
  }
  static constexpr std::size_t scale_bytes(std::size_t k) { return k / kScaleBlock; }

 private:
  static constexpr int kScaleBias = 127;
  static_assert(kScaleBlock >= 2 * kBlock);

  // Each lane's scale as the exponent field of an f32, of the row that pair_up<1>() put there.
  static HWY_INLINE V32 load_scales(const std::uint8_t* first, const std::uint8_t* second) {
    struct Places {
      alignas(64) std::uint8_t bytes[kGroup];
    };
    static constexpr Places kPlaces = [] {
      Places places{};
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        for (std::size_t i = 0; i < 3; ++i) places.bytes[4 * lane + i] = 0x80;
        const std::size_t row = kRowsTakeTurns ? lane % 2 : lane / (kLanes / 2);
        const std::size_t pair = kRowsTakeTurns ? lane / 2 : lane % (kLanes / 2);
        places.bytes[4 * lane + 3] =
            static_cast<std::uint8_t>(8 * row + pair * 2 * kBlock / kScaleBlock);
      }
      return places;
    }();
    const V8 upper = hn::TableLookupBytes(both(first, second), hn::Load(U8(), kPlaces.bytes));
    return hn::ShiftRight<1>(hn::BitCast(U32(), upper));
  }
  // The first row's bytes in the lower half of every 16 bytes, the second one's in the upper half.
  static HWY_INLINE V8 both(const std::uint8_t* first, const std::uint8_t* second) {
    if (kScales == 8 && second == first + 8) return hn::LoadDup128(U8(), first);
    std::uint64_t bytes[2] = {0, 0};
    std::memcpy(&bytes[0], first, kScales);
    std::memcpy(&bytes[1], second, kScales);
    const hn::Repartition<std::uint64_t, F32> d64;
    return hn::BitCast(U8(), hn::OddEven(hn::Set(d64, bytes[1]), hn::Set(d64, bytes[0])));
  }

  const Prepared& prepared_;
  E4m3Codes codes_;
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
    if constexpr (Rows::kFetchesAhead) {
      for (std::size_t line = 0; line < kGroup * Rows::kElementBytes; line += 64)
        __builtin_prefetch(elements + ahead + line);
    }
    return rows.block_sums(a, elements);
  } else {
    const V left = group_sums<kRows / 2>(rows, a, from, row, k, ahead);
    const V sums =
        pair_up<kRows / 2>(left, group_sums<kRows / 2>(rows, a, from, row + kRows / 2, k, ahead));
    if constexpr (kRows > 2) return sums;
    const std::uint8_t* scales = from.scales + row * from.scale_pitch + Rows::scale_bytes(k);
    return rows.scaled(sums, scales, scales + from.scale_pitch);
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
void prepare(const float* a, std::size_t n, void* prepared) {
  auto* to = static_cast<Prepared*>(prepared);
  *to = Rows::prepare(a, n);
  if (to->can_run) arrange(a, n, to->factor, reinterpret_cast<float*>(to + 1));
}

template <class Rows>
std::size_t product(const void* prepared, std::size_t n, const StreamedRows& weights,
                    std::size_t count, float* out) {
  const F32 d;
  const auto& activations = *static_cast<const Prepared*>(prepared);
  if (!activations.can_run) return 0;
  Rows rows(activations);
  // Tiles that follow each other in memory are fetched in time; others find their own way.
  const bool contiguous = weights.element_pitch == n * Rows::kElementBytes;
  const std::size_t ahead = contiguous ? kTilesAhead * count * weights.element_pitch : 0;
  const std::size_t scales_ahead = contiguous ? kTilesAhead * count * weights.scale_pitch : 0;
  StreamedRows from = weights;
  std::size_t done = 0;
  for (; done + kLanes <= count; done += kLanes) {
    for (std::size_t line = 0; line < kLanes * weights.scale_pitch; line += 64)
      __builtin_prefetch(from.scales + scales_ahead + line);
    rows.begin_rows();
    const V roots = roots_of_rows(rows, activations.arranged(), n, from, ahead);
    if (HWY_UNLIKELY(!rows.rows_are_right(roots)) && !rows.rest_is_harmless(roots, from, n)) break;
    hn::StoreU(hn::Add(hn::LoadU(d, out + done), roots), d, out + done);
    from.elements += kLanes * from.element_pitch;
    from.scales += kLanes * from.scale_pitch;
  }
  return done;
}

template <class Rows>
constexpr StreamedProduct kProduct{prepare<Rows>, product<Rows>};

template <std::size_t kScales = kGroup / (2 * kBlock)>
StreamedProduct for_e4m3(std::uint32_t block) {
  if (kGroup / block == kScales) return kProduct<E4m3Rows<kScales>>;
  if constexpr (kScales > 1) return for_e4m3<kScales / 2>(block);
  return {};
}

StreamedProduct choose(DataType type, std::size_t n, std::size_t blen, TilePlace place) {
  if (blen != kBlock || n == 0 || n % kGroup != 0) return {};
  if (type == DataType::plain(kBf16)) {
    return place == TilePlace::Hbm ? kProduct<Bf16Rows<TilePlace::Hbm>>
                                   : kProduct<Bf16Rows<TilePlace::Sram>>;
  }
  if (!type.is_mx()) return {};
  const bool whole_scales = type.block >= 2 * kBlock && kGroup % type.block == 0;
  return type.element == kE4M3 && whole_scales ? for_e4m3(type.block) : StreamedProduct{};
}

}  // namespace streamed
#endif  // PLENA_HWY_HAS_FMA
}  // namespace plena::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plena {

StreamedProduct streamed_product(DataType type, ElementType sram, std::size_t n, std::size_t blen,
                                 SimdTarget target, TilePlace place) {
  if (sram != kBf16 && sram != kFp32) return {};
  switch (target) {
#if HWY_TARGETS & HWY_AVX2
    case SimdTarget::Avx2:
      return N_AVX2::streamed::choose(type, n, blen, place);
#endif
#if HWY_TARGETS & HWY_AVX3
    case SimdTarget::Avx512:
      return N_AVX3::streamed::choose(type, n, blen, place);
#endif
#if HWY_TARGETS & HWY_AVX3_DL
    case SimdTarget::Avx512Vbmi:
    case SimdTarget::Amx:
      return N_AVX3_DL::streamed::choose(type, n, blen, place);
#endif
    default:
      return {};
  }
}

}  // namespace plena
#endif  // HWY_ONCE
