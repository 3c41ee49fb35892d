#include "plena/asm/integer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

namespace plena {

namespace {

using Magnitude = std::vector<std::uint32_t>;

constexpr unsigned kDigitBits = 32;

void trim(Magnitude& a) {
  while (!a.empty() && a.back() == 0) a.pop_back();
}

bool less(const Magnitude& a, const Magnitude& b) {
  if (a.size() != b.size()) return a.size() < b.size();
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

Magnitude add(const Magnitude& a, const Magnitude& b) {
  Magnitude sum;
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()) || carry != 0; ++i) {
    carry += i < a.size() ? a[i] : 0;
    carry += i < b.size() ? b[i] : 0;
    sum.push_back(static_cast<std::uint32_t>(carry));
    carry >>= kDigitBits;
  }
  return sum;
}

// a - b, where a is not less.
Magnitude subtract(const Magnitude& a, const Magnitude& b) {
  Magnitude difference(a.size());
  std::int64_t borrow = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::int64_t digit = static_cast<std::int64_t>(a[i]) - (i < b.size() ? b[i] : 0) + borrow;
    difference[i] = static_cast<std::uint32_t>(digit);
    borrow = digit < 0 ? -1 : 0;
  }
  trim(difference);
  return difference;
}

Magnitude multiply(const Magnitude& a, const Magnitude& b) {
  Magnitude product(a.size() + b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < b.size(); ++j) {
      carry += static_cast<std::uint64_t>(a[i]) * b[j] + product[i + j];
      product[i + j] = static_cast<std::uint32_t>(carry);
      carry >>= kDigitBits;
    }
    product[i + b.size()] = static_cast<std::uint32_t>(carry);
  }
  trim(product);
  return product;
}

void multiply_add(Magnitude& a, std::uint32_t factor, std::uint32_t addend) {
  std::uint64_t carry = addend;
  for (auto& digit : a) {
    carry += static_cast<std::uint64_t>(digit) * factor;
    digit = static_cast<std::uint32_t>(carry);
    carry >>= kDigitBits;
  }
  if (carry != 0) a.push_back(static_cast<std::uint32_t>(carry));
}

Magnitude shift_left(const Magnitude& a, std::uint64_t bits) {
  if (a.empty()) return {};
  Magnitude shifted(static_cast<std::size_t>(bits / kDigitBits), 0);
  const unsigned inside = bits % kDigitBits;
  std::uint64_t carry = 0;
  for (const auto digit : a) {
    carry |= static_cast<std::uint64_t>(digit) << inside;
    shifted.push_back(static_cast<std::uint32_t>(carry));
    carry >>= kDigitBits;
  }
  shifted.push_back(static_cast<std::uint32_t>(carry));
  trim(shifted);
  return shifted;
}

Magnitude shift_right(const Magnitude& a, std::uint64_t bits) {
  const std::uint64_t whole = bits / kDigitBits;
  if (whole >= a.size()) return {};
  const unsigned inside = bits % kDigitBits;
  Magnitude shifted;
  for (std::size_t i = static_cast<std::size_t>(whole); i < a.size(); ++i) {
    std::uint64_t pair = a[i];
    if (i + 1 < a.size()) pair |= static_cast<std::uint64_t>(a[i + 1]) << kDigitBits;
    shifted.push_back(static_cast<std::uint32_t>(pair >> inside));
  }
  trim(shifted);
  return shifted;
}

// Subtracts quotient * divisor from the digits of `a` at `at`; whether that went below zero.
bool subtract_multiple(Magnitude& a, std::size_t at, const Magnitude& divisor,
                       std::uint64_t quotient) {
  std::uint64_t carry = 0;
  std::int64_t borrow = 0;
  for (std::size_t i = 0; i <= divisor.size(); ++i) {
    carry += quotient * (i < divisor.size() ? divisor[i] : 0);
    const std::int64_t digit =
        static_cast<std::int64_t>(a[at + i]) - static_cast<std::uint32_t>(carry) + borrow;
    a[at + i] = static_cast<std::uint32_t>(digit);
    borrow = digit < 0 ? -1 : 0;
    carry >>= kDigitBits;
  }
  return borrow != 0;
}

void add_back(Magnitude& a, std::size_t at, const Magnitude& divisor) {
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i <= divisor.size(); ++i) {
    carry += static_cast<std::uint64_t>(a[at + i]) + (i < divisor.size() ? divisor[i] : 0);
    a[at + i] = static_cast<std::uint32_t>(carry);
    carry >>= kDigitBits;
  }
}

std::pair<Magnitude, Magnitude> divide_by_digit(const Magnitude& a, std::uint32_t divisor) {
  Magnitude quotient(a.size());
  std::uint64_t remainder = 0;
  for (std::size_t i = a.size(); i-- > 0;) {
    remainder = remainder << kDigitBits | a[i];
    quotient[i] = static_cast<std::uint32_t>(remainder / divisor);
    remainder %= divisor;
  }
  trim(quotient);
  Magnitude rest = {static_cast<std::uint32_t>(remainder)};
  trim(rest);
  return {quotient, rest};
}

