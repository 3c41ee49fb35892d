#include "plena/compiler/program.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "plena/compiler/block_kernels.h"
#include "plena/compiler/layer_walk.h"
#include "plena/compiler/logit_pieces.h"
#include "plena/compiler/schedule.h"

namespace plena {

namespace {

// One operator of a layer.
struct EmitOperator {
  const KernelContext& context;
  const LayerKind& kind;
  std::optional<LateNorm> norm;  // of what the product or feed-forward layer reads

  void operator()(const NormOp& op) const { emit_norm(context, kind, op); }
  void operator()(const ProductOp& op) const {
    emit_product(context, kind, op, norm);
    const AttentionOp* reader = attention_of(op.to);
    if (reader != nullptr && context.pipeline.cache_ahead == nullptr) {
      emit_early_cache_load(context, *reader);
    }
  }
  void operator()(const HeadNormOp& op) const { emit_head_norm(context, kind, op); }
  void operator()(const RotateOp& op) const { emit_rotation(context, op, norm); }
  void operator()(const AttentionOp& op) const { emit_attention(context, op); }
  void operator()(const FeedForwardOp& op) const { emit_feed_forward(context, kind, op, norm); }
  void operator()(const ExpertsOp& op) const { emit_experts(context, kind, op); }
  void operator()(const SoftCapOp& op) const { emit_soft_cap(context, op); }

  // The attention that reads a product's outputs, if there is one.
  [[nodiscard]] const AttentionOp* attention_of(ValueId qkv) const {
    for (const Operator& op : kind.operators) {
      const auto* attention = std::get_if<AttentionOp>(&op);
      if (attention != nullptr && attention->qkv == qkv) return attention;
    }
    return nullptr;
  }
};

// Moves on what the program keeps of where a tensor of the layer starts.
void advance_kept(const KernelContext& context, const Block& place, std::uint64_t amount) {
  Emitter& e = context.emitter;
  HeldGp at(e, place.name);
  load_kept(context, at, place, place.name);
  e.advance(at, amount, "of the next layer");
  keep(context, at, place);
}

// How a product's tiles come; none for what reads no weights from the stream one by one.
struct FirstGroup {
  const KernelContext& context;

