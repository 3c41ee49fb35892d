#include "plena/compiler/memory_plan.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace plena {

namespace {

constexpr std::uint64_t kHbmAlignment = 64;  // bytes: two bursts
constexpr std::uint64_t kRegisterReach = std::uint64_t{1} << 32;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Places a tensor so that its scales fit as well, the same distance behind (semantics 5.5).
Result<HbmTensor> place_tensor(BlockAllocator& hbm, const std::string& name, std::uint64_t elements,
                               DataType type) {
  if (elements >= kRegisterReach) {
    return fail(ErrorCode::Unsupported, "{} takes {} elements, but an element offset has 32 bits",
                name, elements);
  }
  const std::uint64_t element_bytes = (elements * type.width() + 7) / 8;
  const std::uint64_t scale_bytes = type.is_mx() ? elements / type.block + 1 : 0;
  const Block block =
      hbm.place(name, round_up(std::max(element_bytes, scale_bytes), kHbmAlignment));
  return HbmTensor{block.first, elements};
}

Status place_hbm(MemoryPlan& plan, const PlanInput& input, const LlamaTiling& tiling,
                 const Settings& settings) {
  const std::uint64_t mlen = tiling.mlen;
  // A transfer always moves its whole amount; what lies behind the last row wanted is slack.
  const std::uint64_t tile_slack =
      std::uint64_t{settings.hbm_m_prefetch_amount - settings.mlen} * mlen;
  const std::uint64_t row_slack = std::uint64_t{settings.hbm_v_prefetch_amount} * mlen;

  plan.cache_stride = std::uint64_t{tiling.context_tiles} * tiling.tile_elements();
  const std::uint64_t stored =
      round_up(tiling.cache_tiles(), settings.hbm_v_writeback_amount) - tiling.cache_tiles();
  const std::uint64_t cache_regions = std::uint64_t{input.layers} * tiling.cache_tiles() + stored;

  auto weights =
      place_tensor(plan.hbm, "weights", input.weight_tiles * tiling.tile_elements() + tile_slack,
                   settings.hbm_m_weight_type);
  if (!weights) return tl::unexpected(weights.error());
  auto cache = place_tensor(plan.hbm, "KV cache", cache_regions * plan.cache_stride + tile_slack,
                            settings.hbm_m_kv_type);
  if (!cache) return tl::unexpected(cache.error());
  auto embedding = place_tensor(plan.hbm, "embedding",
                                std::uint64_t{input.vocab} * tiling.dim_tiles * mlen + row_slack,
                                settings.hbm_v_act_type);
  if (!embedding) return tl::unexpected(embedding.error());
  auto rope = place_tensor(plan.hbm, "rope table",
                           std::uint64_t{input.context} * input.rope_rows * mlen + row_slack,
                           settings.hbm_v_act_type);
  if (!rope) return tl::unexpected(rope.error());
  auto constants =
      place_tensor(plan.hbm, "constants", (selector_rows(tiling) + 2) * mlen + row_slack,
                   settings.hbm_v_act_type);
  if (!constants) return tl::unexpected(constants.error());
  plan.weights = *weights;
  plan.cache = *cache;
  plan.embedding = *embedding;
  plan.rope = *rope;
  plan.constants = *constants;

  const bool any_scales = settings.hbm_m_weight_type.is_mx() || settings.hbm_m_kv_type.is_mx() ||
                          settings.hbm_v_act_type.is_mx();
  if (any_scales) {
    plan.scale_offset = plan.hbm.used();
    plan.hbm.place("scales of all of them", plan.scale_offset);
  }
  if (plan.scale_offset >= kRegisterReach) {
    return fail(ErrorCode::Unsupported,
                "the tensors take {} bytes of HBM, but the distance to their scales has 32 bits",
                plan.scale_offset);
  }
  return {};
}

void place_vector_rows(MemoryPlan& plan, const PlanInput& input, const LlamaTiling& tiling,
                       const Settings& settings) {
  const std::uint64_t fetched = settings.hbm_v_prefetch_amount;
  const std::uint64_t heads = tiling.heads.heads_per_tile();
  const std::uint64_t queries = tiling.heads.query_tiles();
  plan.residual = plan.vram.place("residual", round_up(tiling.dim_tiles, fetched));
  plan.normed = plan.vram.place("normed", tiling.dim_tiles);
  plan.qkv = plan.vram.place(
      "q, k, v", queries + round_up(tiling.cache_tiles(), settings.hbm_v_writeback_amount));
  plan.heads = plan.vram.place("queries head by head", heads);
  plan.scores = plan.vram.place("scores", tiling.context_tiles * heads);
  plan.attention = plan.vram.place("attention", queries);
  plan.gate = plan.vram.place("gate, up", 2);
  plan.hidden = plan.vram.place("hidden", tiling.hidden_tiles);
  plan.logits = plan.vram.place("logits", tiling.vocab_tiles);
  plan.scratch = plan.vram.place("scratch", 1);
  plan.mask = plan.vram.place("causal mask", fetched);
  plan.rope_rows = plan.vram.place("cosines, sines", round_up(input.rope_rows, fetched));
  plan.selectors =
      plan.vram.place("zeros, slot selectors", round_up(selector_rows(tiling), fetched));
}

void place_tiles(MemoryPlan& plan, const LlamaTiling& tiling, const Settings& settings) {
  const std::uint64_t fetched = settings.hbm_m_prefetch_amount / settings.mlen;
  plan.rotation = plan.mram.place("RoPE permutation", 1);
  plan.stage = plan.mram.place("tile in use", fetched);
  const std::uint64_t wanted = tiling.context_tiles + fetched - 1;
  const std::uint64_t left =
      plan.mram.capacity() - std::min(plan.mram.used(), plan.mram.capacity());
  if (wanted <= left) plan.value_tiles = plan.mram.place("V tiles", wanted);
}

void place_scalars(MemoryPlan& plan) {
  plan.norm_bias = plan.fp.place("dim * epsilon", 1);
  plan.one = plan.fp.place("one", 1);
  plan.lowest = plan.fp.place("lowest", 1);
  plan.token = plan.integers.place("token", 1);
  plan.cache_row = plan.integers.place("cache row", 1);
  plan.rope_row = plan.integers.place("rope row", 1);
  plan.cache_span = plan.integers.place("cache span", 1);
  plan.score_span = plan.integers.place("score span", 1);
  plan.last_lane = plan.integers.place("last lane", 1);
}

}  // namespace

