// MX blocks of the named elements to bf16 and fp32 in SIMD (semantics 5.3), where no rounding
// happens on the way; whatever else turns up is left to HbmCodec, group by group.
//
// Codes become 16-bit lanes with the sign at the top, and these become bf16, which holds every
// element exactly. A block's scale is added to the exponent field.
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

namespace decoding {

using I8 = hn::RebindToSigned<Bytes>;
using I16 = hn::RebindToSigned<Words>;
using I32 = hn::RebindToSigned<Doublewords>;
using F32 = hn::Repartition<float, Bytes>;

constexpr std::size_t kCodes = hn::MaxLanes(Bytes());  // of one turn: two vectors of bf16
constexpr std::size_t kHalf = kCodes / 2;
constexpr std::size_t kGroup = 8;  // bf16 of one 128-bit block
constexpr std::size_t kGroups = kCodes / kGroup;

// ------------------------------------------------------------ codes
//
// kHalf codes as 16-bit lanes, each at the top of its lane; what lies below a code is anything.

HWY_INLINE V16 load_codes_of_8(const std::uint8_t* elements) {
  const hn::Half<Bytes> half;
  return hn::ShiftLeft<8>(hn::PromoteTo(Words(), hn::LoadU(half, elements)));
}

HWY_INLINE V16 load_codes_of_4(const std::uint8_t* elements) {
  const hn::Rebind<std::uint8_t, Doublewords> quarter;
  const VU32 pairs = hn::PromoteTo(Doublewords(), hn::LoadU(quarter, elements));
  return hn::OddEven(hn::BitCast(Words(), hn::ShiftLeft<24>(pairs)),
                     hn::BitCast(Words(), hn::ShiftLeft<12>(pairs)));
}

// Eight codes take six bytes. With four 128-bit blocks the lower two find theirs within 16 bytes
// from the start, the upper two within 16 bytes up to the end; with two, within 8 bytes from the
// start and 8 up to the end.
HWY_INLINE V8 load_blocks_of_6(const std::uint8_t* elements) {
  if constexpr (kGroups == 8) {
    return hn::ConcatLowerLower(Bytes(), hn::LoadDup128(Bytes(), elements + 8),
                                hn::LoadDup128(Bytes(), elements));
  } else {
    const hn::Repartition<std::uint64_t, Bytes> d64;
    std::uint64_t lower = 0, upper = 0;
    std::memcpy(&lower, elements, sizeof lower);
    std::memcpy(&upper, elements + 4, sizeof upper);
    return hn::BitCast(Bytes(), hn::InterleaveLower(hn::Set(d64, lower), hn::Set(d64, upper)));
  }
}

// For each lane the two bytes its code lies in.
struct PlacesOf6 {
  alignas(64) std::uint8_t bytes[kCodes];
};
constexpr PlacesOf6 kPlacesOf6 = [] {
  PlacesOf6 places{};
  for (std::size_t i = 0; i < kHalf; ++i) {
    std::size_t first = i * 6 / 8 - (i % 4 == 3 ? 1 : 0);
    if (kGroups == 8 && i >= 16) first -= 8;  // bytes that the upper half was loaded without
    if (kGroups != 8 && i >= 8) first += 4;   // 4 … 7 are there twice
    places.bytes[2 * i] = static_cast<std::uint8_t>(first);
    places.bytes[2 * i + 1] = static_cast<std::uint8_t>(first + 1);
  }
  return places;
}();

HWY_INLINE V16 load_codes_of_6(const std::uint8_t* elements) {
  // Codes of six bits begin at bit 0, 6, 4 and 10 of their two bytes; a product moves them up.
  static constexpr std::uint16_t kUp[8] = {1 << 10, 1 << 4, 1 << 6, 1, 1 << 10, 1 << 4, 1 << 6, 1};
  const V8 pairs =
      hn::TableLookupBytes(load_blocks_of_6(elements), hn::Load(Bytes(), kPlacesOf6.bytes));
  return hn::Mul(hn::BitCast(Words(), pairs), hn::LoadDup128(Words(), kUp));
}

template <int kWidth>
HWY_INLINE V16 load_codes(const std::uint8_t* elements) {
  if constexpr (kWidth == 8) return load_codes_of_8(elements);
  if constexpr (kWidth == 6) return load_codes_of_6(elements);
  if constexpr (kWidth == 4) return load_codes_of_4(elements);
}

// ------------------------------------------------------------ elements
//
// kLeastScale … kMostScale are the scale bytes that keep every element a normal bf16.
// decode(): kCodes elements to bf16, multiplied by 2^(exponents / 128).

// Half a vector of codes each, in 16-bit lanes.
struct Halves {
  V16 lower;
  V16 upper;
};

// What an element type's decode_half() does, done to both halves.
template <class Element>
HWY_INLINE Halves decode_halves(const std::uint8_t* elements, Halves exponents) {
  constexpr std::size_t kHalfBytes = kHalf * Element::kWidth / 8;
  return {
      Element::decode_half(load_codes<Element::kWidth>(elements), exponents.lower),
      Element::decode_half(load_codes<Element::kWidth>(elements + kHalfBytes), exponents.upper)};
}

template <int kExponent, int kMantissa, int kEmax, std::uint8_t kLastFinite>
struct FpElement {
  static constexpr int kWidth = 1 + kExponent + kMantissa;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr std::uint8_t kLeastScale = kBias + kMantissa;
  static constexpr std::uint8_t kMostScale = 254 - kEmax;

