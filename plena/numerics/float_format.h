// Floating-point formats of SRAM and scalars up to fp32 (semantics 4.1): bits to f32 and back.
#pragma once

#include <bit>
#include <cstdint>

#include "plena/config/data_type.h"

namespace plena {

/// One rounding, nearest even; overflow gives infinity, a NaN the canonical one (semantics 4.1).
std::uint32_t encode_fp(ElementType format, float value);
/// The same from a double, still with a single rounding.
std::uint32_t encode_fp(ElementType format, double value);

std::uint32_t canonical_nan(ElementType format);

/// Bits of one format as bits of another: unchanged between equal formats (NaN payloads too),
/// else one rounding (semantics 4.1).
std::uint32_t convert_fp(ElementType from, ElementType to, std::uint32_t bits);

/// bf16 is the upper half of an f32.
inline float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
inline std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FC0;
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float decode_any_fp(ElementType format, std::uint32_t bits);

/// The f32 value of the low bits of `bits`; exact. A NaN decodes to a quiet NaN.
inline float decode_fp(ElementType format, std::uint32_t bits) {
  if (format == kBf16) {
    const float value = bf16_to_f32(static_cast<std::uint16_t>(bits));
    return value == value ? value : std::bit_cast<float>(0x7FC00000U);
  }
  return decode_any_fp(format, bits);
}

/// Bytes one element takes in the SRAMs and FP_MEM of this implementation: 2 up to 16 bits, else 4.
constexpr std::size_t storage_bytes(ElementType format) {
  return format.width() <= 16 ? 2 : 4;
}

// Correctly rounded into `format`, on bits of `format` (semantics 4.3).
std::uint32_t exp_fp(ElementType format, std::uint32_t bits);
std::uint32_t reciprocal_fp(ElementType format, std::uint32_t bits);
std::uint32_t sqrt_fp(ElementType format, std::uint32_t bits);

/// IEEE 754-2019 maximumNumber and minimumNumber (semantics 4.4).
float maximum_number(float a, float b);
float minimum_number(float a, float b);

/// Root of the balanced binary tree over n values (semantics 4.5); n >= 1. `values` is scratch
/// and is overwritten.
float tree_sum(float* values, std::size_t n);

}  // namespace plena
