// Tables with an entry for every format an SRAM may have, and access to rows whose format is known
// only at run time.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "plena/config/data_type.h"
#include "plena/numerics/float_format.h"

namespace plena {

// Signed formats of 2 … 8 exponent and 1 … 23 mantissa bits: what the settings allow.
inline constexpr std::size_t kLeastExponent = 2;
inline constexpr std::size_t kExponents = 7;
inline constexpr std::size_t kLeastMantissa = 1;
inline constexpr std::size_t kMantissas = 23;
inline constexpr std::size_t kSramFormats = kExponents * kMantissas;

constexpr std::size_t sram_format_index(ElementType format) {
  return (format.exponent - kLeastExponent) * kMantissas + (format.mantissa - kLeastMantissa);
}

constexpr ElementType sram_format(std::size_t index) {
  return ElementType::fp(static_cast<int>(kLeastExponent + index / kMantissas),
                         static_cast<int>(kLeastMantissa + index % kMantissas));
}

/// Make<format>::kernels for every format, by sram_format_index().
template <class Kernels, template <ElementType> class Make>
constexpr std::array<Kernels, kSramFormats> for_every_sram_format() {
  return []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::array<Kernels, kSramFormats>{Make<sram_format(kIndex)>::kernels...};
  }(std::make_index_sequence<kSramFormats>{});
}

inline std::uint32_t row_bits(ElementType format, const void* row, std::size_t i) {
  if (storage_bytes(format) == 2) return static_cast<const std::uint16_t*>(row)[i];
  return static_cast<const std::uint32_t*>(row)[i];
}

inline void set_row_bits(ElementType format, void* row, std::size_t i, std::uint32_t bits) {
  if (storage_bytes(format) == 2) {
    static_cast<std::uint16_t*>(row)[i] = static_cast<std::uint16_t>(bits);
  } else {
    static_cast<std::uint32_t*>(row)[i] = bits;
  }
}

inline float row_value(ElementType format, const void* row, std::size_t i) {
  const std::uint32_t bits = row_bits(format, row, i);
  if (format == kBf16) return bf16_to_f32(static_cast<std::uint16_t>(bits));
  if (format == kFp32) return std::bit_cast<float>(bits);  // any NaN stays one
  return decode_fp(format, bits);
}

}  // namespace plena
