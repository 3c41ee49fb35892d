#include "plena/runtime/expert_routing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "plena/numerics/float_format.h"
#include "plena/numerics/vector_kernels.h"

namespace plena {

void read_vector(const Machine& machine, std::uint64_t address, std::span<float> to) {
  const ElementType format = machine.vector_element();
  vector_kernels(format).to_f32(machine.vram.data() + address * storage_bytes(format), to.data(),
                                to.size());
}

void pick_experts(const HostRouting& routing, Machine& machine) {
  std::vector<float> logits(routing.experts);
  read_vector(machine, routing.logits_address, logits);
  for (float& logit : logits) {
    if (std::isnan(logit)) logit = -std::numeric_limits<float>::infinity();
  }
  std::vector<std::uint32_t> order(routing.experts);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::uint32_t expert) { return logits[expert]; });
  order.resize(std::min(routing.picks, routing.experts));

  std::vector<double> weights;
  for (const std::uint32_t expert : order) {
    weights.push_back(
        std::exp(static_cast<double>(logits[expert]) - static_cast<double>(logits[order[0]])));
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  weights.resize(routing.picks, 0.0);
  order.resize(routing.picks, 0);
  for (std::uint32_t i = 0; i < routing.picks; ++i) {
    machine.int_mem[routing.ids_address + i] = order[i];
    machine.fp_mem[routing.weights_address + i] =
        encode_fp(machine.scalar_element(), static_cast<float>(weights[i] / sum));
  }
}

}  // namespace plena
