// Puts the nodes of a block into an order in which little waits, and gives their values registers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plena/compiler/dependence.h"
#include "plena/compiler/straight_block.h"

namespace plena {

struct BlockSchedule {
  std::vector<std::size_t> order;       // of the block's nodes
  std::vector<std::uint8_t> registers;  // of each web: gp or f number
  std::uint64_t cycles = 0;             // from the first issue to the last result
};

/// A few list schedules: at each cycle the node that can issue, the one on the longest path first.
/// None where the registers do not suffice.
std::vector<BlockSchedule> list_schedules(const StraightBlock& block,
                                          std::span<const DependenceNode> dependences);

/// The shortest of them.
std::optional<BlockSchedule> list_schedule(const StraightBlock& block,
                                           std::span<const DependenceNode> dependences);

/// Cycles of the nodes in the order they have.
std::uint64_t cycles_in_order(std::span<const DependenceNode> dependences);

}  // namespace plena