  // bf16 of the subnormal elements.
  struct Subnormals {
    std::uint8_t bytes[16];
  };
  static constexpr Subnormals kSubnormals = [] {
    Subnormals table{};
    for (std::uint32_t i = 1; i < 1U << kMantissa; ++i) {
      const int top = 31 - __builtin_clz(i);
      const std::uint32_t exponent = static_cast<std::uint32_t>(127 + 1 - kBias - kMantissa + top);
      const std::uint32_t bits = exponent << 7 | (i << (7 - top) & 0x7F);
      table.bytes[2 * i] = static_cast<std::uint8_t>(bits);
      table.bytes[2 * i + 1] = static_cast<std::uint8_t>(bits >> 8);
    }
    return table;
  }();

  static HWY_INLINE Halves decode(const std::uint8_t* elements, Halves exponents) {
    return decode_halves<FpElement>(elements, exponents);
  }
  static HWY_INLINE V16 decode_half(V16 codes, V16 exponent) {
    const Words d;
    // Exponent and mantissa where bf16 has them.
    constexpr std::uint16_t kMagnitude = ((1 << (kExponent + kMantissa)) - 1) << (7 - kMantissa);
    const V16 magnitude = hn::And(hn::ShiftRight<8 - kExponent>(codes), all_u16<kMagnitude>());
    const V16 normal = hn::Add(magnitude, all_u16<(127 - kBias) << 7>());
    // The place of each byte in the table.
    const V16 twice = hn::ShiftRight<6 - kMantissa>(magnitude);
    const V16 places = hn::Or(hn::Or(twice, hn::ShiftLeft<8>(twice)), all_u16<0x0100>());
    const V16 subnormal = hn::BitCast(
        d, hn::TableLookupBytes(table(kSubnormals.bytes), hn::BitCast(Bytes(), places)));
    const auto is_subnormal =
        hn::Lt(hn::BitCast(I16(), magnitude), hn::BitCast(I16(), all_u16<0x80>()));
    const V16 bits = hn::IfThenElse(hn::RebindMask(d, is_subnormal), subnormal, normal);
    // 0 is 0 under every scale.
    const auto is_zero = hn::Eq(magnitude, hn::Zero(d));
    const V16 scaled = hn::IfThenZeroElse(is_zero, hn::Add(bits, exponent));
    return hn::Or(scaled, hn::And(codes, all_u16<0x8000>()));
  }

  // Whether kCodes elements hold an infinity or a NaN, which only elements of eight bits have.
  static HWY_INLINE bool any_special(const std::uint8_t* elements) {
    if constexpr (kLastFinite == 0x7F) return false;
    const V8 magnitude = hn::And(hn::LoadU(Bytes(), elements), all_u8<0x7F>());
    return !hn::AllFalse(
        I8(), hn::Gt(hn::BitCast(I8(), magnitude), hn::BitCast(I8(), all_u8<kLastFinite>())));
  }
};

template <int kElementWidth>
struct IntElement {
  static constexpr int kWidth = kElementWidth;
  // A code at the top of 32 bits is 2^30 times its value.
  static constexpr int kTop = 30;
  static constexpr std::uint8_t kLeastScale = kTop + 1;
  static constexpr std::uint8_t kMostScale = 253;

