// Where the entry that decodes several sequences side by side keeps its rows and integers.
#pragma once

#include <cstdint>

#include "plena/compiler/block_plan.h"

namespace plena {

struct BatchPlan {
  std::uint32_t sequences = 1;  // 1: the program has no such entry
  BlockPlan block;              // of a token of each, and as many more as make whole BLENs

  // INT_MEM.
  Block inputs;    // [sequences][1 + MemoryPlan::position_inputs] what the host writes: token first
  Block counter;   // of the loop over sequences
  Block input_at;  // the inputs of the sequence in hand
  Block row_at;    // elements from the first sequence's row of a tile to its own
};

/// Elements of a region of the cache from one sequence's positions to the next one's.
std::uint64_t sequence_elements(const TiledGraph& tiled);

/// The plan for `sequences`, placed in `plan` as plan_block() does. 1 makes none.
Result<BatchPlan> plan_batch(const TiledGraph& tiled, const PlanInput& input,
                             const Settings& settings, MemoryPlan& plan);

}  // namespace plena
