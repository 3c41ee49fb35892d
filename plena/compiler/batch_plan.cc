#include "plena/compiler/batch_plan.h"

namespace plena {

std::uint64_t sequence_elements(const TiledGraph& tiled) {
  return tiled.context_tiles * tiled.tile_elements();
}

Result<BatchPlan> plan_batch(const TiledGraph& tiled, const PlanInput& input,
                             const Settings& settings, MemoryPlan& plan) {
  BatchPlan batch;
  batch.sequences = input.sequences;
  if (batch.sequences == 1) return batch;
  if (!tiled.causal()) {
    return fail(ErrorCode::Unsupported, "a model that reads whole texts decodes no sequences");
  }
  const std::uint32_t blens = (batch.sequences + settings.blen - 1) / settings.blen;
  auto block = plan_block(tiled, input, settings, blens * settings.blen, plan, BlockUse::Sequences);
  if (!block) return forward_error(block);
  batch.block = *std::move(block);
  batch.inputs = plan.integers.place("inputs of sequences",
                                     batch.sequences * (1 + plan.position_inputs.count));
  batch.counter = plan.integers.place("loop over sequences", 1);
  batch.input_at = plan.integers.place("inputs of the sequence", 1);
  batch.row_at = plan.integers.place("rows of the sequence", 1);
  return batch;
}

}  // namespace plena
