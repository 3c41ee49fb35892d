// Detection of the CPU's instruction sets and the override by environment.
#include "plena/numerics/simd_target.h"

#include <algorithm>
#include <cstdlib>

#include <sys/syscall.h>
#include <unistd.h>

namespace plena {

namespace {

constexpr SimdTarget kTargets[] = {SimdTarget::Portable, SimdTarget::Avx2, SimdTarget::Avx512,
                                   SimdTarget::Avx512Vbmi, SimdTarget::Amx};

// Linux hands out the registers of the matrix unit, 8 KiB of them, to processes that ask. Threads
// that are started later have them as well.
bool matrix_unit_is_ours() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
         ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// What Highway's targets of these names may use. Not hwy::SupportedTargets(): loading libhwy.so
// calibrates its timer, which takes 4 ms of every process; its headers alone are enough.
bool cpu_has(SimdTarget target) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  switch (target) {
    case SimdTarget::Avx2:
      return avx2;
    case SimdTarget::Avx512:
      return avx512;
    case SimdTarget::Avx512Vbmi:
    case SimdTarget::Amx: {
      const bool vbmi =
          avx512 && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
          __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bitalg") &&
          __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("gfni") &&
          __builtin_cpu_supports("vaes") && __builtin_cpu_supports("vpclmulqdq");
      return vbmi && (target == SimdTarget::Avx512Vbmi || matrix_unit_is_ours());
    }
    case SimdTarget::Portable:
      break;
  }
#endif
  return target == SimdTarget::Portable;
}

const char* environment_choice() {
  const char* name = std::getenv("PLENA_SIMD");
  return name != nullptr && *name != '\0' ? name : nullptr;
}

std::string supported_names() {
  std::string names;
  for (const SimdTarget target : supported_simd_targets()) {
    if (!names.empty()) names += ", ";
    names += simd_target_name(target);
  }
  return names;
}

}  // namespace

std::string_view simd_target_name(SimdTarget target) {
  switch (target) {
    case SimdTarget::Avx2:
      return "avx2";
    case SimdTarget::Avx512:
      return "avx512";
    case SimdTarget::Avx512Vbmi:
      return "avx512vbmi";
    case SimdTarget::Amx:
      return "amx";
    case SimdTarget::Portable:
      break;
  }
  return "portable";
}

const std::vector<SimdTarget>& supported_simd_targets() {
  static const std::vector<SimdTarget> targets = [] {
    std::vector<SimdTarget> found;
    std::copy_if(std::begin(kTargets), std::end(kTargets), std::back_inserter(found), cpu_has);
    return found;
  }();
  return targets;
}

Result<SimdTarget> parse_simd_target(std::string_view name) {
  for (const SimdTarget target : supported_simd_targets()) {
    if (simd_target_name(target) == name) return target;
  }
  return fail_with_hint(ErrorCode::Usage,
                        fmt::format("this CPU has no SIMD target called '{}'", name),
                        fmt::format("it has {}", supported_names()));
}

SimdTarget simd_target() {
  static const SimdTarget target = [] {
    const SimdTarget fastest = supported_simd_targets().back();
    const char* name = environment_choice();
    return name == nullptr ? fastest : parse_simd_target(name).value_or(fastest);
  }();
  return target;
}

Status check_simd_environment() {
  const char* name = environment_choice();
  if (name == nullptr) return {};
  auto target = parse_simd_target(name);
  if (target) return {};
  target.error().message += " (PLENA_SIMD)";
  return forward_error(target);
}

}  // namespace plena
