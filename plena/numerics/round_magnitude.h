// Rounding of a magnitude to the grid of a floating-point format: the one place where a value
// becomes bits. What lies beyond the largest value is left to the caller (semantics 4.1, 5.2, 5.3).
#pragma once

#include <bit>
#include <cstdint>

namespace plena {

/// Code, without sign, of the value of Fp(e, m) nearest to the finite `magnitude` >= 0, ties to
/// even, as if exponents went on for ever: a code at or above the format's infinity is an overflow.
/// Codes are monotonic in the value. Needs exponent_bits 1 … 8, mantissa_bits 0 … 23.
constexpr std::uint64_t round_magnitude(int exponent_bits, int mantissa_bits, double magnitude) {
  constexpr int kDoubleMantissa = 52;
  constexpr int kDoubleBias = 1023;
  const auto bits = std::bit_cast<std::uint64_t>(magnitude);
  const int biased = static_cast<int>(bits >> kDoubleMantissa);
  if (biased == 0) return 0;  // zero, or a double subnormal, far below every format here

  const int exponent = biased - kDoubleBias;
  const int smallest_exponent = 2 - (1 << (exponent_bits - 1));  // 1 - bias
  const bool subnormal = exponent < smallest_exponent;
  const int dropped =
      kDoubleMantissa - mantissa_bits + (subnormal ? smallest_exponent - exponent : 0);
  if (dropped > kDoubleMantissa + 1) return 0;  // below half of the smallest subnormal

  const std::uint64_t one = 1;
  const std::uint64_t significand =
      (bits & ((one << kDoubleMantissa) - 1)) | one << kDoubleMantissa;
  const std::uint64_t rest = significand & ((one << dropped) - 1);
  const std::uint64_t half = one << (dropped - 1);
  std::uint64_t kept = significand >> dropped;
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  // A carry out of the mantissa moves to the next binade by itself, in both branches.
  if (subnormal) return kept;
  return (static_cast<std::uint64_t>(exponent - smallest_exponent) << mantissa_bits) + kept;
}

}  // namespace plena
