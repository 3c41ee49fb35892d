// exp, reciprocal and square root, correctly rounded into any format (semantics 4.3).
//
// exp takes the double result where its error cannot reach a rounding boundary of the format, and
// a double-double one where it might. Formats of 16 bits that programs use are tabulated.
#include <cmath>
#include <vector>

#include "plena/numerics/double_double.h"
#include "plena/numerics/float_format.h"

namespace plena {

namespace {

// e^x for |x| <= 110, to about 2^-95: e^x = 2^k * (e^(r/256))^256 with r = x - k ln 2.
DoubleDouble exp_double_double(double x) {
  // ln 2 in three parts; the first two have so few bits that k times them is exact.
  constexpr double kLn2High = 0x1.62E42FEEp-1;
  constexpr double kLn2Middle = 0x1.A39EF3578p-33;
  constexpr double kLn2Low = 0x1.3C7673007E5EDp-69;
  constexpr int kHalvings = 8;
  constexpr int kTerms = 12;  // (ln 2 / 512)^13 / 13! < 2^-156

  const double k = std::nearbyint(x / 0x1.62E42FEFA39EFp-1);
  DoubleDouble r = two_sum(x - k * kLn2High, -k * kLn2Middle) + two_product(-k, kLn2Low);
  r = {std::ldexp(r.high, -kHalvings), std::ldexp(r.low, -kHalvings)};

  DoubleDouble sum{1, 0};  // Horner: 1 + r (1 + r/2 (1 + r/3 (…)))
  for (int term = kTerms; term >= 1; --term) sum = DoubleDouble{1, 0} + sum * r / term;
  for (int i = 0; i < kHalvings; ++i) sum = sum * sum;
  const int exponent = static_cast<int>(k);
  return {std::ldexp(sum.high, exponent), std::ldexp(sum.low, exponent)};
}

std::uint32_t exp_rounded(ElementType format, std::uint32_t bits) {
  // Beyond these every format of 8 exponent bits has overflowed, or is below half a subnormal.
  constexpr double kOverflow = 100;
  constexpr double kUnderflow = -110;
  // Far more than the error of any C library's exp, far less than the spacing of any format.
  constexpr double kErrorBound = 0x1p-48;

  const double x = decode_fp(format, bits);
  if (std::isnan(x)) return canonical_nan(format);
  if (x > kOverflow) return encode_fp(format, HUGE_VAL);
  if (x < kUnderflow) return 0;
  // 1 - |x| <= e^x <= 1 + 2|x| lies within the half steps around 1.
  if (std::fabs(x) <= std::ldexp(1.0, -format.mantissa - 2)) return encode_fp(format, 1.0);
  const double y = std::exp(x);
  const std::uint32_t low = encode_fp(format, y * (1 - kErrorBound));
  const std::uint32_t high = encode_fp(format, y * (1 + kErrorBound));
  return low == high ? low : encode_fp(format, round_to_odd(exp_double_double(x)));
}

// A quotient or root of operands of at most 24 bits is never so close to a midpoint of the format
// that rounding it to 53 bits first could change the result.
std::uint32_t reciprocal_rounded(ElementType format, std::uint32_t bits) {
  return encode_fp(format, 1.0 / static_cast<double>(decode_fp(format, bits)));
}

std::uint32_t sqrt_rounded(ElementType format, std::uint32_t bits) {
  return encode_fp(format, std::sqrt(static_cast<double>(decode_fp(format, bits))));
}

using Function = std::uint32_t (*)(ElementType, std::uint32_t);

std::vector<std::uint16_t> tabulate(ElementType format, Function function) {
  std::vector<std::uint16_t> table(1U << 16);
  for (std::uint32_t bits = 0; bits < table.size(); ++bits) {
    table[bits] = static_cast<std::uint16_t>(function(format, bits));
  }
  return table;
}

// One table for each of the two 16-bit formats, built when it is first asked for.
template <Function kFunction>
const std::uint16_t* table_of(ElementType format) {
  if (format == kBf16) {
    static const std::vector<std::uint16_t> table = tabulate(kBf16, kFunction);
    return table.data();
  }
  if (format == kFp16) {
    static const std::vector<std::uint16_t> table = tabulate(kFp16, kFunction);
    return table.data();
  }
  return nullptr;
}

template <Function kFunction>
std::uint32_t look_up_or_compute(ElementType format, std::uint32_t bits) {
  const std::uint16_t* table = table_of<kFunction>(format);
  return table != nullptr ? table[bits & 0xFFFF] : kFunction(format, bits);
}

}  // namespace

std::uint32_t exp_fp(ElementType format, std::uint32_t bits) {
  return look_up_or_compute<exp_rounded>(format, bits);
}
// In bf16 an f32 quotient or root is far enough from every midpoint too, and no table is built for
// it.
std::uint32_t reciprocal_fp(ElementType format, std::uint32_t bits) {
  if (format == kBf16) return f32_to_bf16(1.0F / decode_fp(format, bits));
  return look_up_or_compute<reciprocal_rounded>(format, bits);
}
std::uint32_t sqrt_fp(ElementType format, std::uint32_t bits) {
  if (format == kBf16) return f32_to_bf16(std::sqrt(decode_fp(format, bits)));
  return look_up_or_compute<sqrt_rounded>(format, bits);
}

}  // namespace plena