  static HWY_INLINE Halves decode(const std::uint8_t* elements, Halves exponents) {
    return decode_halves<IntElement>(elements, exponents);
  }
  static HWY_INLINE V16 decode_half(V16 codes, V16 exponent) {
    const Words d;
    const VU32 upper_half = all_u32<0xFFFF0000>();
    const VU32 clean = hn::And(hn::BitCast(Doublewords(), codes), all_u32<kClean>());
    // Two neighbours share their scale. Beyond the range it stays +0, for blocks of zeros.
    const auto bias = hn::BitCast(I16(), all_u16<(127 - kTop) << 7>());
    const auto field = hn::Max(hn::Add(hn::BitCast(I16(), exponent), bias), hn::Zero(I16()));
    const auto factor = hn::BitCast(F32(), hn::And(hn::BitCast(Doublewords(), field), upper_half));
    const VU32 even = scaled(hn::ShiftLeft<16>(clean), factor);
    const VU32 odd = scaled(hn::And(clean, upper_half), factor);
    return hn::BitCast(d, hn::Or(hn::ShiftRight<16>(even), hn::And(odd, upper_half)));
  }

  static HWY_INLINE bool any_special(const std::uint8_t* /*elements*/) { return false; }

 private:
  static constexpr std::uint32_t kClean = 0x10001U * (0xFFFF << (16 - kWidth) & 0xFFFF);

  static HWY_INLINE VU32 scaled(VU32 whole, hn::Vec<F32> factor) {
    const auto value = hn::ConvertTo(F32(), hn::BitCast(I32(), whole));
    return hn::BitCast(Doublewords(), hn::Mul(value, factor));
  }
};

// E4M3 has tables of its own, which take fewer steps.
struct E4m3Element : FpElement<4, 3, 8, 0x7E> {
  static HWY_INLINE Halves decode(const std::uint8_t* elements, Halves exponents) {
    const V8 codes = spread_groups(hn::LoadU(Bytes(), elements));
    const Halves bits = unscaled(codes, hn::And(codes, all_u8<0x7F>()));
    return {scaled(bits.lower, exponents.lower), scaled(bits.upper, exponents.upper)};
  }

 private:
  // 64-bit groups of codes in an order that interleaving bytes within 128-bit blocks turns into the
  // order of the row: the first half of the groups in the lower halves of the blocks.
  static HWY_INLINE V8 spread_groups(V8 codes) {
    HWY_ALIGN std::int32_t order[hn::MaxLanes(Doublewords())];
    for (std::size_t group = 0; group < kGroups; ++group) {
      const std::size_t from = group / 2 + (group % 2) * (kGroups / 2);
      order[2 * group] = static_cast<std::int32_t>(2 * from);
      order[2 * group + 1] = static_cast<std::int32_t>(2 * from + 1);
    }
    const Doublewords d;
    const auto indices = hn::SetTableIndices(d, static_cast<const std::int32_t*>(order));
    return hn::BitCast(Bytes(), hn::TableLookupLanes(hn::BitCast(d, codes), indices));
  }

  // A byte lookup sees only the low nibble of its index. The low nibble of a code becomes the top
  // of the bf16's low byte, the high nibble its sign and exponent. Magnitudes below 16 (zero,
  // subnormals and the first eight normals) have tables of their own; their high nibble gives the
  // sign alone.
  static HWY_INLINE Halves unscaled(V8 codes, V8 magnitude) {
    static constexpr std::uint8_t kLow[16] = {0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70,
                                              0x80, 0x90, 0xA0, 0xB0, 0xC0, 0xD0, 0xE0, 0xF0};
    static constexpr std::uint8_t kHigh[16] = {0x00, 0x3D, 0x3E, 0x3F, 0x40, 0x41, 0x42, 0x43,
                                               0x80, 0xBD, 0xBE, 0xBF, 0xC0, 0xC1, 0xC2, 0xC3};
    // m * 2^-9 for m = 0 … 7 (0, 3B00, 3B80, 3BC0, 3C00, 3C20, 3C40, 3C60), then 3C80 … 3CF0.
    static constexpr std::uint8_t kSmallLow[16] = {0x00, 0x00, 0x80, 0xC0, 0x00, 0x20, 0x40, 0x60,
                                                   0x80, 0x90, 0xA0, 0xB0, 0xC0, 0xD0, 0xE0, 0xF0};
    static constexpr std::uint8_t kSmallHigh[16] = {0x00, 0x3B, 0x3B, 0x3B, 0x3C, 0x3C, 0x3C, 0x3C,
                                                    0x3C, 0x3C, 0x3C, 0x3C, 0x3C, 0x3C, 0x3C, 0x3C};
    const Bytes d;
    const auto high_nibble =
        hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(Words(), codes))), all_u8<0x0F>());
    const auto small = hn::Lt(hn::BitCast(I8(), magnitude), hn::BitCast(I8(), all_u8<16>()));
    const auto is_small = hn::RebindMask(d, small);
    const auto low = hn::IfThenElse(is_small, hn::TableLookupBytes(table(kSmallLow), magnitude),
                                    hn::TableLookupBytes(table(kLow), magnitude));
    const auto small_high = hn::TableLookupBytes(table(kSmallHigh), magnitude);
    const auto high = hn::Or(hn::TableLookupBytes(table(kHigh), high_nibble),
                             hn::IfThenElseZero(is_small, small_high));
    return {hn::BitCast(Words(), hn::InterleaveLower(d, low, high)),
            hn::BitCast(Words(), hn::InterleaveUpper(d, low, high))};
  }

  // Adds to the exponent field of everything but zeros, whose double is 0 whatever their sign.
  static HWY_INLINE V16 scaled(V16 bits, V16 exponent) {
    const auto zero = hn::Eq(hn::Add(bits, bits), hn::Zero(Words()));
    return hn::Add(bits, hn::IfThenZeroElse(zero, exponent));
  }
};

