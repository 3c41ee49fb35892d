// Bits to values and back, one rounding each; max, min and the balanced tree. The elementary
// functions are in elementary.cc.
#include "plena/numerics/float_format.h"

#include <cmath>

#include "plena/numerics/round_magnitude.h"

namespace plena {

namespace {

constexpr int kF32Mantissa = 23;
constexpr std::uint32_t kF32Infinity = 0x7F800000;
constexpr std::uint32_t kF32CanonicalNan = 0x7FC00000;

std::uint32_t infinity_bits(ElementType format) {
  return ((1U << format.exponent) - 1) << format.mantissa;
}

float with_sign(float magnitude, bool negative) {
  return negative ? -magnitude : magnitude;
}

}  // namespace

float decode_any_fp(ElementType format, std::uint32_t bits) {
  const std::uint32_t sign_bit = format.exponent + format.mantissa;
  const bool negative = format.sign && (bits >> sign_bit & 1) != 0;
  const std::uint32_t magnitude = bits & ((1U << sign_bit) - 1);
  const std::uint32_t infinity = infinity_bits(format);
  if (magnitude > infinity) return std::bit_cast<float>(kF32CanonicalNan);
  if (magnitude == infinity) return with_sign(std::bit_cast<float>(kF32Infinity), negative);

  // Shifted to where f32 keeps them, the bits mean the value times 2^(bias - 127), subnormals
  // included; multiplying by a power of two that leads into the normal range is exact.
  const std::uint32_t bias = (1U << (format.exponent - 1)) - 1;
  const float unscaled = std::bit_cast<float>(magnitude << (kF32Mantissa - format.mantissa));
  const float scale = std::bit_cast<float>((254 - bias) << kF32Mantissa);
  return with_sign(unscaled * scale, negative);
}

std::uint32_t encode_fp(ElementType format, double value) {
  if (std::isnan(value)) return canonical_nan(format);
  const bool negative = std::signbit(value);
  if (negative && !format.sign) return 0;  // the nearest value an unsigned format has
  const std::uint32_t sign = negative ? 1U << (format.exponent + format.mantissa) : 0;
  const std::uint32_t infinity = infinity_bits(format);
  if (std::isinf(value)) return sign | infinity;
  const std::uint64_t code = round_magnitude(format.exponent, format.mantissa, std::fabs(value));
  return sign | (code < infinity ? static_cast<std::uint32_t>(code) : infinity);
}

std::uint32_t encode_fp(ElementType format, float value) {
  if (format == kBf16) return f32_to_bf16(value);
  if (format == kFp32) {
    return std::isnan(value) ? kF32CanonicalNan : std::bit_cast<std::uint32_t>(value);
  }
  return encode_fp(format, static_cast<double>(value));
}

std::uint32_t canonical_nan(ElementType format) {
  if (format.mantissa == 0) return 0;  // such a format has no NaN (semantics 5.3)
  return infinity_bits(format) | 1U << (format.mantissa - 1);
}

std::uint32_t convert_fp(ElementType from, ElementType to, std::uint32_t bits) {
  return from == to ? bits : encode_fp(to, decode_fp(from, bits));
}

float maximum_number(float a, float b) {
  if (std::isnan(a)) return std::isnan(b) ? std::bit_cast<float>(kF32CanonicalNan) : b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? b : a;  // +0 > -0
  return a > b ? a : b;
}

float minimum_number(float a, float b) {
  if (std::isnan(a)) return std::isnan(b) ? std::bit_cast<float>(kF32CanonicalNan) : b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

float tree_sum(float* values, std::size_t n) {
  while (n > 1) {
    const std::size_t pairs = n / 2;
    for (std::size_t i = 0; i < pairs; ++i) values[i] = values[2 * i] + values[2 * i + 1];
    if (n % 2 != 0) values[pairs] = values[n - 1];  // an odd one at the end moves up as it is
    n = pairs + n % 2;
  }
  return values[0];
}

}  // namespace plena