// Knuth, The Art of Computer Programming 4.3.1, algorithm D.
std::pair<Magnitude, Magnitude> divide(const Magnitude& a, const Magnitude& b) {
  if (less(a, b)) return {{}, a};
  if (b.size() == 1) return divide_by_digit(a, b[0]);
  const auto shift = static_cast<unsigned>(std::countl_zero(b.back()));
  const Magnitude divisor = shift_left(b, shift);
  Magnitude rest = shift_left(a, shift);
  rest.resize(a.size() + 1);
  Magnitude quotient(a.size() - b.size() + 1);
  const std::uint64_t top = divisor.back();
  const std::uint64_t second = divisor[divisor.size() - 2];
  for (std::size_t at = quotient.size(); at-- > 0;) {
    const std::size_t high = at + divisor.size();
    const std::uint64_t pair =
        static_cast<std::uint64_t>(rest[high]) << kDigitBits | rest[high - 1];
    std::uint64_t guess = pair / top;
    std::uint64_t over = pair % top;
    while (guess >> kDigitBits != 0 || guess * second > (over << kDigitBits | rest[high - 2])) {
      --guess;
      over += top;
      if (over >> kDigitBits != 0) break;
    }
    if (subtract_multiple(rest, at, divisor, guess)) {
      --guess;
      add_back(rest, at, divisor);
    }
    quotient[at] = static_cast<std::uint32_t>(guess);
  }
  trim(quotient);
  trim(rest);
  return {quotient, shift_right(rest, shift)};
}

std::uint64_t absolute(std::int64_t value) {
  return value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

}  // namespace

Integer Integer::make(Magnitude magnitude, bool negative) {
  trim(magnitude);
  std::uint64_t low = magnitude.empty() ? 0 : magnitude[0];
  if (magnitude.size() > 1) low |= static_cast<std::uint64_t>(magnitude[1]) << kDigitBits;
  constexpr std::uint64_t kLowest = std::uint64_t{1} << 63;
  if (magnitude.size() <= 2 && (low < kLowest || (negative && low == kLowest))) {
    return {static_cast<std::int64_t>(negative ? 0 - low : low)};
  }
  Integer out;
  out.magnitude_ = std::move(magnitude);
  out.negative_ = negative;
  return out;
}

Integer::Magnitude Integer::magnitude() const {
  if (!magnitude_.empty()) return magnitude_;
  const std::uint64_t value = absolute(small_);
  Magnitude out = {static_cast<std::uint32_t>(value),
                   static_cast<std::uint32_t>(value >> kDigitBits)};
  trim(out);
  return out;
}

Integer Integer::from_digits(std::string_view digits, unsigned base) {
  Magnitude magnitude;
  for (const char c : digits) {
    const int value = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    multiply_add(magnitude, base, static_cast<std::uint32_t>(value));
  }
  return make(std::move(magnitude), false);
}

std::optional<std::int64_t> Integer::to_int64() const {
  return magnitude_.empty() ? std::optional(small_) : std::nullopt;
}

std::uint64_t Integer::bit_length() const {
  if (magnitude_.empty()) return static_cast<std::uint64_t>(std::bit_width(absolute(small_)));
  return std::uint64_t{kDigitBits} * (magnitude_.size() - 1) +
         static_cast<std::uint64_t>(std::bit_width(magnitude_.back()));
}

std::string Integer::text() const {
  if (magnitude_.empty()) return fmt::format("{}", small_);
  return fmt::format("a {}number of {} bits", negative_ ? "negative " : "", bit_length());
}

Integer operator+(const Integer& a, const Integer& b) {
  std::int64_t sum = 0;
  if (a.magnitude_.empty() && b.magnitude_.empty() &&
      !__builtin_add_overflow(a.small_, b.small_, &sum)) {
    return {sum};
  }
  const Magnitude x = a.magnitude();
  const Magnitude y = b.magnitude();
  if (a.is_negative() == b.is_negative()) return Integer::make(add(x, y), a.is_negative());
  return less(x, y) ? Integer::make(subtract(y, x), b.is_negative())
                    : Integer::make(subtract(x, y), a.is_negative());
}

Integer operator-(const Integer& a, const Integer& b) {
  std::int64_t difference = 0;
  if (a.magnitude_.empty() && b.magnitude_.empty() &&
      !__builtin_sub_overflow(a.small_, b.small_, &difference)) {
    return {difference};
  }
  return a + Integer::make(b.magnitude(), !b.is_negative());
}

Integer operator*(const Integer& a, const Integer& b) {
  std::int64_t product = 0;
  if (a.magnitude_.empty() && b.magnitude_.empty() &&
      !__builtin_mul_overflow(a.small_, b.small_, &product)) {
    return {product};
  }
  return Integer::make(multiply(a.magnitude(), b.magnitude()), a.is_negative() != b.is_negative());
}

bool Integer::machine_division(const Integer& a, const Integer& b) {
  return a.magnitude_.empty() && b.magnitude_.empty() && b.small_ != -1;
}

Integer operator/(const Integer& a, const Integer& b) {
  if (Integer::machine_division(a, b)) return {a.small_ / b.small_};
  return Integer::make(divide(a.magnitude(), b.magnitude()).first,
                       a.is_negative() != b.is_negative());
}

Integer operator%(const Integer& a, const Integer& b) {
  if (Integer::machine_division(a, b)) return {a.small_ % b.small_};
  return Integer::make(divide(a.magnitude(), b.magnitude()).second, a.is_negative());
}

Integer Integer::shifted_left(std::uint64_t bits) const {
  if (magnitude_.empty() && bits < 63 && bit_length() + bits < 64) {
    return {static_cast<std::int64_t>(static_cast<std::uint64_t>(small_) << bits)};
  }
  return make(shift_left(magnitude(), bits), is_negative());
}

Integer Integer::shifted_right(std::uint64_t bits) const {
  if (magnitude_.empty() && bits < 64) return {small_ >> bits};
  if (!is_negative()) return make(shift_right(magnitude(), bits), false);
  // floor(-m / 2^n) = -((m - 1) / 2^n) - 1
  return make(add(shift_right(subtract(magnitude(), {1}), bits), {1}), true);
}

}  // namespace plena
