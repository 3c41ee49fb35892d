// Which instruction set the kernels use: chosen once a process, the fastest this CPU has, or what
// the environment variable PLENA_SIMD names (portable, avx2, avx512, avx512vbmi, amx). Every choice
// gives the same bits.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plena/base/error.h"

namespace plena {

enum class SimdTarget : std::uint8_t {
  Portable,    // plain C++
  Avx2,        // AVX2 with FMA
  Avx512,      // AVX-512 F, BW, DQ, VL, CD
  Avx512Vbmi,  // and what Ice Lake added: byte tables of 128 entries
  Amx,         // and a matrix unit for bf16, which the system lets us use
};

/// The target whose kernels serve where there are none for what `target` has more.
constexpr SimdTarget common_target(SimdTarget target) {
  return target > SimdTarget::Avx512 ? SimdTarget::Avx512 : target;
}

std::string_view simd_target_name(SimdTarget target);

/// Targets this CPU can run, slowest first; Portable is always one of them.
const std::vector<SimdTarget>& supported_simd_targets();

/// The target `name` means; an error where there is no such target or this CPU lacks it.
Result<SimdTarget> parse_simd_target(std::string_view name);

/// The target in use. A PLENA_SIMD that parse_simd_target() refuses has no effect here; a program
/// that wants to say so asks check_simd_environment().
SimdTarget simd_target();
Status check_simd_environment();

}  // namespace plena
