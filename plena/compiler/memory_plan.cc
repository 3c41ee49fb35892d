#include "plena/compiler/memory_plan.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace plena {

namespace {

constexpr std::uint64_t kHbmAlignment = 64;  // bytes: two bursts
constexpr std::uint64_t kRegisterReach = std::uint64_t{1} << 32;
constexpr std::uint64_t kMostPicks = 8;  // of V_TOPK

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

// Elements of a table, the rows an H_PREFETCH_V loads beyond those wanted included.
std::uint64_t table_elements(const TableShape& table, std::uint64_t mlen, std::uint64_t row_slack) {
  return table.rows == 0 ? 0 : table.entries * table.stored_rows() * mlen + row_slack;
}

struct TensorToPlace {
  HbmTensor& place;
  const char* name;
  std::uint64_t elements;
  DataType type;
};

Status place_hbm(MemoryPlan& plan, const TiledGraph& tiled, const PlanInput& input,
                 const Settings& settings) {
  const Graph& graph = *tiled.graph;
  const std::uint64_t mlen = tiled.mlen;
  // A transfer always moves its whole amount; what lies behind the last row wanted is slack.
  const std::uint64_t tile_slack =
      std::uint64_t{settings.hbm_m_prefetch_amount - settings.mlen} * mlen;
  const std::uint64_t row_slack = std::uint64_t{settings.hbm_v_prefetch_amount} * mlen;

  plan.cache_stride = std::uint64_t{tiled.context_tiles} * tiled.tile_elements();
  const std::uint64_t stored =
      round_up(tiled.cache_regions(), settings.hbm_v_writeback_amount) - tiled.cache_regions();
  const std::uint64_t cache_regions =
      std::uint64_t{graph.layers.size()} * tiled.cache_regions() + stored;
  const DataType act = settings.hbm_v_act_type;
  const TensorToPlace tensors[] = {
      {plan.weights, "weights", tiled.weight_tiles * tiled.tile_elements() + tile_slack,
       settings.hbm_m_weight_type},
      {plan.cache, "KV cache", cache_regions * plan.cache_stride + tile_slack,
       settings.hbm_m_kv_type},
      {plan.embedding, "embedding", std::uint64_t{graph.vocab} * tiled.dim_tiles * mlen + row_slack,
       act},
      {plan.position_table, "position table", table_elements(input.positions, mlen, row_slack),
       act},
      {plan.vector_table, "biases and gains", table_elements(input.vectors, mlen, row_slack), act},
      {plan.expert_table, "biases of experts",
       table_elements(input.expert_vectors, mlen, row_slack), act},
      {plan.constants, "constants", constant_rows(tiled).count * mlen + row_slack, act}};
  for (const TensorToPlace& tensor : tensors) {
    if (tensor.elements == 0) continue;
    auto placed = place_tensor(plan.hbm, tensor.name, tensor.elements, tensor.type);
    if (!placed) return tl::unexpected(placed.error());
    tensor.place = *placed;
  }
  const bool any_scales =
      settings.hbm_m_weight_type.is_mx() || settings.hbm_m_kv_type.is_mx() || act.is_mx();
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

// Rows of a value, and behind the last one room for transfers of whole amounts and write-outs of
// BLEN rows.
std::uint64_t value_rows(const TiledGraph& tiled, ValueId id, const Settings& settings) {
  const std::uint64_t slack =
      std::max({settings.hbm_v_prefetch_amount, settings.hbm_v_writeback_amount, settings.blen}) -
      1;
  return tiled.rows(id) + slack;
}

void place_vector_rows(MemoryPlan& plan, const TiledGraph& tiled, const PlanInput& input,
                       const Settings& settings) {
  const std::uint64_t fetched = settings.hbm_v_prefetch_amount;
  const std::uint64_t heads = tiled.heads.heads_per_tile();
  const std::uint64_t slack = fetched - 1;
  for (ValueId id = 0; id < tiled.graph->values.size(); ++id) {
    plan.values.push_back(
        plan.vram.place(tiled.graph->values[id].name, value_rows(tiled, id, settings)));
  }
  plan.heads = plan.vram.place("queries head by head", heads);
  plan.no_scores = plan.vram.place("lowest scores", heads);  // right before the scores
  plan.scores = plan.vram.place("scores", tiled.context_tiles * heads + settings.blen - 1);
  plan.group_sums = plan.vram.place("sums of weights", tiled.heads.groups + settings.blen - 1);
  plan.group_scales = plan.vram.place("1 / sum by lanes", tiled.heads.groups);
  const std::uint64_t hidden = tiled.hidden_tiles;
  plan.gate = plan.vram.place("gate, up", 2 * hidden);
  plan.activation = plan.vram.place("stage of the activation", hidden);
  if (tiled.rotates()) {
    plan.rotated =
        plan.vram.place("q, k between products", tiled.heads.query_rows() + tiled.heads.key_rows());
  }
  plan.partials = plan.vram.place("partial sums", tiled.dim_tiles);
  plan.scratch = plan.vram.place("scratch", 4);
  plan.mask = plan.vram.place("causal mask", 1 + slack);
  for (const std::uint32_t window : tiled.windows) {
    plan.windows[window].mask =
        plan.vram.place(fmt::format("mask of window {}", window), 1 + slack);
  }
  const auto place_table = [&](const char* name, const TableShape& table) {
    return table.rows == 0 ? Block{}
                           : plan.vram.place(name, round_up(table.stored_rows(), fetched));
  };
  if (input.positions.rows != 0) {
    plan.position_rows =
        plan.vram.place("rows of the position", input.positions.stored_rows() + slack);
  }
  plan.vectors = place_table("biases and gains", input.vectors);
  plan.expert_vectors = place_table("biases of the expert", input.expert_vectors);
  const ConstantRows constants = constant_rows(tiled);
  plan.selectors =
      plan.vram.place("zeros, slot selectors", round_up(constants.router_padding, fetched));
  if (constants.router_rows != 0) {
    plan.router_padding =
        plan.vram.place("lanes without experts", round_up(constants.router_rows, fetched));
  }
}

// Two slots of weight tiles, as large as a quarter of what there is allows, or one; then the
// cache's.
void place_tiles(MemoryPlan& plan, const TiledGraph& tiled, const Settings& settings) {
  constexpr std::uint64_t kLeastUseful = 8;  // transfers that may be under way
  const std::uint64_t slack = settings.hbm_m_prefetch_amount / settings.mlen - 1;
  const std::uint64_t span = tiled.heads.span;
  if (tiled.rotates()) plan.rotation = plan.mram.place("RoPE permutation", 1);
  const std::uint64_t room =
      plan.mram.capacity() - std::min(plan.mram.used(), plan.mram.capacity());
  const std::uint64_t wanted = std::max<std::uint64_t>(tiled.most_inputs, kLeastUseful);
  plan.slot_tiles = std::clamp<std::uint64_t>(room / 4, 1, wanted);
  plan.slot_pitch = plan.slot_tiles + slack;
  plan.slots = 2 * plan.slot_pitch + span + slack <= room ? 2 : 1;
  if (plan.slots == 1) {
    plan.slot_tiles = 1;
    plan.stage = plan.mram.place("tiles in use", span + slack);
    plan.cache_stage = plan.stage;
    return;
  }
  plan.stage = plan.mram.place("slots of weight tiles", 2 * plan.slot_pitch);
  plan.cache_stage = plan.mram.place("cache tiles in use", span + slack);
  const std::uint64_t context = std::uint64_t{tiled.context_tiles} * span + slack;
  if (2 * context > plan.mram.capacity() - plan.mram.used()) return;
  plan.key_tiles = plan.mram.place("K tiles", context);
  plan.value_tiles = plan.mram.place("V tiles", context);
  if (2 * (1 + slack) > plan.mram.capacity() - plan.mram.used()) return;
  plan.ones = plan.mram.place("ones", 1 + slack);
  plan.spread = plan.mram.place("first lanes to slots", 1 + slack);
}

void place_scalars(MemoryPlan& plan, const TiledGraph& tiled, std::uint64_t tokens) {
  const Graph& graph = *tiled.graph;
  plan.score_maxima = plan.fp.place("maxima of scores", tiled.heads.heads_per_tile());
  plan.head_scales = plan.fp.place("reciprocals of sums", tiled.heads.heads_per_tile());
  const bool sinks =
      std::ranges::any_of(graph.layers, [](const Layer& l) { return !l.sinks.empty(); });
  if (sinks) {
    plan.sinks = plan.fp.place(
        "sinks", graph.layers.size() * tiled.heads.tiles * tiled.heads.heads_per_tile());
  }
  plan.token = plan.integers.place("token", tokens);
  plan.cache_row = plan.integers.place("cache row", 1);
  plan.position_entry = plan.integers.place("position entry", 1);
  plan.cache_end = plan.integers.place("cache end", 1);
  plan.newest_tile = plan.integers.place("newest tile", 1);
  plan.older_tile = plan.integers.place("tile before it", 1);
  plan.last_lane = plan.integers.place("last lane", 1);
  for (const std::uint32_t window : tiled.windows) {
    WindowPlaces& places = plan.windows[window];
    places.first_tile = plan.integers.place(fmt::format("first tile, window {}", window), 1);
    places.first_lane = plan.integers.place(fmt::format("first lane, window {}", window), 1);
  }
  if (tiled.experts != 0) {
    plan.expert_weights = plan.fp.place("weights of the experts", kMostPicks);
    plan.experts = plan.integers.place("experts chosen", kMostPicks);
  }
  plan.last_token = plan.integers.place("last token", 1);
  plan.keys_at = plan.integers.place("regions of the tile", 1);
  plan.queries_at = plan.integers.place("queries of the tile", 1);
  plan.last_scores = plan.integers.place("scores of the newest tile", 1);
  plan.layer_loops = plan.integers.place("loops over layers", 2);
  plan.cache_at = plan.integers.place("cache of the layer", 1);
  plan.vectors_at = plan.integers.place("vectors of the layer", 1);
  plan.expert_vectors_at = plan.integers.place("vectors of its experts", 1);
  plan.sinks_at = plan.integers.place("sinks of the layer", 1);
}

}  // namespace

ConstantRows constant_rows(const TiledGraph& tiled) {
  ConstantRows rows;
  rows.router_padding = 1 + std::uint64_t{tiled.heads.slots};
  if (tiled.experts != 0) rows.router_rows = tiles_of(tiled.router.lanes, tiled.mlen);
  rows.mask = rows.router_padding + rows.router_rows;
  rows.triangle = rows.mask + 5;
  rows.count = rows.triangle + (tiled.attends() && tiled.causal() ? tiled.mlen : 0);
  return rows;
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

Result<MemoryPlan> plan_memory(const TiledGraph& graph, const PlanInput& input,
                               const Settings& settings) {
  const std::uint64_t reachable_rows = kRegisterReach / settings.vlen;
  MemoryPlan plan{
      .hbm = BlockAllocator("HBM", settings.hbm_size, "bytes"),
      .vram = BlockAllocator("Vector SRAM", std::min(settings.vector_sram_size, reachable_rows),
                             "rows"),
      .mram = BlockAllocator("Matrix SRAM", settings.matrix_sram_size / settings.mlen, "tiles"),
      .fp = BlockAllocator("FP_MEM", settings.fp_sram_depth, "entries"),
      .integers = BlockAllocator("INT_MEM", settings.int_sram_depth, "entries")};
  if (auto placed = place_hbm(plan, graph, input, settings); !placed) {
    return tl::unexpected(placed.error());
  }
  place_vector_rows(plan, graph, input, settings);
  place_tiles(plan, graph, settings);
  place_scalars(plan, graph, input.tokens);
  if (auto checked = plan.check(); !checked) return tl::unexpected(checked.error());
  return plan;
}

}  // namespace plena
