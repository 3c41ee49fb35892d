// Rows of bf16 and fp32 to MX blocks of the named elements in SIMD (semantics 5.2): every value, no
// case left over.
//
// A chunk is two vectors of f32, the even and the odd elements of a stretch of the row. They are
// scaled, rounded and then joined as 16-bit lanes, which get their signs, are clamped and packed.
#include <cstring>

#include "plena/numerics/float_format.h"
#include "plena/numerics/highway_targets.h"
#include "plena/numerics/simd_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plena/numerics/simd_block_encode.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#if PLENA_HWY_HAS_FMA
#include "plena/numerics/simd_constants-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace plena::HWY_NAMESPACE {
#if PLENA_HWY_HAS_FMA
namespace hn = hwy::HWY_NAMESPACE;

namespace encoding {

using F32 = hn::Repartition<float, Bytes>;
using I32 = hn::RebindToSigned<Doublewords>;
using I16 = hn::RebindToSigned<Words>;
using VF32 = hn::Vec<F32>;

constexpr std::size_t kLanes = hn::MaxLanes(F32());
constexpr std::size_t kChunk = 2 * kLanes;  // elements

constexpr std::uint32_t kF32Magnitude = 0x7FFFFFFF;
constexpr std::uint32_t kF32Infinity = 0x7F800000;
constexpr int kF32Mantissa = 23;
constexpr int kF32Bias = 127;

HWY_INLINE VU32 bits_of(VF32 value) {
  return hn::BitCast(Doublewords(), value);
}
HWY_INLINE VF32 value_of(VU32 bits) {
  return hn::BitCast(F32(), bits);
}
// Of numbers below 2^31.
HWY_INLINE VU32 larger(VU32 a, VU32 b) {
  return hn::BitCast(Doublewords(), hn::Max(hn::BitCast(I32(), a), hn::BitCast(I32(), b)));
}

// ------------------------------------------------------------ rows

struct Chunk {
  VF32 even, odd;  // magnitudes
  V16 upper;       // upper halves of all elements, in order: the signs are in bit 15
};

struct Bf16Row {
  using Element = std::uint16_t;
  static HWY_INLINE Chunk load(const Element* row) {
    const V16 upper = hn::LoadU(Words(), row);
    const VU32 both =
        hn::And(hn::BitCast(Doublewords(), upper), hn::Set(Doublewords(), 0x7FFF7FFF));
    return {value_of(hn::ShiftLeft<16>(both)),
            value_of(hn::And(both, hn::Set(Doublewords(), 0xFFFF0000))), upper};
  }
};

struct F32Row {
  using Element = float;
  static HWY_INLINE Chunk load(const Element* row) {
    const VF32 lower = hn::LoadU(F32(), row);
    const VF32 upper = hn::LoadU(F32(), row + kLanes);
    const VU32 even = bits_of(hn::ConcatEven(F32(), upper, lower));
    const VU32 odd = bits_of(hn::ConcatOdd(F32(), upper, lower));
    const V16 upper_halves =
        hn::OddEven(hn::BitCast(Words(), odd), hn::BitCast(Words(), hn::ShiftRight<16>(even)));
    return {value_of(hn::And(even, hn::Set(Doublewords(), kF32Magnitude))),
            value_of(hn::And(odd, hn::Set(Doublewords(), kF32Magnitude))), upper_halves};
  }
};

// ------------------------------------------------------------ elements
//
// round(): the magnitude of a scaled element in the lower half of each lane, larger by kOffset.
// with_sign(): the code of a magnitude.

template <int kExponent, int kMantissa, std::uint16_t kLargestCode, int kElementEmax>
struct FpElement {
  static constexpr int kWidth = 1 + kExponent + kMantissa;
  static constexpr int kEmax = kElementEmax;
  static constexpr std::uint16_t kLargest = kLargestCode;
  // Biased exponent, as f32 has it, of the smallest normal element.
  static constexpr std::uint32_t kLeastNormal = kF32Bias + 2 - (1 << (kExponent - 1));
  static constexpr std::uint16_t kOffset = kLeastNormal << kMantissa;

