#include "plena/asm/integer.h"

#include <random>

#include <gtest/gtest.h>

namespace plena {
namespace {

Integer decimal(std::string_view digits) {
  return digits.starts_with('-') ? Integer(0) - Integer::from_digits(digits.substr(1), 10)
                                 : Integer::from_digits(digits, 10);
}

TEST(Integer, HoldsNumbersBeyondSixtyFourBits) {
  // 2^200, from its published digits.
  const Integer power = Integer(1).shifted_left(200);
  EXPECT_EQ(power, decimal("1606938044258990275541962092341162602522202993782792835301376"));
  EXPECT_EQ(power.bit_length(), 201U);
  EXPECT_EQ(power.shifted_right(199), Integer(2));
  EXPECT_EQ(power.to_int64(), std::nullopt);
}

TEST(Integer, MultipliesAndDividesLongNumbers) {
  // The textbook product of two repunits, and a factorial: 30! = 26525…000.
  EXPECT_EQ(decimal("11111111111111111111") * decimal("11111111111111111111"),
            decimal("123456790123456790120987654320987654321"));
  Integer factorial = 1;
  for (int i = 2; i <= 30; ++i) factorial = factorial * Integer(i);
  EXPECT_EQ(factorial, decimal("265252859812191058636308480000000"));
  for (int i = 2; i <= 30; ++i) factorial = factorial / Integer(i);
  EXPECT_EQ(factorial, Integer(1));
}

TEST(Integer, DivisionTruncatesTowardZero) {
  EXPECT_EQ(Integer(-7) / Integer(2), Integer(-3));
  EXPECT_EQ(Integer(-7) % Integer(2), Integer(-1));
  EXPECT_EQ(Integer(7) % Integer(-2), Integer(1));
  EXPECT_EQ(Integer(INT64_MIN) / Integer(-1), Integer(1).shifted_left(63));
}

TEST(Integer, RightShiftRoundsTowardMinusInfinity) {
  EXPECT_EQ(Integer(-7).shifted_right(1), Integer(-4));
  EXPECT_EQ(Integer(-1).shifted_right(500), Integer(-1));
  EXPECT_EQ(Integer(-8).shifted_right(3), Integer(-1));
  EXPECT_EQ(Integer(7).shifted_right(64), Integer(0));
}

TEST(Integer, ReadsAllBases) {
  EXPECT_EQ(Integer::from_digits("fF", 16), Integer(255));
  EXPECT_EQ(Integer::from_digits("1011", 2), Integer(11));
  EXPECT_EQ(Integer::from_digits("00012", 10), Integer(12));
}

Integer random_integer(std::mt19937_64& random) {
  Integer value = 0;
  const auto digits = random() % 5;
  for (std::uint64_t i = 0; i < digits; ++i) {
    // Digits of all ones and all zeros reach the corrections of long division.
    const std::uint64_t kind = random() % 4;
    const std::int64_t digit = kind == 0   ? 0
                               : kind == 1 ? 0xFFFFFFFF
                                           : static_cast<std::int64_t>(random() >> 32);
    value = value.shifted_left(32) + Integer(digit);
  }
  return random() % 2 == 0 ? value : Integer(0) - value;
}

TEST(Integer, QuotientAndRemainderMakeTheDividend) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    const Integer a = random_integer(random);
    const Integer b = random_integer(random);
    if (b.is_zero()) continue;
    const Integer rest = a % b;
    ASSERT_EQ(a / b * b + rest, a);
    ASSERT_TRUE(rest.is_zero() || rest.is_negative() == a.is_negative());
    // |rest| < |b|
    const Integer size = rest.is_negative() ? Integer(0) - rest : rest;
    const Integer bound = b.is_negative() ? Integer(0) - b : b;
    ASSERT_TRUE((size - bound).is_negative());
    ASSERT_EQ((a - b) + b, a);
  }
}

TEST(Integer, AgreesWithMachineArithmeticWhereThatSuffices) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20'000; ++round) {
    const auto a = static_cast<std::int64_t>(random()) >> (random() % 64);
    const auto b = static_cast<std::int64_t>(random()) >> (random() % 64);
    const __int128 product = static_cast<__int128>(a) * b;
    const Integer high(static_cast<std::int64_t>(product >> 64));
    const auto low = static_cast<std::uint64_t>(product);
    const Integer whole = high.shifted_left(64) +
                          Integer(static_cast<std::int64_t>(low >> 32)).shifted_left(32) +
                          Integer(static_cast<std::int64_t>(low & 0xFFFFFFFF));
    ASSERT_EQ(Integer(a) * Integer(b), whole);
    if (b != 0 && !(a == INT64_MIN && b == -1)) {
      ASSERT_EQ(Integer(a) / Integer(b), Integer(a / b));
      ASSERT_EQ(Integer(a) % Integer(b), Integer(a % b));
    }
  }
}

}  // namespace
}  // namespace plena
