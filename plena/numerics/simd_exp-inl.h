// exp in SIMD, correctly rounded to bf16 or f32 (semantics 4.3), for the files that Highway
// compiles once a target.
#if defined(PLENA_NUMERICS_SIMD_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLENA_NUMERICS_SIMD_EXP_INL_H_
#undef PLENA_NUMERICS_SIMD_EXP_INL_H_
#else
#define PLENA_NUMERICS_SIMD_EXP_INL_H_
#endif

#include "plena/numerics/float_format.h"
#include "plena/numerics/simd_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plena::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3
// e^x in f32, good enough that rounding it to bf16 gives the correctly rounded bf16 for every bf16
// x; the tests prove it by trying all of them. e^x = 2^(i/16) 2^n e^r with |r| <= ln(2)/32.
HWY_INLINE V32 exp_for_bf16(V32 x) {
  const F32 d;
  // Outside of these the result is 0 or infinity in bf16. A NaN is the second operand, which these
  // instructions then give.
  const V32 bounded{
      _mm512_max_ps(_mm512_set1_ps(-104.0F), _mm512_min_ps(_mm512_set1_ps(89.0F), x.raw))};
  // Sixteenths are the last bits of numbers of this size: the sum rounds to them.
  const V32 sixteenths = hn::Set(d, 0x1.8p19F);
  const V32 shifted = hn::MulAdd(bounded, hn::Set(d, 0x1.715476p0F), sixteenths);
  const V32 n = hn::Sub(shifted, sixteenths);
  // ln 2 in two parts: n times the first is exact.
  V32 r = hn::NegMulAdd(n, hn::Set(d, 0x1.62Ep-1F), bounded);
  r = hn::NegMulAdd(n, hn::Set(d, 0x1.0BFBE8p-15F), r);
  V32 y = hn::MulAdd(r, hn::Set(d, 1.0F / 6), hn::Set(d, 0.5F));
  y = hn::Mul(hn::MulAdd(y, r, hn::Set(d, 1.0F)), r);
  const __m512 roots =  // 2^(i/16)
      _mm512_setr_ps(0x1p0F, 0x1.0b5586p0F, 0x1.172b84p0F, 0x1.2387a6p0F, 0x1.306fep0F,
                     0x1.3dea64p0F, 0x1.4bfdaep0F, 0x1.5ab07ep0F, 0x1.6a09e6p0F, 0x1.7a1148p0F,
                     0x1.8ace54p0F, 0x1.9c4918p0F, 0x1.ae89fap0F, 0x1.c199bep0F, 0x1.d5818ep0F,
                     0x1.ea4afap0F);
  const V32 root{_mm512_permutexvar_ps(_mm512_castps_si512(shifted.raw), roots)};
  y = hn::MulAdd(y, root, root);
  // Where the result is 0 in bf16, masked scores above all, it is 0 already: a product that is
  // subnormal costs the processor a hundred times as much.
  const __mmask16 above = _mm512_cmp_ps_mask(x.raw, _mm512_set1_ps(-93.0F), _CMP_NLE_UQ);
  return V32{_mm512_maskz_scalef_ps(above, y.raw, n.raw)};  // by 2^floor(n)
}
#else
// e^x in f32, good enough that rounding it to bf16 gives the correctly rounded bf16 for every bf16
// x; the tests prove it by trying all of them. e^x = 2^n e^r with |r| <= ln(2)/2.
HWY_INLINE V32 exp_for_bf16(V32 x) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  // Outside of these the result is 0 or infinity in bf16; NaNs are put back at the end.
  const V32 bounded = hn::Min(hn::Max(x, hn::Set(d, -104.0F)), hn::Set(d, 89.0F));
  const V32 n = hn::Round(hn::Mul(bounded, hn::Set(d, 0x1.715476p0F)));
  // ln 2 in two parts: n times the first is exact.
  V32 r = hn::NegMulAdd(n, hn::Set(d, 0x1.62Ep-1F), bounded);
  r = hn::NegMulAdd(n, hn::Set(d, 0x1.0BFBE8p-15F), r);
  V32 y = hn::Set(d, 1.0F / 5040);
  y = hn::MulAdd(y, r, hn::Set(d, 1.0F / 720));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0F / 120));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0F / 24));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0F / 6));
  y = hn::MulAdd(y, r, hn::Set(d, 0.5F));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0F));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0F));
  // Where the result is 0 in bf16, masked scores above all, it is 0 already: a product that is
  // subnormal costs the processor a hundred times as much.
  y = hn::IfThenElseZero(hn::Gt(x, hn::Set(d, -93.0F)), y);
  // 2^n in two factors, so that each is a normal number where 2^n is not.
  const auto n_int = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(n_int);
  const auto power_of_two = [&](auto exponent) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(exponent, hn::Set(di, 127))));
  };
  y = hn::Mul(hn::Mul(y, power_of_two(half)), power_of_two(hn::Sub(n_int, half)));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}
