// Attention over the cache, one tile of K lanes (and the heads that share it) at a
// time: scores of all positions in sight, softmax head by head, and the weighted sum of V.
//
// Heads narrower than a row share rows: each query is isolated in a row of its own before the
// scores, and its output lands in its own lanes. Only the tiles in sight are walked; the last one
// is masked, and with a window the first one too. Where the K and V tiles of the whole context fit
// Matrix SRAM they are loaded first. Where the scores of the whole context do not fit Vector SRAM,
// running_attention.cc goes through the context once, tile by tile.

#include "plena/compiler/attention_tile.h"
#include "plena/compiler/score_maxima.h"

namespace plena {

void AttentionTile::set_rows(Gp to, ValueId value, std::uint32_t row, std::string_view what) const {
  context.emitter.set(to, context.row(value, row), what);
  if (layout().tiles == 1) return;
  HeldGp offset(context.emitter, "rows of this tile");
  load_kept(context, offset, context.plan.queries_at, "rows of this tile");
  context.emitter.emit(Op::S_ADD_INT, {to, to, offset});
}

namespace {

// Moves on what is kept in INT_MEM of where things start.
void advance_kept(const KernelContext& context, const Block& place, std::uint64_t amount) {
  HeldGp at(context.emitter, place.name);
  load_kept(context, at, place, place.name);
  context.emitter.advance(at, amount);
  keep(context, at, place);
}

void start_tiles(const KernelContext& context) {
  HeldGp keys(context.emitter, "K region");
  load_kept(context, keys, context.plan.cache_at, "cache of this layer");
  keep(context, keys, context.plan.keys_at);
  keep(context, kZeroGp, context.plan.queries_at);
}

void load_cache(const AttentionTile& tile) {
  const CacheTiles& cache = tile.cache;
  if (!cache.resident()) return;
  if (!cache.loads_early()) return cache.load();
  cache.load_newest();
}

void emit_tile(const AttentionTile& tile) {
  if (tile.context.plan.running_softmax) {
    if (tile.layout().tiles == 1) load_behind_next(tile.context);
    return emit_running_attention(tile);
  }
  if (slots_overlap(tile)) return emit_overlapped_slots(tile);
  if (ScoreMaxima::serve(tile)) {
    const ScoreMaxima maxima(tile);
    emit_scores(tile, &maxima);
    emit_exponentials(tile, maxima);
  } else {
    emit_scores(tile, nullptr);
  }
  if (tile.layout().tiles == 1) load_behind_next(tile.context);
  const bool exponentiated = ScoreMaxima::serve(tile);
  if (!exponentiated || !tile.sums_are_products()) emit_softmax(tile, exponentiated);
  if (tile.sums_are_products()) emit_denominators(tile);
  if (tile.layout().tiles == 1) load_third(tile.context);
  emit_value_sums(tile);
}

}  // namespace

void emit_early_cache_load(const KernelContext& context, const AttentionOp& op) {
  const CacheTiles cache(context, op);
  if (cache.loads_early()) cache.load_older();
}

const AttentionOp* cache_load_ahead(const KernelContext& context) {
  constexpr std::uint64_t kMostBytes = 4;  // of an element
  const MemoryPlan& plan = context.plan;
  const std::uint64_t layer = context.tiled.cache_regions() * plan.cache_stride * kMostBytes;
  // The last layer loads what lies behind its own cache: that much memory must be there.
  if (plan.other_keys.count == 0 || 2 * layer > plan.hbm.capacity() - plan.hbm.used())
    return nullptr;
  const AttentionOp* first = nullptr;
  for (const LayerKind& kind : context.tiled.graph->kinds) {
    const AttentionOp* of_kind = nullptr;
    for (const Operator& op : kind.operators) {
      if (const auto* attention = std::get_if<AttentionOp>(&op)) of_kind = attention;
    }
    if (of_kind == nullptr) return nullptr;
    const CacheTiles cache(context, *of_kind);
    if (!cache.loads_early() || !slots_overlap({context, *of_kind, cache})) return nullptr;
    if (first != nullptr && first->window != of_kind->window) return nullptr;
    if (first == nullptr) first = of_kind;
  }
  return first;
}

void emit_first_cache_load(const KernelContext& context) {
  keep(context, kZeroGp, context.plan.key_half);
  CacheTiles(context, *context.pipeline.cache_ahead).load_older();
}

void emit_attention(const KernelContext& context, const AttentionOp& op) {
  emit_cache_append(context, op.qkv);
  const RegionScope region(context.emitter, "attention");
  const HeadLayout& layout = context.tiled.heads;
  const MemoryPlan& plan = context.plan;
  if (layout.tiles > 1) start_tiles(context);
  Loop tiles(context.emitter, layout.tiles, "tiles of K lanes");
  const CacheTiles cache(context, op);
  const AttentionTile tile{context, op, cache};
  load_cache(tile);
  emit_tile(tile);
  if (op.sinks) advance_kept(context, plan.sinks_at, layout.heads_per_tile());
  if (cache.loads_ahead()) cache.change_halves();
  if (layout.tiles == 1) return;
  advance_kept(context, plan.keys_at, layout.span * plan.cache_stride);
  advance_kept(context, plan.queries_at,
               std::uint64_t{layout.groups} * layout.span * context.settings.vlen);
}

}  // namespace plena