std::uint64_t selector_rows(const LlamaTiling& tiling) {
  return 1 + std::uint64_t{tiling.heads.slots};
}

BlockAllocator::BlockAllocator(std::string memory, std::uint64_t capacity, std::string unit)
    : memory_(std::move(memory)), capacity_(capacity), unit_(std::move(unit)) {}

Block BlockAllocator::place(std::string name, std::uint64_t count) {
  blocks_.push_back({std::move(name), used_, count});
  used_ += count;
  return blocks_.back();
}

Status BlockAllocator::status() const {
  if (used_ <= capacity_) return {};
  const auto largest = std::ranges::max_element(blocks_, {}, &Block::count);
  return fail(ErrorCode::Unsupported,
              "the model needs {} {} of {}, which has {}; the largest block is '{}' with {}", used_,
              unit_, memory_, capacity_, largest->name, largest->count);
}

Status check_blocks(const std::vector<Block>& blocks, std::uint64_t capacity) {
  std::vector<Block> sorted = blocks;
  std::ranges::sort(sorted, {}, &Block::first);
  std::uint64_t end = 0;
  for (const Block& block : sorted) {
    if (block.first < end || block.count > capacity || block.first > capacity - block.count) {
      return fail(ErrorCode::Unsupported, "block '{}' overlaps another or leaves its memory",
                  block.name);
    }
    end = block.first + block.count;
  }
  return {};
}

Status MemoryPlan::check() const {
  for (const BlockAllocator* memory : {&hbm, &vram, &mram, &fp, &integers}) {
    if (auto fits = memory->status(); !fits) return fits;
    if (auto apart = check_blocks(memory->blocks(), memory->capacity()); !apart) return apart;
  }
  return {};
}

Result<MemoryPlan> plan_memory(const PlanInput& input, const LlamaTiling& tiling,
                               const Settings& settings) {
  const std::uint64_t reachable_rows = kRegisterReach / settings.vlen;
  MemoryPlan plan{
      .hbm = BlockAllocator("HBM", settings.hbm_size, "bytes"),
      .vram = BlockAllocator("Vector SRAM", std::min(settings.vector_sram_size, reachable_rows),
                             "rows"),
      .mram = BlockAllocator("Matrix SRAM", settings.matrix_sram_size / settings.mlen, "tiles"),
      .fp = BlockAllocator("FP_MEM", settings.fp_sram_depth, "entries"),
      .integers = BlockAllocator("INT_MEM", settings.int_sram_depth, "entries")};
  if (auto placed = place_hbm(plan, input, tiling, settings); !placed) {
    return tl::unexpected(placed.error());
  }
  place_vector_rows(plan, input, tiling, settings);
  place_tiles(plan, tiling, settings);
  place_scalars(plan);
  if (auto checked = plan.check(); !checked) return tl::unexpected(checked.error());
  return plan;
}

}  // namespace plena
