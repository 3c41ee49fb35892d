// V_TOPK, the router of mixture-of-experts layers (semantics 8, extension `moe`).
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "plena/numerics/float_format.h"
#include "plena/sim/prepared.h"

namespace plena {

namespace {

constexpr std::size_t kMostLanes = 128;
constexpr std::size_t kMostChosen = 8;

struct Policy {
  std::size_t chosen;
  std::size_t lanes;
};
constexpr std::array<Policy, 2> kPolicies = {Policy{4, 32}, Policy{8, 128}};

// Higher value first, NaN last, equal values (and -0, +0) by index.
void rank(const float* values, std::size_t lanes, std::uint32_t* order) {
  std::iota(order, order + lanes, 0U);
  std::stable_sort(order, order + lanes, [&](std::uint32_t a, std::uint32_t b) {
    if (std::isnan(values[a]) || std::isnan(values[b]))
      return !std::isnan(values[a]) && std::isnan(values[b]);
    return values[a] > values[b];
  });
}

float exp_f32(float value) {
  return std::bit_cast<float>(exp_fp(kFp32, std::bit_cast<std::uint32_t>(value)));
}

// Softmax over the chosen values, all in f32: maximum subtracted, correctly rounded exp, tree sum,
// divide. All weights are 0 when nothing chosen is finite.
void softmax(const float* chosen, std::size_t n, float* weights) {
  if (std::none_of(chosen, chosen + n, [](float v) { return std::isfinite(v); })) {
    std::fill(weights, weights + n, 0.0F);
    return;
  }
  std::array<float, kMostChosen> terms;
  for (std::size_t k = 0; k < n; ++k) weights[k] = terms[k] = exp_f32(chosen[k] - chosen[0]);
  const float sum = tree_sum(terms.data(), n);
  for (std::size_t k = 0; k < n; ++k) weights[k] /= sum;
}

void require_entries(Execution& x, std::uint64_t address, std::size_t count, std::size_t size,
                     const char* operand, const char* memory) {
  x.require(address + count <= size, TrapCause::AddressOutOfRange, [&] {
    return std::pair(fmt::format("{} = {}, {} entries", operand, address, count),
                     fmt::format("{} has {} entries (semantics 6.15)", memory, size));
  });
}

}  // namespace

bool top_k(Execution& x, const Prepared& i) {
  const Policy policy = kPolicies[i.select];
  const std::uint64_t source = x.gp(i.rs1), indices = x.gp(i.rs2), weights = x.gp(i.rd);
  x.require(x.program.vlen_divisor.divides(source), TrapCause::MisalignedAddress, [&] {
    return std::pair(
        fmt::format("gp<rs1> = {}", source),
        fmt::format("a Vector SRAM row address is a multiple of VLEN = {}", x.program.vlen));
  });
  x.require(source + policy.lanes <= x.program.vram_elements, TrapCause::AddressOutOfRange, [&] {
    return std::pair(
        fmt::format("gp<rs1> = {}, {} lanes", source, policy.lanes),
        fmt::format("Vector SRAM has {} elements (semantics 6.15)", x.program.vram_elements));
  });
  require_entries(x, indices, policy.chosen, x.machine.int_mem.size(), "gp<rs2>", "INT_MEM");
  require_entries(x, weights, policy.chosen, x.machine.fp_mem.size(), "gp<rd>", "FP_MEM");
  if (x.faulted) return false;

  std::array<float, kMostLanes> values;
  std::array<std::uint32_t, kMostLanes> order;
  std::array<float, kMostChosen> chosen;
  std::array<float, kMostChosen> result;
  x.program.vector->to_f32(x.vram(source), values.data(), policy.lanes);
  rank(values.data(), policy.lanes, order.data());
  for (std::size_t k = 0; k < policy.chosen; ++k) chosen[k] = values[order[k]];
  softmax(chosen.data(), policy.chosen, result.data());
  for (std::size_t k = 0; k < policy.chosen; ++k) {
    x.machine.int_mem[indices + k] = order[k];
    x.machine.fp_mem[weights + k] = encode_fp(x.program.scalar_format, result[k]);
  }
  return true;
}

}  // namespace plena
