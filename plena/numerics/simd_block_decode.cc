// MX blocks of E4M3 to bf16 and fp32 in SIMD, where no rounding happens on the way; whatever else
// turns up is left to HbmCodec, group by group.
#include <cstring>

#include "plena/numerics/float_format.h"
#include "plena/numerics/highway_targets.h"
#include "plena/numerics/simd_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plena/numerics/simd_block_decode.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#if PLENA_HWY_HAS_FMA
#include "plena/numerics/simd_constants-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace plena::HWY_NAMESPACE {
#if PLENA_HWY_HAS_FMA
namespace hn = hwy::HWY_NAMESPACE;

using U8 = Bytes;
using I8 = hn::RebindToSigned<U8>;
using U16 = Words;
using I16 = hn::RebindToSigned<U16>;
using U32 = Doublewords;

constexpr std::size_t kCodes = hn::MaxLanes(U8());  // element codes of one vector
constexpr std::size_t kHalf = kCodes / 2;           // bf16 of one vector
constexpr std::size_t kGroup = 8;                   // bf16 of one 128-bit block
constexpr std::size_t kGroups = kCodes / kGroup;

// 64-bit groups of codes in an order that interleaving bytes within 128-bit blocks turns into the
// order of the row: the first half of the groups in the lower halves of the blocks.
HWY_INLINE V8 spread_groups(V8 codes) {
  HWY_ALIGN std::int32_t order[hn::MaxLanes(U32())];
  for (std::size_t group = 0; group < kGroups; ++group) {
    const std::size_t from = group / 2 + (group % 2) * (kGroups / 2);
    order[2 * group] = static_cast<std::int32_t>(2 * from);
    order[2 * group + 1] = static_cast<std::int32_t>(2 * from + 1);
  }
  const auto indices = hn::SetTableIndices(U32(), static_cast<const std::int32_t*>(order));
  return hn::BitCast(U8(), hn::TableLookupLanes(hn::BitCast(U32(), codes), indices));
}

// Unscaled bf16 bits of E4M3 codes, `lower` the first half of the row.
struct Bf16Bits {
  V16 lower;
  V16 upper;
};

// A byte lookup sees only the low nibble of its index. The low nibble of a code becomes the top of
// the bf16's low byte, the high nibble its sign and exponent. Magnitudes below 16 (zero, subnormals
// and the first eight normals) have tables of their own; their high nibble gives the sign alone.
HWY_INLINE Bf16Bits e4m3_to_bf16(V8 codes, V8 magnitude, V8 magnitude_mask) {
  static constexpr std::uint8_t kLow[16] = {0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70,
                                            0x80, 0x90, 0xA0, 0xB0, 0xC0, 0xD0, 0xE0, 0xF0};
  static constexpr std::uint8_t kHigh[16] = {0x00, 0x3D, 0x3E, 0x3F, 0x40, 0x41, 0x42, 0x43,
                                             0x80, 0xBD, 0xBE, 0xBF, 0xC0, 0xC1, 0xC2, 0xC3};
  // m * 2^-9 for m = 0 … 7 (0, 3B00, 3B80, 3BC0, 3C00, 3C20, 3C40, 3C60), then 3C80 … 3CF0.
  static constexpr std::uint8_t kSmallLow[16] = {0x00, 0x00, 0x80, 0xC0, 0x00, 0x20, 0x40, 0x60,
                                                 0x80, 0x90, 0xA0, 0xB0, 0xC0, 0xD0, 0xE0, 0xF0};
  static constexpr std::uint8_t kSmallHigh[16] = {0x00, 0x3B, 0x3B, 0x3B, 0x3C, 0x3C, 0x3C, 0x3C,
                                                  0x3C, 0x3C, 0x3C, 0x3C, 0x3C, 0x3C, 0x3C, 0x3C};
  const U8 d;
  const auto high_nibble =
      hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(U16(), codes))), magnitude_mask);
  const auto small = hn::Lt(hn::BitCast(I8(), magnitude), hn::BitCast(I8(), all_u8<16>()));
  const auto is_small = hn::RebindMask(d, small);
  const auto low = hn::IfThenElse(is_small, hn::TableLookupBytes(table(kSmallLow), magnitude),
                                  hn::TableLookupBytes(table(kLow), magnitude));
  const auto small_high = hn::TableLookupBytes(table(kSmallHigh), magnitude);
  const auto high = hn::Or(hn::TableLookupBytes(table(kHigh), high_nibble),
                           hn::IfThenElseZero(is_small, small_high));
  return {hn::BitCast(U16(), hn::InterleaveLower(d, low, high)),
          hn::BitCast(U16(), hn::InterleaveUpper(d, low, high))};
}

