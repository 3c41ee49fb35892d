// The most f32 fused multiply-adds a core can do: what the matrix kernels are a share of.
#include <benchmark/benchmark.h>

#include "plena/numerics/simd_target.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace plena {
namespace {

constexpr int kSteps = 1024;
constexpr int kChains = 12;  // two units, latency 4, and some to spare

__attribute__((target("avx512f"))) void chains_avx512() {
  __m512 sums[kChains];
  const __m512 factor = _mm512_set1_ps(0.5F);
  for (__m512& sum : sums) sum = _mm512_set1_ps(1.0F);
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int chain = 0; chain < kChains; ++chain) {
      sums[chain] = _mm512_fmadd_ps(sums[chain], factor, factor);
    }
  }
  for (__m512& sum : sums) benchmark::DoNotOptimize(sum);
}

__attribute__((target("avx2,fma"))) void chains_avx2() {
  __m256 sums[kChains];
  const __m256 factor = _mm256_set1_ps(0.5F);
  for (__m256& sum : sums) sum = _mm256_set1_ps(1.0F);
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int chain = 0; chain < kChains; ++chain) {
      sums[chain] = _mm256_fmadd_ps(sums[chain], factor, factor);
    }
  }
  for (__m256& sum : sums) benchmark::DoNotOptimize(sum);
}

void run_chains(benchmark::State& state, void (*chains)(), int lanes) {
  for (auto _ : state) chains();
  const double fmas = double{kSteps} * kChains * lanes;
  state.counters["FMA/s"] = benchmark::Counter(fmas * static_cast<double>(state.iterations()),
                                               benchmark::Counter::kIsRate);
}

const bool kRegistered = [] {
  for (const SimdTarget target : supported_simd_targets()) {
    if (target == SimdTarget::Avx512) {
      benchmark::RegisterBenchmark("fma_peak/avx512", run_chains, chains_avx512, 16);
    } else if (target == SimdTarget::Avx2) {
      benchmark::RegisterBenchmark("fma_peak/avx2", run_chains, chains_avx2, 8);
    }
  }
  return true;
}();

}  // namespace
}  // namespace plena
#endif