  // Adding 2^(e + 23 - m), where e is the element's exponent, leaves the significand rounded to m
  // places in the lowest bits. Subnormals have the exponent of the smallest normal, and a
  // significand that is rounded up to the next power of two carries into the exponent by itself.
  static HWY_INLINE VU32 round(VF32 magnitude) {
    const VU32 exponent = larger(hn::And(bits_of(magnitude), hn::Set(Doublewords(), kF32Infinity)),
                                 hn::Set(Doublewords(), kLeastNormal << kF32Mantissa));
    constexpr std::uint32_t kPlaces = std::uint32_t{kF32Mantissa - kMantissa} << kF32Mantissa;
    const VF32 unit = value_of(hn::Add(exponent, hn::Set(Doublewords(), kPlaces)));
    return hn::Add(bits_of(hn::Add(magnitude, unit)),
                   hn::ShiftRight<kF32Mantissa - kMantissa>(exponent));
  }

  static HWY_INLINE V16 with_sign(V16 code, V16 upper) {
    return hn::OrAnd(code, hn::ShiftRight<16 - kWidth>(upper),
                     hn::Set(Words(), std::uint16_t{1} << (kWidth - 1)));
  }
};

template <int kElementWidth>
struct IntElement {
  static constexpr int kWidth = kElementWidth;
  static constexpr int kEmax = 0;
  static constexpr std::uint16_t kLargest = (1 << (kWidth - 1)) - 1;
  static constexpr std::uint16_t kOffset = 0;

  // Fixed point with width-2 fraction bits: 2^(23 - fraction) rounds to them.
  static HWY_INLINE VU32 round(VF32 magnitude) {
    constexpr std::uint32_t kUnit = std::uint32_t{kF32Bias + kF32Mantissa - (kWidth - 2)}
                                    << kF32Mantissa;
    return bits_of(hn::Add(magnitude, value_of(hn::Set(Doublewords(), kUnit))));
  }

  // Two's complement.
  static HWY_INLINE V16 with_sign(V16 code, V16 upper) {
    const V16 negative = hn::BitCast(Words(), hn::ShiftRight<15>(hn::BitCast(I16(), upper)));
    return hn::And(hn::Sub(hn::Xor(code, negative), negative), hn::Set(Words(), (1 << kWidth) - 1));
  }
};

// ------------------------------------------------------------ scales

// The largest of each group of kGroup lanes, in all of them.
template <std::size_t kGroup>
HWY_INLINE VU32 largest_of_group(VU32 v) {
  static_assert(kGroup >= 4 && kGroup <= kLanes);
  const Doublewords d;
  v = larger(v, hn::Shuffle2301(v));
  v = larger(v, hn::Shuffle1032(v));
  if constexpr (kGroup >= 8) v = larger(v, hn::SwapAdjacentBlocks(v));
  if constexpr (kGroup >= 16) v = larger(v, hn::ConcatLowerUpper(d, v, v));
  return v;
}

// From the bits of the largest magnitude of a block, in each of its lanes.
struct Scale {
  VF32 factor;  // 1 / scale
  VU32 byte;
  // Else every element of the block is written as +0: it holds nothing but zeros, or no number.
  hn::Mask<Doublewords> keep;
};

template <int kEmax>
HWY_INLINE Scale scale_of(VU32 largest) {
  const Doublewords d;
  const VU32 infinity = hn::Set(Doublewords(), kF32Infinity);
  const VU32 exponent = hn::And(largest, infinity);
  // The byte in the place of an f32's exponent; 0 is as low as it goes.
  const VU32 scale = larger(
      hn::Sub(exponent, hn::Set(Doublewords(), std::uint32_t{kEmax} << kF32Mantissa)), hn::Zero(d));
  VU32 factor = hn::Sub(hn::Set(Doublewords(), std::uint32_t{2 * kF32Bias} << kF32Mantissa), scale);
  // 2^-127 is subnormal.
  if constexpr (kEmax == 0) factor = larger(factor, hn::Set(Doublewords(), 0x00400000));
  const auto is_finite = hn::Lt(hn::BitCast(I32(), exponent), hn::BitCast(I32(), infinity));
  const auto finite = hn::RebindMask(d, is_finite);
  const VU32 bytes =
      hn::IfThenElse(finite, hn::ShiftRight<kF32Mantissa>(scale), hn::Set(Doublewords(), 0xFF));
  return {value_of(factor), bytes, hn::And(finite, hn::Ne(largest, hn::Zero(d)))};
}

template <std::size_t kGroup>
HWY_INLINE void store_scales(VU32 bytes, std::uint8_t* scales) {
  HWY_ALIGN std::uint32_t lanes[kLanes];
  hn::Store(bytes, Doublewords(), lanes);
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < kLanes / kGroup; ++i) {
    scales[i] = static_cast<std::uint8_t>(lanes[i * kGroup]);
  }
}

