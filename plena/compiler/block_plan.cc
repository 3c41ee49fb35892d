#include "plena/compiler/block_plan.h"

#include <algorithm>

#include <fmt/format.h>

namespace plena {

namespace {

constexpr std::uint64_t whole_multiple(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// When the rows of a block are in use: in the entry of prompts, whose ending decoding computes
// where one token's logits are wanted, or all through that of sequences.
class BlockLives {
 public:
  BlockLives(const MemoryPlan& plan, const PlanInput& input, BlockUse use)
      : plan_(plan), own_ending_(input.all_logits), prompt_(use == BlockUse::Prompt) {}

  [[nodiscard]] Life of_value(ValueId id) const {
    return prompt_ ? chosen([life = plan_.step_order.of_value(ProgramEntry::Prompt, id)](
                                std::size_t step, const Step&) { return life.has(step); })
                   : all();
  }
  // Where one of the operators is at work that `Ops` names.
  template <class... Ops>
  [[nodiscard]] Life during() const {
    return prompt_ ? chosen([](std::size_t, const Step& step) {
      return step.op != nullptr && (std::holds_alternative<Ops>(*step.op) || ...);
    })
                   : all();
  }
  [[nodiscard]] Life embedding() const {
    return prompt_ ? chosen([](std::size_t, const Step& step) {
      return step.stage == Step::Stage::Embedding;
    })
                   : all();
  }
  [[nodiscard]] Life all() const {
    if (!prompt_) return plan_.step_order.all(ProgramEntry::Sequences);
    return chosen(
        [](std::size_t, const Step& step) { return step.stage != Step::Stage::HandOver; });
  }

 private:
  template <class Chosen>
  [[nodiscard]] Life chosen(Chosen&& is_chosen) const {
    std::size_t step = 0;
    return plan_.widened(plan_.step_order.where([&](const Step& s) {
      const bool own = s.stage != Step::Stage::Ending || own_ending_;
      return is_chosen(step++, s) && s.entry == ProgramEntry::Prompt && own;
    }));
  }

  const MemoryPlan& plan_;
  bool own_ending_;
  bool prompt_;
};

// A block of rows with kLeadRows before it.
Block place_behind_lead(MemoryPlan& plan, const std::string& name, std::uint64_t rows,
                        const Life& life) {
  Block block = plan.vram.place(name, BlockPlan::kLeadRows + rows, life);
  block.first += BlockPlan::kLeadRows;
  block.count = rows;
  return block;
}

void place_values(BlockPlan& block, const TiledGraph& tiled, const PlanInput& input,
                  MemoryPlan& plan, std::uint64_t slack, BlockUse use) {
  const BlockLives lives(plan, input, use);
  block.query_rows = block.packing.empty() ? tiled.heads.query_rows() : block.packing.rows;
  for (ValueId id = 0; id < tiled.graph->values.size(); ++id) {
    const Value& value = tiled.graph->values[id];
    std::uint64_t rows = rows_at_once(tiled, input, id);
    if (value.layout == Layout::Qkv) rows = block.query_rows + 2 * tiled.heads.key_rows();
    // One token's logits are left to decoding.
    const bool one_token =
        id == tiled.graph->logits && !input.all_logits && use == BlockUse::Prompt;
    // Lanes that nobody writes are 0 as long as nobody else has them.
    const bool partly = has_lanes_of_nobody(tiled, value) ||
                        (value.layout == Layout::Qkv && !block.packing.empty());
    if (one_token) {
      block.values.emplace_back();
      continue;
    }
    block.values.push_back(place_behind_lead(plan, value.name + " of a block",
                                             rows * block.tokens + slack,
                                             partly ? Life() : lives.of_value(id)));
  }
}

// Maxima wait in FP_MEM where scores come tile by tile, or where the array leaves time to find
// those of a tile while it makes the next one's (block_maxima.h), if there is room.
void place_maxima(BlockPlan& block, MemoryPlan& plan, const Life& attention) {
  constexpr std::uint64_t kConstants = 256;   // entries, at most
  constexpr std::uint64_t kMostProducts = 8;  // as stretches of code
  if (block.tile_by_tile) {
    block.maxima = plan.fp.place("maxima of a block's scores", block.score_rows, attention);
    return;
  }
  const std::uint64_t entries = kScoresAbreast + block.score_rows;
  const std::uint64_t products = std::uint64_t{block.packing.families} * block.packing.packs;
  if (products == 0 || products > kMostProducts) return;
  if (plan.fp.used() + entries + kConstants > plan.fp.capacity()) return;
  const Block all = plan.fp.place("lowest, maxima of a block's scores", entries, attention);
  block.lowest = {"lowest", all.first, kScoresAbreast};
  block.maxima = {"maxima", all.first + kScoresAbreast, block.score_rows};
}

void place_scores(BlockPlan& block, const TiledGraph& tiled, const PlanInput& input,
                  const Settings& settings, MemoryPlan& plan) {
  const HeadLayout& heads = tiled.heads;
  const bool packed = !block.packing.empty();
  const Life attention = BlockLives(plan, input, BlockUse::Prompt).during<AttentionOp>();
  block.rows_per_head = packed ? settings.mlen : block.tokens;
  block.score_rows = whole_multiple(heads.heads_per_tile() * block.rows_per_head, kScoresAbreast);
  // M_BMM_WO writes the rows of slots without a head as well.
  const std::uint64_t behind =
      packed ? std::uint64_t{settings.mlen / settings.hlen} * settings.mlen : 0;
  const std::uint64_t sets = block.tile_by_tile ? 2 : std::uint64_t{tiled.context_tiles} + 2;
  block.scores = plan.vram.place("scores of a block", sets * block.score_rows + behind, attention);
  place_maxima(block, plan, attention);
  if (heads.slots > 1 && !packed) {
    block.heads =
        plan.vram.place("queries head by head", heads.heads_per_tile() * block.tokens, attention);
  }
  // Of these only the lanes of heads are written, or the first ones.
  const std::uint64_t sums = std::uint64_t{heads.groups} * block.tokens;
  block.weighted = plan.vram.place("weighted sums of V", sums * heads.span);
  block.weights = plan.vram.place("sums of weights", sums);
  block.quotients = plan.vram.place("1 / sums of weights", block.tokens);
  block.denominators = plan.vram.place("denominators", sums * heads.tiles);
}

void place_stages(BlockPlan& block, const TiledGraph& tiled, const PlanInput& input,
                  MemoryPlan& plan, BlockUse use) {
  const BlockLives lives(plan, input, use);
  const std::uint64_t tokens = block.tokens;
  const std::uint64_t hidden = tokens * tiled.hidden_tiles;
  const Life feed_forward = lives.during<FeedForwardOp>();
  block.gate = plan.vram.place("gate of a block", hidden, feed_forward);
  block.up = place_behind_lead(plan, "up of a block", hidden, feed_forward);
  // Experts use it, too, one token after the other.
  if (input.activation_stage) {
    block.activation = plan.vram.place("stage of its activation", hidden,
                                       lives.during<FeedForwardOp, ExpertsOp>());
  }
  if (tiled.rotates()) {
    // Products of packed rows leave out lanes that no head has.
    const bool partly = !block.packing.empty();
    block.rotated = plan.vram.place("q, k of a block between products", tokens,
                                    partly ? Life() : lives.during<RotateOp>());
    if (partly) {
      block.rotated_keys = plan.vram.place("keys of a block between products", tokens);
    }
  }
  block.partials =
      plan.vram.place("partial sums of a block", tokens, lives.during<ProductOp, FeedForwardOp>());
  block.scratch = plan.vram.place("scratch of a block", 3 * kRowsAbreast, lives.all());
}

void place_rows(BlockPlan& block, const TiledGraph& tiled, const PlanInput& input,
                const Settings& settings, MemoryPlan& plan, BlockUse use) {
  const BlockLives lives(plan, input, use);
  const std::uint64_t tokens = block.tokens;
  const std::uint64_t slack =
      std::max(settings.hbm_v_prefetch_amount, settings.hbm_v_writeback_amount) - 1;
  place_values(block, tiled, input, plan, slack, use);
  place_stages(block, tiled, input, plan, use);
  if (use == BlockUse::Sequences) return;
  place_scores(block, tiled, input, settings, plan);
  block.mask = plan.vram.place("causal mask of a block", tokens + slack, lives.all());
  block.first_lane = plan.vram.place("first lane", 1 + slack, lives.all());
  for (const std::uint32_t window : tiled.windows) {
    block.windows[window].masks =
        plan.vram.place(fmt::format("masks of window {}", window), 2 * tokens + slack, lives.all());
  }
  if (input.positions.rows != 0) {
    block.position_rows = plan.vram.place(
        "rows of a block's positions", tokens * input.positions.stored_rows() + slack, lives.all());
  }
  block.staged_rows = whole_multiple(tiled.dim_tiles, settings.hbm_v_prefetch_amount);
  block.staged =
      plan.vram.place("embeddings of a block", tokens * block.staged_rows, lives.embedding());
}

// Among the tiles of the plan, for MemoryPlan::check(): those of a block are in use in its own
// entry alone; sequences have all but the permutation of RoPE, which comes first, while none of
// them is taken by itself.
void list_tiles(const BlockPlan& block, MemoryPlan& plan, BlockUse use) {
  const bool prompt = use == BlockUse::Prompt;
  for (const Block& tiles : block.mram.blocks()) {
    const bool always = &tiles == &block.mram.blocks().front();
    const Life life = plan.step_order.where([&](const Step& step) {
      if (!prompt) return step.entry == ProgramEntry::Sequences && (always || !is_positioned(step));
      return step.entry == ProgramEntry::Prompt &&
             (step.stage != Step::Stage::Ending || block.all_logits);
    });
    plan.mram.place_at(tiles.name + (prompt ? ", blocks" : ", sequences"), tiles.first, tiles.count,
                       life);
  }
}

Status place_block_tiles(BlockPlan& block, const TiledGraph& tiled, const Settings& settings,
                         MemoryPlan& plan, BlockUse use) {
  const std::uint64_t slack = settings.hbm_m_prefetch_amount / settings.mlen - 1;
  // Sequences meet the cache as decoding does, whose constant tiles stay where they are.
  const bool prompt = use == BlockUse::Prompt;
  const bool kept = !prompt && plan.ones.count != 0;
  block.mram =
      BlockAllocator("Matrix SRAM", kept ? plan.ones.first : plan.mram.capacity(), "tiles");
  block.mram.place("RoPE permutation", plan.rotation.count);
  if (tiled.experts != 0) block.mram.place("tiles of experts", plan.stage.count);
  if (prompt) {
    block.ones = block.mram.place("ones", 1);
    block.spread = block.mram.place("first lanes to slots", 1);
  }
  const std::uint64_t used = std::min(block.mram.used(), block.mram.capacity());
  block.slot_pitch = tiled.heads.span + slack;
  block.pool = block.mram.place("weights or K, V of a block",
                                std::max(block.mram.capacity() - used, block.slot_pitch));
  block.slots = 2 * block.slot_pitch <= block.pool.count ? 2 : 1;
  if (block.tile_by_tile) {
    block.value_slot = std::min<std::uint64_t>(block.pool.count / block.slot_pitch, 3) - 1;
    if (block.value_slot < 2) block.slots = 1;
  }
  if (auto fits = block.mram.status(); !fits) return fits;
  list_tiles(block, plan, use);
  return {};
}

void place_integers(BlockPlan& block, const TiledGraph& tiled, MemoryPlan& plan) {
  block.expert_tokens = plan.integers.place("loop over tokens", 1);
  block.expert_token = plan.integers.place("rows of the token", 1);
  block.kv_tiles = plan.integers.place("loop over tiles of K lanes", 1);
  block.walk_at = plan.integers.place("tile of positions", 1);
  block.walk_end = plan.integers.place("end of the tiles in sight", 1);
  block.walk_left = plan.integers.place("distance between them", 1);
  block.score_at = plan.integers.place("scores of the tile", 1);
  block.score_end = plan.integers.place("end of a block's scores", 1);
  if (block.tile_by_tile) block.edge_left = plan.integers.place("tiles to the edge", 1);
  block.outputs_at = plan.integers.place("outputs of the tile", 1);
  block.sums_at = plan.integers.place("denominators of the tile", 1);
  block.product_counter = plan.integers.place("loop over output tiles", 1);
  block.product_output = plan.integers.place("output tile", 1);
  block.product_bias = plan.integers.place("bias of the output tile", 1);
  for (const std::uint32_t window : tiled.windows) {
    BlockWindow& places = block.windows[window];
    places.first_tile = plan.integers.place(fmt::format("first tile of a block, {}", window), 1);
    places.edge = plan.integers.place(fmt::format("edge of window {}", window), 1);
    places.edge_lane = plan.integers.place(fmt::format("lane of its edge, {}", window), 1);
  }
}

}  // namespace

Result<BlockPlan> plan_block(const TiledGraph& tiled, const PlanInput& input,
                             const Settings& settings, std::uint32_t tokens, MemoryPlan& plan,
                             BlockUse use) {
  BlockPlan block;
  block.tokens = tokens;
  block.all_logits = input.all_logits || use == BlockUse::Sequences;
  block.tile_by_tile = use == BlockUse::Prompt && input.running != RunningSoftmax::None;
  if (auto fits = place_block_tiles(block, tiled, settings, plan, use); !fits) {
    return forward_error(fits);
  }
  // Packed outputs are complete at once: all their inputs are on chip.
  const bool whole = 2 * tiled.dim_tiles * block.slot_pitch <= block.pool.count;
  if (use == BlockUse::Prompt && tokens == settings.mlen && whole)
    block.packing = pack_queries(tiled, settings);
  place_rows(block, tiled, input, settings, plan, use);
  place_integers(block, tiled, plan);
  return block;
}

std::uint32_t block_size(const TiledGraph& tiled, const Settings& settings, std::uint32_t most) {
  // A window that may begin and end in one tile is only known how to be masked for whole tiles.
  const bool whole_tiles = std::ranges::any_of(
      tiled.windows, [&](std::uint32_t window) { return window <= tiled.mlen; });
  std::uint32_t tokens = tiled.mlen;
  while (tokens > most || tokens % settings.hbm_v_writeback_amount != 0) {
    if (whole_tiles || tokens % 2 != 0) return 1;
    tokens /= 2;
  }
  return tokens % settings.blen == 0 ? tokens : 1;
}

}  // namespace plena