// ------------------------------------------------------------ scales

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

// exponent of the scale, times 128, in the lanes of half a vector of codes.
HWY_INLINE V16 exponents_at(V8 exponents, V8 places) {
  const auto upper = hn::BitCast(I16(), hn::TableLookupBytes(exponents, places));
  return hn::BitCast(Words(), hn::ShiftRight<1>(upper));
}

// Are all eight bytes within kLeast … kMost? (Bytes of x below n have their top bit set in
// (x - n) & ~x.)
template <std::uint64_t kLeast, std::uint64_t kMost>
HWY_INLINE bool scales_are_safe(std::uint64_t bytes) {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  const std::uint64_t below = (bytes - kEach * kLeast) & ~bytes;
  const std::uint64_t above = (~bytes - kEach * (255 - kMost)) & bytes;
  return ((below | above) & (kEach * 0x80)) == 0;
}

// A block of zeros may have any scale but NaN, as 0 stays 0; padding and memory never written have
// scale byte 0 (semantics 5.2). Are all scales that are not safe of that kind?
template <class Element, std::size_t kScales>
bool others_scale_zeros(std::uint64_t scale_bytes, const std::uint8_t* elements) {
  constexpr std::size_t kEach = kCodes * Element::kWidth / 8 / kScales;  // bytes under one scale
  for (std::size_t scale = 0; scale < kScales; ++scale, scale_bytes >>= 8) {
    const auto byte = static_cast<std::uint8_t>(scale_bytes);
    if (byte >= Element::kLeastScale && byte <= Element::kMostScale) continue;
    std::uint8_t any = 0;
    for (std::size_t i = 0; i < kEach; ++i) any |= elements[scale * kEach + i];
    if (byte == 0xFF || any != 0) return false;
  }
  return true;
}

// ------------------------------------------------------------ blocks

struct StoreBf16 {
  using Element = std::uint16_t;
  static HWY_INLINE void store(V16 bits, Element* out) { hn::StoreU(bits, Words(), out); }
};
struct StoreF32 {
  using Element = std::uint32_t;
  static HWY_INLINE void store(V16 bits, Element* out) {
    const hn::Half<Words> half;
    const auto lower = hn::PromoteTo(Doublewords(), hn::LowerHalf(half, bits));
    const auto upper = hn::PromoteTo(Doublewords(), hn::UpperHalf(half, bits));
    hn::StoreU(hn::ShiftLeft<16>(lower), Doublewords(), out);
    hn::StoreU(hn::ShiftLeft<16>(upper), Doublewords(), out + hn::MaxLanes(Doublewords()));
  }
};