// ------------------------------------------------------------ packing

// Codes of a chunk, one a lane, packed little-end first (semantics 5.4).
template <int kWidth>
HWY_INLINE void store_codes(V16 codes, std::uint8_t* elements) {
  if constexpr (kWidth == 8) {
    const hn::Half<Bytes> d;
    hn::StoreU(hn::DemoteTo(d, hn::BitCast(I16(), codes)), d, elements);
  } else if constexpr (kWidth == 4) {
    const VU32 pairs = hn::BitCast(Doublewords(), codes);
    const auto bytes = hn::U8FromU32(hn::Or(pairs, hn::ShiftRight<12>(pairs)));
    hn::StoreU(bytes, hn::Rebind<std::uint8_t, Doublewords>(), elements);
  } else {
    static_assert(kWidth == 6);
    const hn::Repartition<std::uint64_t, Bytes> d64;
    const VU32 lanes = hn::BitCast(Doublewords(), codes);
    const auto pairs = hn::BitCast(d64, hn::Or(lanes, hn::ShiftRight<10>(lanes)));
    const auto fours = hn::Or(hn::And(pairs, hn::Set(d64, 0xFFF)),
                              hn::And(hn::ShiftRight<20>(pairs), hn::Set(d64, 0xFFF000)));
    // Three bytes of each half of a 128-bit block, next to each other.
    static constexpr std::uint8_t kPlaces[16] = {0,    1,    2,    8,    9,    10,   0x80, 0x80,
                                                 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    HWY_ALIGN std::uint8_t blocks[hn::MaxLanes(Bytes())];
    hn::Store(hn::TableLookupBytes(hn::BitCast(Bytes(), fours), table(kPlaces)), Bytes(), blocks);
    for (std::size_t i = 0; i < sizeof blocks / 16; ++i) {
      std::memcpy(elements + 6 * i, blocks + 16 * i, 6);
    }
  }
}

// ------------------------------------------------------------ blocks

template <class Element>
HWY_INLINE void encode_chunk(const Chunk& chunk, const Scale& scale, std::uint8_t* elements) {
  const VU32 even = Element::round(hn::Mul(chunk.even, scale.factor));
  const VU32 odd = Element::round(hn::Mul(chunk.odd, scale.factor));
  const V16 rounded =
      hn::OddEven(hn::BitCast(Words(), hn::ShiftLeft<16>(odd)), hn::BitCast(Words(), even));
  const V16 code = hn::Min(hn::Sub(rounded, hn::Set(Words(), Element::kOffset)),
                           hn::Set(Words(), Element::kLargest));
  const VU32 codes = hn::BitCast(Doublewords(), Element::with_sign(code, chunk.upper));
  store_codes<Element::kWidth>(hn::BitCast(Words(), hn::IfThenElseZero(scale.keep, codes)),
                               elements);
}

HWY_INLINE VU32 largest_of(const Chunk& chunk) {
  return larger(bits_of(chunk.even), bits_of(chunk.odd));
}

// Blocks of at most a chunk: kGroup lanes of each of its vectors belong to one block.
template <class Row, class Element, std::size_t kGroup>
void encode_small_blocks(const typename Row::Element* row, std::size_t n, std::uint8_t* elements,
                         std::uint8_t* scales) {
  for (std::size_t i = 0; i < n; i += kChunk) {
    const Chunk chunk = Row::load(row + i);
    const VU32 largest = largest_of_group<kGroup>(largest_of(chunk));
    const Scale scale = scale_of<Element::kEmax>(largest);
    store_scales<kGroup>(scale.byte, scales + i / (2 * kGroup));
    encode_chunk<Element>(chunk, scale, elements + i * Element::kWidth / 8);
  }
}

// Blocks of whole chunks.
template <class Row, class Element>
void encode_large_blocks(const typename Row::Element* row, std::size_t n, std::size_t block,
                         std::uint8_t* elements, std::uint8_t* scales) {
  for (std::size_t first = 0; first < n; first += block) {
    VU32 largest = hn::Zero(Doublewords());
    for (std::size_t i = first; i < first + block; i += kChunk) {
      largest = larger(largest, largest_of(Row::load(row + i)));
    }
    const Scale scale = scale_of<Element::kEmax>(largest_of_group<kLanes>(largest));
    store_scales<kLanes>(scale.byte, scales + first / block);
    for (std::size_t i = first; i < first + block; i += kChunk) {
      encode_chunk<Element>(Row::load(row + i), scale, elements + i * Element::kWidth / 8);
    }
  }
}

// Whole chunks of blocks of any size.
template <class Row, class Element>
void encode_chunks(const typename Row::Element* row, std::size_t n, std::uint32_t block,
                   std::uint8_t* elements, std::uint8_t* scales) {
  if (block == 8) {
    encode_small_blocks<Row, Element, 4>(row, n, elements, scales);
  } else if (block == kChunk) {
    encode_small_blocks<Row, Element, kLanes>(row, n, elements, scales);
  } else if (block < kChunk) {
    encode_small_blocks<Row, Element, 8>(row, n, elements, scales);
  } else {
    encode_large_blocks<Row, Element>(row, n, block, elements, scales);
  }
}

// A row that ends within a chunk, as those of small blocks may, ends on a copy padded with zeros.
template <class Row, class Element>
void encode(const void* row, std::size_t n, std::uint32_t block, std::uint8_t* elements,
            std::uint8_t* scales) {
  const auto* from = static_cast<const typename Row::Element*>(row);
  const std::size_t whole = n - n % kChunk;
  encode_chunks<Row, Element>(from, whole, block, elements, scales);
  if (whole == n) return;
  typename Row::Element padded[kChunk] = {};
  std::uint8_t padded_elements[kChunk], padded_scales[kChunk / 8];
  std::memcpy(padded, from + whole, (n - whole) * sizeof padded[0]);
  encode_chunks<Row, Element>(padded, kChunk, block, padded_elements, padded_scales);
  std::memcpy(elements + whole * Element::kWidth / 8, padded_elements,
              (n - whole) * Element::kWidth / 8);
  std::memcpy(scales + whole / block, padded_scales, (n - whole) / block);
}

template <class Row>
BlockEncoder encoder_of(ElementType element) {
  if (element == kE4M3) return encode<Row, FpElement<4, 3, 0x7E, 8>>;
  if (element == kE5M2) return encode<Row, FpElement<5, 2, 0x7B, 15>>;
  if (element == kE3M2) return encode<Row, FpElement<3, 2, 0x1F, 4>>;
  if (element == kE2M3) return encode<Row, FpElement<2, 3, 0x1F, 2>>;
  if (element == kE2M1) return encode<Row, FpElement<2, 1, 0x7, 2>>;
  if (element == ElementType::integer(8)) return encode<Row, IntElement<8>>;
  if (element == ElementType::integer(4)) return encode<Row, IntElement<4>>;
  return nullptr;
}

BlockEncoder choose(ElementType element, ElementType sram) {
  return sram == kBf16 ? encoder_of<Bf16Row>(element) : encoder_of<F32Row>(element);
}

}  // namespace encoding
#endif  // PLENA_HWY_HAS_FMA
}  // namespace plena::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plena {

BlockEncoder simd_block_encoder(SimdTarget target, DataType hbm, ElementType sram) {
  if (!has_block_kernels(hbm, sram)) return nullptr;
  switch (common_target(target)) {
#if HWY_TARGETS & HWY_AVX2
    case SimdTarget::Avx2:
      return N_AVX2::encoding::choose(hbm.element, sram);
#endif
#if HWY_TARGETS & HWY_AVX3
    case SimdTarget::Avx512:
      return N_AVX3::encoding::choose(hbm.element, sram);
#endif
    default:
      return nullptr;
  }
}

}  // namespace plena
#endif  // HWY_ONCE
