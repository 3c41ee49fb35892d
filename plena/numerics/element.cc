// Values of element codes and codes of values (semantics 5.1 … 5.3, mx.md).
#include "plena/numerics/element.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plena/numerics/float_format.h"
#include "plena/numerics/hbm_codec.h"
#include "plena/numerics/round_magnitude.h"

namespace plena {

namespace {

// What the codes with the largest exponent mean.
enum class Specials : std::uint8_t {
  Ieee,     // infinity and NaN
  NanOnly,  // OCP E4M3: all ones is NaN, there is no infinity
  None,     // OCP E3M2, E2M3, E2M1: values like all others
};

bool same_grid(ElementType element, ElementType named) {
  return element.exponent == named.exponent && element.mantissa == named.mantissa;
}

Specials specials(ElementType element) {
  if (same_grid(element, kE4M3)) return Specials::NanOnly;
  const bool none =
      same_grid(element, kE3M2) || same_grid(element, kE2M3) || same_grid(element, kE2M1);
  return none ? Specials::None : Specials::Ieee;
}

std::uint32_t sign_bit(ElementType element, double x) {
  return std::signbit(x) ? 1U << (element.exponent + element.mantissa) : 0;
}

// Nearest finite element; x is not NaN. An unsigned format has nothing nearer than 0 below it.
std::uint32_t saturate_fp(ElementType element, double x) {
  if (std::signbit(x) && !element.sign) return 0;
  const std::uint64_t largest = largest_magnitude_code(element);
  const std::uint64_t code =
      std::isinf(x) ? largest : round_magnitude(element.exponent, element.mantissa, std::fabs(x));
  return sign_bit(element, x) | static_cast<std::uint32_t>(std::min(code, largest));
}

// Nearest whole number within `lowest` … `highest`, ties to even, as two's complement.
std::uint32_t saturate_int(ElementType element, double x, double lowest, double highest) {
  const auto whole = static_cast<std::int64_t>(std::clamp(std::nearbyint(x), lowest, highest));
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(whole) &
                                    ((std::uint64_t{1} << element.int_width) - 1));
}

double fp_value(ElementType element, std::uint32_t code) {
  const int e = element.exponent;
  const int m = element.mantissa;
  const std::uint32_t magnitude = code & ((1U << (e + m)) - 1);
  const double sign = element.sign && (code >> (e + m) & 1) != 0 ? -1 : 1;
  if (magnitude > largest_magnitude_code(element)) {
    const std::uint32_t infinity = ((1U << e) - 1) << m;
    const bool infinite = specials(element) == Specials::Ieee && magnitude == infinity;
    return infinite ? sign * HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  }
  const int bias = (1 << (e - 1)) - 1;
  const int exponent = static_cast<int>(magnitude >> m);
  const std::uint32_t fraction = magnitude & ((1U << m) - 1);
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - m);
  return sign * std::ldexp(fraction + (1U << m), exponent - bias - m);
}

}  // namespace

std::uint32_t largest_magnitude_code(ElementType element) {
  const std::uint32_t all_ones = (1U << (element.exponent + element.mantissa)) - 1;
  switch (specials(element)) {
    case Specials::None:
      return all_ones;
    case Specials::NanOnly:
      return all_ones - 1;
    case Specials::Ieee:
      break;
  }
  return (((1U << element.exponent) - 1) << element.mantissa) - 1;
}

double element_value(ElementType element, std::uint32_t code, bool fixed_point) {
  if (element.kind == ElementType::Kind::Fp) return fp_value(element, code);
  const int width = element.int_width;
  const std::int64_t unsigned_value = code & ((std::uint64_t{1} << width) - 1);
  const bool negative = (unsigned_value >> (width - 1) & 1) != 0;
  const std::int64_t value = unsigned_value - (negative ? std::int64_t{1} << width : 0);
  return std::ldexp(static_cast<double>(value), fixed_point ? 2 - width : 0);
}

int element_emax(ElementType element) {
  if (element.kind == ElementType::Kind::Int) return 0;
  return std::ilogb(fp_value(element, largest_magnitude_code(element)));
}

std::uint32_t round_to_block_element(ElementType element, double x) {
  if (element.kind == ElementType::Kind::Fp) return saturate_fp(element, x);
  const double largest = std::ldexp(1, element.int_width - 1) - 1;
  return saturate_int(element, std::ldexp(x, element.int_width - 2), -largest, largest);
}

std::uint32_t round_to_plain_element(ElementType element, double x) {
  if (element.kind == ElementType::Kind::Int) {
    const double limit = std::ldexp(1, element.int_width - 1);
    return std::isnan(x) ? 0 : saturate_int(element, x, -limit, limit - 1);
  }
  switch (specials(element)) {
    case Specials::Ieee:
      return encode_fp(element, x);
    case Specials::NanOnly:
      return std::isnan(x) ? largest_magnitude_code(element) + 1 : saturate_fp(element, x);
    case Specials::None:
      break;
  }
  return std::isnan(x) ? 0 : saturate_fp(element, x);
}

}  // namespace plena