  TileGroup operator()(const ProductOp& op) const {
    std::uint64_t outputs = 0;
    for (const MatrixUse& use : op.matrices) outputs += context.tiled.rows(use.outputs, use.width);
    return tile_group(context.plan, context.tiled.rows(op.from), outputs);
  }
  TileGroup operator()(const FeedForwardOp& op) const {
    const std::uint64_t outputs = (op.gated ? 2U : 1U) * context.tiled.rows(op.to);
    return tile_group(context.plan, context.tiled.rows(op.from), outputs);
  }
  template <class Other>
  TileGroup operator()(const Other&) const {
    return {};
  }
};

std::uint64_t first_tiles(const KernelContext& context, const Operator& op) {
  return std::visit(FirstGroup{context}, op).first_tiles;
}

bool reads_weights(const Operator& op) {
  return std::holds_alternative<ProductOp>(op) || std::holds_alternative<FeedForwardOp>(op) ||
         std::holds_alternative<ExpertsOp>(op);
}

// What the first product of any layer starts with; 0 where layers do not end with a product, so
// that nobody could load it, and where the next layer's tiles may lie in another window.
std::uint64_t first_tiles_of_layers(const KernelContext& context) {
  if (context.plan.weights.windowed()) return 0;
  std::uint64_t tiles = 0;
  for (const LayerKind& kind : context.tiled.graph->kinds) {
    const auto first = std::ranges::find_if(kind.operators, reads_weights);
    const auto last = std::find_if(kind.operators.rbegin(), kind.operators.rend(), reads_weights);
    if (first == kind.operators.end() || std::holds_alternative<ExpertsOp>(*last)) return 0;
    const std::uint64_t of_kind = first_tiles(context, *first);
    if (tiles != 0 && of_kind != tiles) return 0;
    tiles = of_kind;
  }
  return tiles;
}

bool is_whole(const KernelContext& context, const Operator& op) {
  return std::visit(FirstGroup{context}, op).whole;
}

// Tiles of the products behind `next` that may be loaded before it: of the first one where `next`
// has one group of tiles and thus leaves a slot alone, of the second one, all of it, where there is
// a third slot.
void plan_loads_behind(const KernelContext& context, const LayerKind& kind,
                       std::vector<Operator>::const_iterator next) {
  WeightPipeline& pipeline = context.pipeline;
  pipeline.behind_next_tiles = 0;
  pipeline.third_tiles = 0;
  const auto end = kind.operators.end();
  if (context.plan.slots < 2 || next == end || !is_whole(context, *next)) return;
  const auto behind = std::find_if(next + 1, end, reads_weights);
  if (behind == end) return;
  pipeline.behind_next_tiles = first_tiles(context, *behind);
  pipeline.behind_next_whole = is_whole(context, *behind);
  const auto third = std::find_if(behind + 1, end, reads_weights);
  if (third == end || context.plan.third_slot.count == 0) return;
  if (!is_whole(context, *behind) || !is_whole(context, *third)) return;
  pipeline.third_tiles = first_tiles(context, *third);
}

// Emits operators; each product loads the first tiles of the next one, and the last of them
// `behind` tiles of whatever follows.
void emit_operators(const KernelContext& context, const LayerKind& kind, std::uint64_t behind) {
  std::optional<HeldFp> scale;
  std::optional<LateNorm> late;
  for (auto op = kind.operators.begin(); op != kind.operators.end(); ++op) {
    const auto at = static_cast<std::size_t>(op - kind.operators.begin());
    if (may_be_late(context, kind, at)) {
      const auto& norm = std::get<NormOp>(*op);
      scale.emplace(context.emitter, "factor of the norm");
      emit_norm_scale(context, kind, norm, *scale);
      late = {norm.from, *scale};
      continue;
    }
    if (comes_in_pieces(context, *op)) {
      return emit_logit_pieces(context, kind, at, [&](const Operator& part) {
        std::visit(EmitOperator{context, kind, {}}, part);
      });
    }
    const auto next = std::find_if(op + 1, kind.operators.end(), reads_weights);
    const bool last = next == kind.operators.end();
    context.pipeline.next_tiles = last ? behind : first_tiles(context, *next);
    context.pipeline.next_in_first_slot = last;
    plan_loads_behind(context, kind, next);
    std::visit(EmitOperator{context, kind, late}, *op);
    // Of q, k and v RoPE takes it.
    if (late && std::holds_alternative<ProductOp>(*op)) continue;
    late.reset();
    scale.reset();
  }
}

void emit_layer(const KernelContext& context, const LayerKind& kind) {
  const RegionScope region(context.emitter, "layer");
  const std::uint64_t first = context.plan.slots == 2 ? first_tiles_of_layers(context) : 0;
  context.pipeline.loaded = first;
  context.pipeline.place = {};
  emit_layer_places(context, false);
  emit_layer_vectors(context, loaded_vectors(context.tiled, context.tables, kind));
  emit_operators(context, kind, first);
  advance_layer(context);
}

void emit_layers(const KernelContext& context) {
  walk_layers(context, [&](const LayerKind& kind) { emit_layer(context, kind); });
}

void emit_ending(const KernelContext& context) {
  const LayerKind& ending = context.tiled.graph->ending;
  const RegionScope region(context.emitter, "ending");
  emit_layer_places(context, true);
  const auto first = std::ranges::find_if(ending.operators, reads_weights);
  if (first != ending.operators.end()) load_first_tiles(context, first_tiles(context, *first));
  emit_layer_vectors(context, loaded_vectors(context.tiled, context.tables, ending));
  emit_operators(context, ending, 0);
}

enum class Entry : std::uint8_t { OneToken, Block, Batch };

// Everything from ids to logits.
void emit_tokens(Emitter& e, const ProgramInput& input, ConstantPool& constants, Entry entry) {
  HeldGp weights(e, "weight stream");
  WeightPipeline pipeline;
  const KernelContext context{.emitter = e,
                              .constants = constants,
                              .settings = input.settings,
                              .dialect = input.dialect,
                              .tiled = input.tiled,
                              .plan = input.plan,
                              .tables = input.tables,
                              .pipeline = pipeline,
                              .weights = weights};
  e.set(weights, 0, "start of the weight stream");
  if (entry == Entry::Block) {
    return emit_block(context, input.block, [&] { emit_ending(context); });
  }
  if (entry == Entry::Batch) return emit_batch(context, input.batch);
  emit_setup(context);
  emit_embedding(context);
  // First: a transfer of more than a tile reaches into the slot behind.
  emit_rotation_tile(context);
  load_first_tiles(context, first_tiles_of_layers(context));
  pipeline.cache_ahead = cache_load_ahead(context);
  emit_arrived_rows(context);
  if (pipeline.cache_ahead != nullptr) emit_first_cache_load(context);
  emit_sum_tiles(context);
  emit_layers(context);
  emit_ending(context);
}

void write_head(Emitter& e, const ProgramInput& input) {
  e.comment(input.title);
  e.blank_line();
  std::istringstream lines(describe(input.plan));
  for (std::string line; std::getline(lines, line);) e.comment(line);
  e.blank_line();
}

// Each address register is the base of one tensor, and a transfer reaches beyond its tensor only
// where one loads more tiles than a kernel wants.
bool transfers_stay_inside(const Settings& settings) {
  return settings.hbm_m_prefetch_amount == settings.mlen;
}

}  // namespace

void advance_layer(const KernelContext& context) {
  const MemoryPlan& plan = context.plan;
  const std::uint64_t mlen = context.tiled.mlen;
  if (!plan.cache.windowed()) {
    advance_kept(context, plan.cache_at, context.tiled.cache_regions() * plan.cache_stride);
  }
  if (context.tables.vectors.rows != 0) {
    advance_kept(context, plan.vectors_at, context.tables.vectors.stored_rows() * mlen);
  }
  if (plan.expert_vectors.count != 0) {
    advance_kept(context, plan.expert_vectors_at,
                 context.tiled.experts * context.tables.expert_vectors.stored_rows() * mlen);
  }
}

std::string describe(const MemoryPlan& plan) {
  std::string text;
  for (const BlockAllocator* memory :
       {&plan.hbm, &plan.mram, &plan.vram, &plan.fp, &plan.integers}) {
    text += fmt::format("{}, {} in use:\n", memory->memory(), memory->unit());
    for (const Block& b : memory->blocks()) {
      text += fmt::format("  {:>10} + {:<9} {}", b.first, b.count, b.name);
      text += b.life.endless() ? "\n" : fmt::format(" [{}]\n", plan.step_order.describe(b.life));
    }
  }
  return text;
}

Result<CompiledProgram> emit_program(const ProgramInput& input, ConstantPool& constants) {
  Emitter e;
  write_head(e, input);
  emit_tokens(e, input, constants, Entry::OneToken);
  CompiledProgram compiled;
  if (input.block.tokens > 1) {
    e.emit(Op::C_BREAK, {}, "decoding ends here, blocks start behind");
    e.mark_entry();
    e.blank_line();
    const RegionScope region(e, "block");
    emit_tokens(e, input, constants, Entry::Block);
  }
  if (input.batch.sequences > 1) {
    e.emit(Op::C_BREAK, {}, "sequences side by side start behind");
    e.mark_entry();
    e.blank_line();
    const RegionScope region(e, "batch");
    emit_tokens(e, input, constants, Entry::Batch);
  }
  auto listing = std::move(e).take_listing();
  if (listing && input.schedule) {
    listing = schedule(*listing, {.settings = input.settings,
                                  .dialect = input.dialect,
                                  .bases_apart = transfers_stay_inside(input.settings)});
  }
  if (!listing) return forward_error(listing);
  compiled.emitted = print(*listing);
  const std::vector<std::uint32_t>& entries = compiled.emitted.entries;
  if (input.block.tokens > 1) compiled.block_entry = entries.front();
  if (input.batch.sequences > 1) compiled.batch_entry = entries.back();
  return compiled;
}

}  // namespace plena
