// Picking experts on the host, for machines without the extension `moe`.
#pragma once

#include <cstdint>
#include <span>

#include "plena/compiler/image.h"
#include "plena/machine/machine.h"

namespace plena {

/// Reads elements of Vector SRAM from `address` on as floats.
void read_vector(const Machine& machine, std::uint64_t address, std::span<float> to);

/// Does what V_TOPK would: reads the router's logits, writes the ids of the best ones to INT_MEM
/// and the softmax over them to FP_MEM. A NaN ranks lowest, of equal logits the first is better.
void pick_experts(const HostRouting& routing, Machine& machine);

}  // namespace plena