// For each bf16 of half a vector of codes, the place of its scale byte among the kScales bytes of
// the vector, for a lookup that moves it to the upper byte and clears the lower one.
template <std::size_t kScales>
struct ScalePlaces {
  struct Half {
    alignas(64) std::uint8_t bytes[kCodes];
  };
  static constexpr Half half(std::size_t first_group) {
    Half places{};
    for (std::size_t i = 0; i < kHalf; ++i) {
      const std::size_t group = first_group + i / kGroup;
      places.bytes[2 * i] = 0x80;
      places.bytes[2 * i + 1] = static_cast<std::uint8_t>(group * kScales / kGroups);
    }
    return places;
  }
  static constexpr Half kLower = half(0);
  static constexpr Half kUpper = half(kGroups / 2);
};

// Multiplies by 2^(scale - 127): adds to the exponent field of everything but zeros, whose double
// is 0 whatever their sign.
HWY_INLINE V16 apply_scale(V16 bits, V8 exponents, V8 places) {
  const auto upper = hn::BitCast(I16(), hn::TableLookupBytes(exponents, places));
  const auto exponent = hn::BitCast(U16(), hn::ShiftRight<1>(upper));
  const auto zero = hn::Eq(hn::Add(bits, bits), hn::Zero(U16()));
  return hn::Add(bits, hn::IfThenZeroElse(zero, exponent));
}

struct StoreBf16 {
  using Element = std::uint16_t;
  static HWY_INLINE void store(V16 bits, Element* out) { hn::StoreU(bits, U16(), out); }
};
struct StoreF32 {
  using Element = std::uint32_t;
  static HWY_INLINE void store(V16 bits, Element* out) {
    const hn::Half<U16> half;
    const auto lower = hn::PromoteTo(U32(), hn::LowerHalf(half, bits));
    const auto upper = hn::PromoteTo(U32(), hn::UpperHalf(half, bits));
    hn::StoreU(hn::ShiftLeft<16>(lower), U32(), out);
    hn::StoreU(hn::ShiftLeft<16>(upper), U32(), out + hn::MaxLanes(U32()));
  }
};

// Scales from 2^-117 to 2^117 keep every finite E4M3 within the normal numbers of bf16. Are all
// eight bytes within 10 … 244? (Bytes of x below n have their top bit set in (x - n) & ~x.)
HWY_INLINE bool scales_are_safe(std::uint64_t bytes) {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  constexpr std::uint64_t kLeast = 10;
  constexpr std::uint64_t kMost = 244;
  const std::uint64_t below = (bytes - kEach * kLeast) & ~bytes;
  const std::uint64_t above = (~bytes - kEach * (255 - kMost)) & bytes;
  return ((below | above) & (kEach * 0x80)) == 0;
}

// A block of zeros may have any scale but NaN, as 0 stays 0; padding and memory never written have
// scale byte 0 (semantics 5.2). Are all scales that are not safe of that kind?
template <std::size_t kScales>
bool others_scale_zeros(std::uint64_t scale_bytes, const std::uint8_t* elements) {
  constexpr std::size_t kEach = kCodes / kScales;  // codes under one scale
  constexpr std::uint64_t kMagnitudes = 0x7F7F7F7F7F7F7F7F;
  for (std::size_t scale = 0; scale < kScales; ++scale, scale_bytes >>= 8) {
    const auto byte = static_cast<std::uint8_t>(scale_bytes);
    if (scales_are_safe(byte * 0x0101010101010101U)) continue;
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < kEach; i += sizeof any) {
      std::uint64_t codes = 0;
      std::memcpy(&codes, elements + scale * kEach + i, sizeof codes);
      any |= codes;
    }
    if (byte == 0xFF || (any & kMagnitudes) != 0) return false;
  }
  return true;
}

