// Arithmetic on unevaluated sums of two doubles, about 105 bits: what decides the few results that
// a double leaves too close to a rounding boundary.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace plena {

/// The value high + low, where low is at most half a unit in the last place of high.
struct DoubleDouble {
  double high = 0;
  double low = 0;
};

/// Exact, for |a| >= |b| or a == 0.
inline DoubleDouble quick_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

/// Exact (Knuth).
inline DoubleDouble two_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

/// Exact.
inline DoubleDouble two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = two_sum(a.high, b.high);
  const DoubleDouble low = two_sum(a.low, b.low);
  const DoubleDouble sum = quick_two_sum(high.high, high.low + low.high);
  return quick_two_sum(sum.high, sum.low + low.low);
}

inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble product = two_product(a.high, b.high);
  return quick_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

inline DoubleDouble operator/(DoubleDouble a, double divisor) {
  const double quotient = a.high / divisor;
  const DoubleDouble back = two_product(quotient, divisor);
  const double rest = ((a.high - back.high) - back.low) + a.low;
  return quick_two_sum(quotient, rest / divisor);
}

/// The double that rounds to any format of up to 50 bits as the exact sum would: where the low part
/// is not zero the last bit of the mantissa is made odd ("round to odd").
inline double round_to_odd(DoubleDouble value) {
  if (value.low == 0 || (std::bit_cast<std::uint64_t>(value.high) & 1) != 0) return value.high;
  return std::nextafter(value.high, value.low > 0 ? HUGE_VAL : -HUGE_VAL);
}

}  // namespace plena