// kScales scale bytes cover kCodes codes; 2^block_bits elements have one.
template <class Element, class Store, std::size_t kScales>
std::size_t decode_vectors(const std::uint8_t* elements, const std::uint8_t* scales,
                           unsigned block_bits, std::size_t n, void* out) {
  constexpr std::size_t kTurn = kCodes * Element::kWidth / 8;  // bytes
  const Bytes d;
  const hn::Repartition<std::uint64_t, Bytes> d64;
  auto* to = static_cast<typename Store::Element*>(out);
  const V8 lower_places = hn::Load(d, ScalePlaces<kScales>::kLower.bytes);
  const V8 upper_places = hn::Load(d, ScalePlaces<kScales>::kUpper.bytes);
  std::size_t i = 0;
  for (; i + kCodes <= n; i += kCodes, elements += kTurn) {
    std::uint64_t scale_bytes = 0x7F7F7F7F7F7F7F7F;  // what is not loaded is 2^0, which is safe
    std::memcpy(&scale_bytes, scales + (i >> block_bits), kScales);
    if (HWY_UNLIKELY(Element::any_special(elements))) break;
    if (HWY_UNLIKELY((!scales_are_safe<Element::kLeastScale, Element::kMostScale>(scale_bytes))) &&
        !others_scale_zeros<Element, kScales>(scale_bytes, elements)) {
      break;
    }
    const V8 exponents = hn::Sub(hn::BitCast(d, hn::Set(d64, scale_bytes)), all_u8<127>());
    const Halves values = Element::decode(
        elements, {exponents_at(exponents, lower_places), exponents_at(exponents, upper_places)});
    Store::store(values.lower, to + i);
    Store::store(values.upper, to + i + kHalf);
  }
  return i;
}

// Whole vectors of blocks of any size.
template <class Element, class Store>
std::size_t decode_whole(const std::uint8_t* elements, const std::uint8_t* scales,
                         std::uint32_t block, std::size_t n, void* out) {
  const auto bits = static_cast<unsigned>(__builtin_ctz(block));
  switch (block >= kCodes ? 1 : kCodes >> bits) {
    case 1:
      return decode_vectors<Element, Store, 1>(elements, scales, bits, n, out);
    case 2:
      return decode_vectors<Element, Store, 2>(elements, scales, bits, n, out);
    case 4:
      return decode_vectors<Element, Store, 4>(elements, scales, bits, n, out);
    default:
      return decode_vectors<Element, Store, kGroups>(elements, scales, bits, n, out);
  }
}

// A row that ends within a vector ends on a copy padded with zeros.
template <class Element, class Store>
std::size_t decode(const std::uint8_t* elements, const std::uint8_t* scales, std::uint32_t block,
                   std::size_t n, void* out) {
  constexpr std::size_t kWidth = Element::kWidth;
  const std::size_t done = decode_whole<Element, Store>(elements, scales, block, n, out);
  const std::size_t rest = n - done;
  if (rest == 0 || rest >= kCodes) return done;
  std::uint8_t padded_elements[kCodes] = {};
  std::uint8_t padded_scales[kGroups] = {};
  typename Store::Element values[kCodes];
  std::memcpy(padded_elements, elements + done * kWidth / 8, (rest * kWidth + 7) / 8);
  std::memcpy(padded_scales, scales + done / block, (rest + block - 1) / block);
  // Codes of the same byte, and of the same block, that lie beyond the row do no harm.
  if (decode_whole<Element, Store>(padded_elements, padded_scales, block, kCodes, values) == 0) {
    return done;
  }
  std::memcpy(static_cast<typename Store::Element*>(out) + done, values, rest * sizeof values[0]);
  return n;
}

template <class Store>
BlockDecoder decoder_of(ElementType element) {
  if (element == kE4M3) return decode<E4m3Element, Store>;
  if (element == kE5M2) return decode<FpElement<5, 2, 15, 0x7B>, Store>;
  if (element == kE3M2) return decode<FpElement<3, 2, 4, 0x7F>, Store>;
  if (element == kE2M3) return decode<FpElement<2, 3, 2, 0x7F>, Store>;
  if (element == kE2M1) return decode<FpElement<2, 1, 2, 0x7F>, Store>;
  if (element == ElementType::integer(8)) return decode<IntElement<8>, Store>;
  if (element == ElementType::integer(4)) return decode<IntElement<4>, Store>;
  return nullptr;
}

BlockDecoder choose(ElementType element, ElementType sram) {
  return sram == kBf16 ? decoder_of<StoreBf16>(element) : decoder_of<StoreF32>(element);
}

}  // namespace decoding
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
  if (!has_block_kernels(hbm, sram)) return nullptr;
  switch (common_target(target)) {
#if HWY_TARGETS & HWY_AVX2
    case SimdTarget::Avx2:
      return N_AVX2::decoding::choose(hbm.element, sram);
#endif
#if HWY_TARGETS & HWY_AVX3
    case SimdTarget::Avx512:
      return N_AVX3::decoding::choose(hbm.element, sram);
#endif
    default:
      return nullptr;
  }
}

}  // namespace plena
#endif  // HWY_ONCE