// kScales scale bytes cover the codes of one vector; 2^block_bits elements have one.
template <class Store, std::size_t kScales>
HWY_INLINE std::size_t decode_e4m3_vectors(const std::uint8_t* elements, const std::uint8_t* scales,
                                           unsigned block_bits, std::size_t n, void* out) {
  const U8 d;
  auto* to = static_cast<typename Store::Element*>(out);
  const V8 magnitude_mask = all_u8<0x7F>();  // also the code of NaN, and the bias of scales
  const V8 lower_places = hn::Load(d, ScalePlaces<kScales>::kLower.bytes);
  const V8 upper_places = hn::Load(d, ScalePlaces<kScales>::kUpper.bytes);
  std::size_t i = 0;
  for (; i + kCodes <= n; i += kCodes) {
    std::uint64_t scale_bytes = 0x7F7F7F7F7F7F7F7F;  // what is not loaded is 2^0, which is safe
    std::memcpy(&scale_bytes, scales + (i >> block_bits), kScales);
    const V8 codes = hn::LoadU(d, elements + i);
    const V8 magnitude = hn::And(codes, magnitude_mask);
    const bool has_nan = !hn::AllFalse(d, hn::Eq(magnitude, magnitude_mask));
    if (HWY_UNLIKELY(has_nan)) break;
    if (HWY_UNLIKELY(!scales_are_safe(scale_bytes)) &&
        !others_scale_zeros<kScales>(scale_bytes, elements + i)) {
      break;
    }
    const hn::Repartition<std::uint64_t, U8> d64;
    const V8 exponents = hn::Sub(hn::BitCast(d, hn::Set(d64, scale_bytes)), magnitude_mask);
    const V8 spread = spread_groups(codes);
    const Bf16Bits bits = e4m3_to_bf16(spread, hn::And(spread, magnitude_mask), magnitude_mask);
    Store::store(apply_scale(bits.lower, exponents, lower_places), to + i);
    Store::store(apply_scale(bits.upper, exponents, upper_places), to + i + kHalf);
  }
  return i;
}

template <class Store>
std::size_t decode_e4m3(const std::uint8_t* elements, const std::uint8_t* scales,
                        std::uint32_t block, std::size_t n, void* out) {
  const auto bits = static_cast<unsigned>(__builtin_ctz(block));
  switch (block >= kCodes ? 1 : kCodes >> bits) {
    case 1:
      return decode_e4m3_vectors<Store, 1>(elements, scales, bits, n, out);
    case 2:
      return decode_e4m3_vectors<Store, 2>(elements, scales, bits, n, out);
    case 4:
      return decode_e4m3_vectors<Store, 4>(elements, scales, bits, n, out);
    default:
      return decode_e4m3_vectors<Store, kGroups>(elements, scales, bits, n, out);
  }
}

BlockDecoder decoder(ElementType sram) {
  return sram == kBf16 ? decode_e4m3<StoreBf16> : decode_e4m3<StoreF32>;
}
#endif  // PLENA_HWY_HAS_FMA
}  // namespace plena::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plena {

bool has_block_kernels(DataType hbm, ElementType sram) {
  const bool power_of_two = (hbm.block & (hbm.block - 1)) == 0;
  return hbm.block >= 8 && power_of_two && (sram == kBf16 || sram == kFp32);
}

BlockDecoder simd_block_decoder(SimdTarget target, DataType hbm, ElementType sram) {
  if (!has_block_kernels(hbm, sram) || hbm.element != kE4M3) return nullptr;
  switch (target) {
#if HWY_TARGETS & HWY_AVX2
    case SimdTarget::Avx2:
      return N_AVX2::decoder(sram);
#endif
#if HWY_TARGETS & HWY_AVX3
    case SimdTarget::Avx512:
      return N_AVX3::decoder(sram);
#endif
    default:
      return nullptr;
  }
}

}  // namespace plena
#endif  // HWY_ONCE