#endif

using F64 = hn::ScalableTag<double>;
using V64 = hn::Vec<F64>;
using HalfF32 = hn::Rebind<float, F64>;

// e^x in double to better than 2^-50, for -110 <= x <= 100.
HWY_INLINE V64 exp_double(V64 x) {
  const F64 d;
  const hn::RebindToSigned<F64> di;
  const V64 n = hn::Round(hn::Mul(x, hn::Set(d, 0x1.71547652B82FEp0)));
  V64 r = hn::NegMulAdd(n, hn::Set(d, 0x1.62E42FEEp-1), x);
  r = hn::NegMulAdd(n, hn::Set(d, 0x1.A39EF35793C76p-33), r);
  V64 y = hn::Set(d, 1.0 / 479001600);
  y = hn::MulAdd(y, r, hn::Set(d, 1.0 / 39916800));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0 / 3628800));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0 / 362880));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0 / 40320));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0 / 5040));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0 / 720));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0 / 120));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0 / 24));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0 / 6));
  y = hn::MulAdd(y, r, hn::Set(d, 0.5));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0));
  // n + 1023 in the low bits of the mantissa of 2^52 + 2^51 moves into the exponent by a shift.
  const auto shifted = hn::BitCast(di, hn::Add(n, hn::Set(d, 0x1.8p52 + 1023)));
  return hn::Mul(y, hn::BitCast(d, hn::ShiftLeft<52>(shifted)));
}

// e^x of a row of f32. Lanes whose double result lies too near to a midpoint of f32 are left to
// exp_fp(); there are a few in ten million.
HWY_INLINE void exp_f32(const float* in, float* out) {
  constexpr std::size_t kLanes = hn::MaxLanes(HalfF32());
  constexpr double kErrorBound = 0x1p-47;
  const F64 d;
  const HalfF32 df;
  const auto x = hn::LoadU(df, in);
  const auto bounded = hn::Min(hn::Max(x, hn::Set(df, -110.0F)), hn::Set(df, 100.0F));
  const V64 y = exp_double(hn::PromoteTo(d, bounded));
  const auto low = hn::DemoteTo(df, hn::Mul(y, hn::Set(d, 1 - kErrorBound)));
  const auto high = hn::DemoteTo(df, hn::Mul(y, hn::Set(d, 1 + kErrorBound)));
  const hn::RebindToUnsigned<HalfF32> du;
  const auto nan = hn::BitCast(df, hn::Set(du, 0x7FC00000));
  const auto result = hn::IfThenElse(hn::IsNaN(x), nan, low);
  if (HWY_LIKELY(hn::AllTrue(df, hn::Eq(low, high)))) {
    hn::StoreU(result, df, out);
    return;
  }
  HWY_ALIGN float inputs[kLanes], lows[kLanes], highs[kLanes];
  hn::Store(x, df, inputs);
  hn::Store(low, df, lows);
  hn::Store(high, df, highs);
  hn::StoreU(result, df, out);
  for (std::size_t i = 0; i < kLanes; ++i) {
    if (lows[i] == highs[i]) continue;
    out[i] = std::bit_cast<float>(exp_fp(kFp32, std::bit_cast<std::uint32_t>(inputs[i])));
  }
}

}  // namespace plena::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PLENA_NUMERICS_SIMD_EXP_INL_H_
