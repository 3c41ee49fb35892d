// exp, reciprocal and square root against MPFR, which rounds correctly at any precision. Built
// where MPFR is installed (`./dev test` sees to it).
#if __has_include(<mpfr.h>)

#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <mpfr.h>

#include "plena/numerics/double_double.h"
#include "plena/numerics/float_format.h"

namespace plena {
namespace {

using MpfrFunction = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

int mpfr_reciprocal(mpfr_ptr out, mpfr_srcptr x, mpfr_rnd_t round) {
  return mpfr_ui_div(out, 1, x, round);
}

// A format in MPFR's terms: precision and exponent range, so that it rounds subnormals and
// overflows itself.
class Reference {
 public:
  Reference(ElementType format, MpfrFunction function) : format_(format), function_(function) {
    const int bias = (1 << (format.exponent - 1)) - 1;
    smallest_ = 1 - bias - format.mantissa + 1;  // MPFR's significands lie in [1/2, 1)
    largest_ = bias + 1;
    mpfr_init2(x_, 24);
    mpfr_init2(y_, format.mantissa + 1);
  }
  ~Reference() {
    mpfr_clears(x_, y_, nullptr);
    mpfr_set_emin(mpfr_get_emin_min());
    mpfr_set_emax(mpfr_get_emax_max());
  }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  std::uint32_t operator()(std::uint32_t bits) {
    mpfr_set_emin(mpfr_get_emin_min());
    mpfr_set_emax(mpfr_get_emax_max());
    mpfr_set_flt(x_, decode_fp(format_, bits), MPFR_RNDN);
    mpfr_set_emin(smallest_);
    mpfr_set_emax(largest_);
    const int ternary = function_(y_, x_, MPFR_RNDN);
    mpfr_subnormalize(y_, ternary, MPFR_RNDN);
    return encode_fp(format_, mpfr_get_d(y_, MPFR_RNDN));  // exact: y_ is a value of the format
  }

 private:
  ElementType format_;
  MpfrFunction function_;
  mpfr_exp_t smallest_ = 0;
  mpfr_exp_t largest_ = 0;
  mpfr_t x_;  // NOLINT: initialised by mpfr_init2
  mpfr_t y_;  // NOLINT
};

struct Case {
  const char* name;
  std::uint32_t (*ours)(ElementType, std::uint32_t);
  MpfrFunction reference;
};
constexpr Case kCases[] = {{"exp", exp_fp, mpfr_exp},
                           {"reciprocal", reciprocal_fp, mpfr_reciprocal},
                           {"sqrt", sqrt_fp, mpfr_sqrt}};

TEST(ElementaryAgainstMpfr, EveryInputOfFormatsUpTo16BitsIsCorrectlyRounded) {
  for (const Case& c : kCases) {
    for (const ElementType format :
         {kFp16, ElementType::fp(5, 2), ElementType::fp(2, 10), ElementType::fp(8, 3),
          ElementType::fp(6, 9), ElementType::fp(3, 12)}) {
      Reference reference(format, c.reference);
      for (std::uint32_t bits = 0; bits < 1U << format.width(); ++bits) {
        ASSERT_EQ(c.ours(format, bits), reference(bits)) << c.name << " of " << bits;
      }
    }
  }
}

TEST(ElementaryAgainstMpfr, RandomInputsOfWideFormatsAreCorrectlyRounded) {
  for (const Case& c : kCases) {
    for (const ElementType format : {kFp32, ElementType::fp(8, 20), ElementType::fp(2, 23)}) {
      Reference reference(format, c.reference);
      std::mt19937 random(7);
      for (int i = 0; i < 100000; ++i) {
        const std::uint32_t bits = static_cast<std::uint32_t>(random()) >> (32 - format.width());
        ASSERT_EQ(c.ours(format, bits), reference(bits)) << c.name << " of " << bits;
      }
    }
  }
}

// Where exp is neither 0, 1 nor infinity, its result fills the whole f32 range.
TEST(ElementaryAgainstMpfr, Fp32ExpIsCorrectlyRoundedWhereItVaries) {
  Reference reference(kFp32, mpfr_exp);
  std::mt19937 random(11);
  std::uniform_real_distribution<float> range(-104.5F, 89.0F);
  for (int i = 0; i < 300000; ++i) {
    const std::uint32_t bits = encode_fp(kFp32, range(random));
    ASSERT_EQ(exp_fp(kFp32, bits), reference(bits)) << bits;
  }
}

// Inputs whose exp lies within 2^-48 of a rounding boundary: those that need the slow path. They
// are searched for among all f32 from 2^-7 to overflow.
TEST(ElementaryAgainstMpfr, Fp32ExpIsCorrectlyRoundedAtItsHardestInputs) {
  Reference reference(kFp32, mpfr_exp);
  int hard = 0;
  for (std::uint32_t bits = 0x3C000000; bits < 0x42B20000; ++bits) {
    const auto result = std::bit_cast<std::uint64_t>(std::exp(double{std::bit_cast<float>(bits)}));
    const std::uint64_t past_midpoint = (result + (1U << 28)) & ((1U << 29) - 1);
    if (past_midpoint > 16 && past_midpoint < (1U << 29) - 16) continue;
    ++hard;
    ASSERT_EQ(exp_fp(kFp32, bits), reference(bits)) << bits;
  }
  EXPECT_GT(hard, 3);
}

}  // namespace
}  // namespace plena

#endif
