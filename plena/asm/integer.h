// Whole numbers without a bound, for constant expressions (semantics 2). Values of 64 bits, nearly
// all there are, take no allocation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plena {

class Integer {
 public:
  Integer(std::int64_t value = 0) : small_(value) {}  // NOLINT: numbers are integers

  /// The value of digits that are valid in base 2, 10 or 16.
  static Integer from_digits(std::string_view digits, unsigned base);

  [[nodiscard]] std::optional<std::int64_t> to_int64() const;
  [[nodiscard]] bool is_zero() const { return magnitude_.empty() && small_ == 0; }
  [[nodiscard]] bool is_negative() const { return magnitude_.empty() ? small_ < 0 : negative_; }
  /// Bits of the absolute value.
  [[nodiscard]] std::uint64_t bit_length() const;
  /// Decimal, or a description where the number is long.
  [[nodiscard]] std::string text() const;

  friend Integer operator+(const Integer& a, const Integer& b);
  friend Integer operator-(const Integer& a, const Integer& b);
  friend Integer operator*(const Integer& a, const Integer& b);
  /// Truncates toward zero, as in C; the divisor is not 0.
  friend Integer operator/(const Integer& a, const Integer& b);
  /// Has the sign of the dividend, as in C; the divisor is not 0.
  friend Integer operator%(const Integer& a, const Integer& b);
  [[nodiscard]] Integer shifted_left(std::uint64_t bits) const;
  /// Rounds toward minus infinity, as arithmetic shifts do.
  [[nodiscard]] Integer shifted_right(std::uint64_t bits) const;

  friend bool operator==(const Integer&, const Integer&) = default;

 private:
  using Magnitude = std::vector<std::uint32_t>;  // base 2^32, lowest digit first

  static Integer make(Magnitude magnitude, bool negative);
  [[nodiscard]] Magnitude magnitude() const;
  static bool machine_division(const Integer& a, const Integer& b);

  std::int64_t small_ = 0;
  Magnitude magnitude_;  // empty: the value is small_; else it does not fit 64 bits
  bool negative_ = false;
};

}  // namespace plena
