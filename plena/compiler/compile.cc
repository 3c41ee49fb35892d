#include "plena/compiler/compile.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "plena/compiler/constant_pool.h"
#include "plena/compiler/kernels.h"
#include "plena/compiler/memory_plan.h"
#include "plena/compiler/model_graph.h"
#include "plena/compiler/pack.h"
#include "plena/compiler/program.h"
#include "plena/compiler/tiled_graph.h"
#include "plena/numerics/float_format.h"

namespace plena {

namespace {

Status check_block(std::string_view key, DataType type, std::uint32_t mlen) {
  if (!type.is_mx() || mlen % type.block == 0) return {};
  return fail_with_hint(
      ErrorCode::Unsupported,
      fmt::format("{} {} has blocks of {}, which do not divide a row of {} elements", key,
                  type.name(), type.block, mlen),
      "choose a block that divides MLEN");
}

Status check_options(const CompileOptions& options) {
  const Settings& s = options.settings;
  if (auto checked = check(s); !checked) return checked;
  if (options.dialect.any_switch()) {
    return fail_with_hint(ErrorCode::Unsupported,
                          fmt::format("the compiler writes for the specification's machine, not "
                                      "for the dialect {}",
                                      options.dialect.name()),
                          "leave out --isa, or name extensions only");
  }
  if (s.vlen != s.mlen) {
    return fail_with_hint(
        ErrorCode::Unsupported,
        fmt::format("the compiler needs rows as wide as tiles, but VLEN is {} and MLEN {}", s.vlen,
                    s.mlen),
        fmt::format("set VLEN to {}", s.mlen));
  }
  if (s.hbm_v_kv_type != s.hbm_m_kv_type) {
    return fail_with_hint(
        ErrorCode::Unsupported,
        fmt::format("the KV cache is written as HBM_V_KV_TYPE ({}) and read as HBM_M_KV_TYPE ({})",
                    s.hbm_v_kv_type.name(), s.hbm_m_kv_type.name()),
        "give both the same type");
  }
  for (const auto& [key, type] : {std::pair{"HBM_M_WEIGHT_TYPE", s.hbm_m_weight_type},
                                  std::pair{"HBM_M_KV_TYPE", s.hbm_m_kv_type},
                                  std::pair{"HBM_V_ACT_TYPE", s.hbm_v_act_type}}) {
    if (auto divides = check_block(key, type, s.mlen); !divides) return divides;
  }
  return {};
}

// A power of two so large that exp of its negative is 0, and finite in all the formats it passes.
float lowest_score(const Settings& settings) {
  constexpr int kFarEnough = 40;
  int exponent = kFarEnough;
  for (const ElementType type : {settings.scalar_fp.element, settings.vector_sram_type.element}) {
    exponent = std::min(exponent, (1 << (type.exponent - 1)) - 1);
  }
  if (!settings.hbm_v_act_type.is_mx()) {
    exponent = std::min(exponent, element_emax(settings.hbm_v_act_type.element));
  }
  return -std::ldexp(1.0F, exponent);
}

std::vector<std::uint32_t> make_fp_mem(const TiledGraph& tiled, const MemoryPlan& plan,
                                       const ConstantPool& constants, ElementType type) {
  std::vector<std::uint32_t> entries(plan.fp.used());
  if (plan.sinks.count != 0) {
    std::size_t at = plan.sinks.first;
    for (const float sink : pack_sinks(tiled)) entries[at++] = encode_fp(type, sink);
  }
  std::ranges::copy(constants.entries(),
                    entries.end() - static_cast<std::ptrdiff_t>(constants.count()));
  return entries;
}

std::uint32_t entry(const Block& block) {
  return static_cast<std::uint32_t>(block.first);
}

std::vector<PositionInput> position_inputs(const TiledGraph& tiled, const MemoryPlan& plan,
                                           const PlanInput& tables) {
  const std::uint32_t mlen = tiled.mlen;
  const auto tile = static_cast<std::uint32_t>(tiled.tile_elements());
  std::vector<PositionInput> inputs = {
      {.name = "cache_row", .address = entry(plan.cache_row), .multiply = mlen},
      {.name = "cache_end",
       .address = entry(plan.cache_end),
       .divide = mlen,
       .multiply = tile,
       .add = tile,
       .of_last = !tiled.causal()},
      {.name = "newest_tile",
       .address = entry(plan.newest_tile),
       .divide = mlen,
       .multiply = tile,
       .of_last = !tiled.causal()},
      {.name = "older_tile",
       .address = entry(plan.older_tile),
       .subtract = mlen,
       .divide = mlen,
       .multiply = tile,
       .of_last = !tiled.causal()},
      {.name = "last_lane",
       .address = entry(plan.last_lane),
       .modulo = mlen,
       .of_last = !tiled.causal()},
  };
  if (tables.positions.rows != 0) {
    const auto rows = static_cast<std::uint32_t>(tables.positions.stored_rows());
    inputs.push_back(
        {.name = "position_entry", .address = entry(plan.position_entry), .multiply = rows * mlen});
  }
  for (const auto& [width, places] : plan.windows) {
    inputs.push_back({.name = fmt::format("first_tile_{}", width),
                      .address = entry(places.first_tile),
                      .subtract = width - 1,
                      .divide = mlen,
                      .multiply = tile});
    inputs.push_back({.name = fmt::format("first_lane_{}", width),
                      .address = entry(places.first_lane),
                      .subtract = width - 1,
                      .modulo = mlen});
  }
  return inputs;
}

// Where windows of a block begin: from MLEN positions before its first token's on, so that it is a
// whole number (block_plan.h).
void add_block_inputs(std::vector<PositionInput>& inputs, const BlockPlan& block,
                      std::uint32_t mlen) {
  for (const auto& [width, places] : block.windows) {
    const std::uint32_t back = width - 1;
    PositionInput edge{
        .name = fmt::format("edge_{}", width), .address = entry(places.edge), .divide = mlen};
    PositionInput lane{.name = fmt::format("edge_lane_{}", width),
                       .address = entry(places.edge_lane),
                       .modulo = mlen};
    if (back >= mlen) {
      edge.subtract = lane.subtract = back - mlen;
    } else {  // blocks are whole tiles
      edge.add = back == 0 ? 1 : 0;
      lane.multiply = 0;
      lane.add = (mlen - back) % mlen;
    }
    inputs.push_back(edge);
    inputs.push_back(lane);
    inputs.push_back({.name = fmt::format("first_tile_of_block_{}", width),
                      .address = entry(places.first_tile),
                      .subtract = back,
                      .divide = mlen});
  }
}

// Where the host picks experts: the router's logits and where what it picks goes.
std::optional<HostRouting> host_routing(const TiledGraph& tiled, const MemoryPlan& plan,
                                        const CompileOptions& options) {
  if (tiled.experts == 0 || options.dialect.has(Extension::Moe)) return std::nullopt;
  for (const LayerKind& kind : tiled.graph->kinds) {
    for (const Operator& op : kind.operators) {
      const auto* experts = std::get_if<ExpertsOp>(&op);
      if (experts == nullptr) continue;
      return HostRouting{
          .logits_address = plan.values[experts->logits].first * options.settings.vlen,
          .experts = tiled.experts,
          .picks = tiled.router.picks,
          .ids_address = entry(plan.experts),
          .weights_address = entry(plan.expert_weights)};
    }
  }
  return std::nullopt;
}

Manifest make_manifest(const TiledGraph& tiled, const MemoryPlan& plan, const BlockPlan& block,
                       const PlanInput& tables, std::uint32_t block_entry,
                       const CompileOptions& options) {
  Manifest manifest;
  manifest.model = options.model_name;
  manifest.vocab = tiled.graph->vocab;
  manifest.context = tiled.graph->context;
  manifest.token_address = entry(plan.token);
  manifest.logits_address = plan.values[tiled.graph->logits].first * options.settings.vlen;
  if (plan.logits_so_far.count != 0) {
    manifest.logit_pieces = {
        .logits = static_cast<std::uint32_t>(plan.logit_rows * options.settings.mlen),
        .so_far_address = entry(plan.logits_so_far)};
  }
  manifest.position_inputs = position_inputs(tiled, plan, tables);
  add_block_inputs(manifest.position_inputs, block, tiled.mlen);
  manifest.host_routing = host_routing(tiled, plan, options);
  manifest.causal = tiled.causal();
  if (block_entry != 0) {
    const std::uint64_t vlen = options.settings.vlen;
    manifest.block = {.tokens = block.tokens,
                      .entry = block_entry,
                      .last_token_address = entry(plan.last_token),
                      .logits_address = manifest.logits_address};
    if (block.all_logits) {
      manifest.block->logits_address = block.values[tiled.graph->logits].first * vlen;
      manifest.block->logits_stride = block.tokens * vlen;
    }
    if (!manifest.causal) manifest.logits_address = manifest.block->logits_address;
  }
  return manifest;
}

void add_batch(Manifest& manifest, const TiledGraph& tiled, const MemoryPlan& plan,
               const BatchPlan& batch, std::uint32_t batch_entry) {
  if (batch_entry == 0) return;
  manifest.batch = {.sequences = batch.sequences,
                    .entry = batch_entry,
                    .inputs_address = entry(batch.inputs),
                    .first_input = entry(plan.position_inputs),
                    .inputs = static_cast<std::uint32_t>(plan.position_inputs.count),
                    .sequence_address = entry(plan.sequence_at),
                    .sequence_elements = static_cast<std::uint32_t>(sequence_elements(tiled)),
                    .logits_address = batch.block.values[tiled.graph->logits].first * tiled.mlen,
                    .logits_stride = std::uint64_t{batch.block.tokens} * tiled.mlen};
}

// What the host would write for position 0, so that a program runs as it is.
std::vector<std::uint32_t> make_int_mem(const Manifest& manifest, const MemoryPlan& plan) {
  std::vector<std::uint32_t> values(plan.integers.used(), 0);
  std::ranges::copy(layer_place_entries(plan),
                    values.begin() + static_cast<std::ptrdiff_t>(plan.layer_places.first));
  for (const PositionInput& input : manifest.position_inputs) {
    values[input.address] = input.value(0);
  }
  return values;
}

bool has_activation_stage(const Graph& graph, const Dialect& dialect) {
  for (const LayerKind& kind : graph.kinds) {
    for (const Operator& op : kind.operators) {
      const auto* layer = std::get_if<FeedForwardOp>(&op);
      if (const auto* experts = std::get_if<ExpertsOp>(&op)) layer = &experts->up;
      if (layer != nullptr && needs_another_stage(layer->activation, dialect)) return true;
    }
  }
  return false;
}

// How many rows the tables take depends on the types.
Result<PlanInput> measure_tables(const TiledGraph& tiled, const Settings& settings) {
  const DataType hbm = settings.hbm_v_act_type;
  const ElementType sram = settings.vector_sram_type.element;
  PlanInput shapes;
  for (const auto& [shape, rows] :
       {std::pair{&shapes.positions, &position_rows}, std::pair{&shapes.vectors, &vector_rows},
        std::pair{&shapes.expert_vectors, &expert_vector_rows}}) {
    auto measured = measure_table(rows(tiled), tiled.mlen, hbm, sram);
    if (!measured) return forward_error(measured);
    *shape = *measured;
  }
  return shapes;
}

// Layers of each window of the weights.
std::vector<LayerRange> layers_of_windows(const LayeredTensor& weights) {
  std::vector<LayerRange> ranges(weights.windows.size());
  for (std::size_t layer = 0; layer < weights.layers.size(); ++layer) {
    LayerRange& range = ranges[weights.layers[layer].window];
    if (range.end == 0) range.first = layer;
    range.end = layer + 1;
  }
  return ranges;
}

std::vector<TensorAtPlace> tensors_of(const TiledGraph& tiled, const MemoryPlan& plan,
                                      const PlanInput& shapes, const CompileOptions& options) {
  const DataType act = options.settings.hbm_v_act_type;
  std::vector<TensorAtPlace> tensors;
  const auto add = [&](std::string name, const HbmTensor& place, TensorPieces pieces) {
    if (pieces.elements == 0) return;
    tensors.push_back(
        {std::move(name), place.base, place.base + plan.scale_offset, std::move(pieces)});
  };
  const auto ranges = layers_of_windows(plan.weights);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    add(ranges.size() == 1 ? "weights" : fmt::format("weights, part {}", i + 1),
        plan.weights.windows[i],
        pack_weights(tiled, ranges[i], options.settings.hbm_m_weight_type, options.scales));
  }
  const auto table = [&](TableContents rows, const TableShape& shape) {
    return pack_table(std::move(rows), shape, tiled.mlen, act);
  };
  add("embedding", plan.embedding, pack_embedding(tiled, act, options.scales));
  add("position table", plan.position_table, table(position_rows(tiled), shapes.positions));
  add("biases and gains", plan.vector_table, table(vector_rows(tiled), shapes.vectors));
  add("biases of experts", plan.expert_table,
      table(expert_vector_rows(tiled), shapes.expert_vectors));
  add("constants", plan.constants, pack_constants(tiled, act, plan.lowest_score));
  return tensors;
}

struct Plans {
  MemoryPlan one_token;
  BatchPlan batch;
  BlockPlan block;
};

// The plan for blocks of shapes.tokens; an error where a memory is too small for it.
Result<Plans> plan_for(const TiledGraph& tiled, const PlanInput& shapes, const Settings& settings) {
  auto plan = plan_memory(tiled, shapes, settings);
  if (!plan) return forward_error(plan);
  auto batch = plan_batch(tiled, shapes, settings, *plan);
  if (!batch) return forward_error(batch);
  BlockPlan none;
  auto block = shapes.tokens == 1 ? Result<BlockPlan>(std::move(none))
                                  : plan_block(tiled, shapes, settings, shapes.tokens, *plan);
  if (!block) return forward_error(block);
  if (auto fits = plan->check(); !fits) return tl::unexpected(fits.error());
  return Plans{*std::move(plan), *std::move(batch), *std::move(block)};
}

// The same with the logits in the fewest pieces that fit, `least` tiles or more each; sets
// shapes.logit_rows.
Result<Plans> plan_pieces(const TiledGraph& tiled, PlanInput& shapes, const Settings& settings,
                          std::uint64_t least) {
  const std::uint64_t rows = tiled.rows(tiled.graph->logits);
  const auto try_rows = [&](std::uint64_t of_piece) {
    shapes.logit_rows = of_piece;
    return plan_for(tiled, shapes, settings);
  };
  if (auto smallest = try_rows(least); least >= rows || !smallest) return smallest;
  std::uint64_t fits = least;
  std::uint64_t too_many = rows;
  while (too_many - fits > 1) {
    const std::uint64_t middle = std::midpoint(fits, too_many);
    (try_rows(middle) ? fits : too_many) = middle;
  }
  const std::uint64_t pieces = (rows + fits - 1) / fits;
  return try_rows((rows + pieces - 1) / pieces);  // of equal length
}

// Tiles of logits that the options ask for at once; 0: all of them.
std::uint64_t wanted_logit_rows(const TiledGraph& tiled, const CompileOptions& options) {
  const std::uint64_t rows = options.logits_at_once / tiled.mlen;
  if (options.logits_at_once == 0 || rows >= tiled.rows(tiled.graph->logits)) return 0;
  return std::max<std::uint64_t>(rows, 1);
}

// The plan for blocks of shapes.tokens with one way of attention. Rather than logits in pieces it
// takes rows that buffers share.
Result<Plans> plan_way(const TiledGraph& tiled, PlanInput& shapes, const CompileOptions& options) {
  constexpr std::uint64_t kLeastTiles = 64;  // so that the loads between pieces do not matter
  shapes.logit_rows = wanted_logit_rows(tiled, options);
  for (const bool share : {options.share_rows, true}) {
    shapes.share = share;
    if (auto whole = plan_for(tiled, shapes, options.settings)) return whole;
  }
  const std::uint64_t least = (kLeastTiles + tiled.dim_tiles - 1) / tiled.dim_tiles;
  return plan_pieces(tiled, shapes, options.settings, shapes.tokens == 1 ? 1 : least);
}

// The plan with the most tokens of a block that fit. Rather than fewer tokens it takes a running
// softmax, of blocks alone if that is enough.
Result<Plans> plan_largest_block(const TiledGraph& tiled, PlanInput& shapes,
                                 const CompileOptions& options) {
  std::uint32_t most = options.block == 0 ? tiled.mlen : options.block;
  for (;; most = shapes.tokens / 2) {
    shapes.tokens = block_size(tiled, options.settings, most);
    for (const auto running : {RunningSoftmax::None, RunningSoftmax::Blocks, RunningSoftmax::All}) {
      if (running < options.running) continue;
      shapes.running = running;
      auto plans = plan_way(tiled, shapes, options);
      const bool last = shapes.tokens == 1 && running == RunningSoftmax::All;
      if (plans || last) return plans;
    }
  }
}

}  // namespace

Result<Image> compile(const Graph& graph, const CompileOptions& options) {
  if (auto checked = check_options(options); !checked) return tl::unexpected(checked.error());
  const Settings& settings = options.settings;
  auto tiled = tile_graph(graph, settings.mlen, settings.blen);
  if (!tiled) return forward_error(tiled);
  auto shapes = measure_tables(*tiled, settings);
  if (!shapes) return forward_error(shapes);
  shapes->all_logits = options.all_logits || !tiled->causal();
  shapes->sequences = options.sequences;
  shapes->window_elements = options.window_elements;
  shapes->hbm_start = options.hbm_start;
  shapes->activation_stage = has_activation_stage(graph, options.dialect);
  auto plans = plan_largest_block(*tiled, *shapes, options);
  if (!plans) return forward_error(plans);
  MemoryPlan* const plan = &plans->one_token;
  plan->lowest_score = lowest_score(settings);

  ConstantPool constants(settings.scalar_fp.element, plan->fp.used());
  auto emitted =
      emit_program({.tiled = *tiled,
                    .plan = *plan,
                    .block = plans->block,
                    .batch = plans->batch,
                    .tables = *shapes,
                    .settings = settings,
                    .dialect = options.dialect,
                    .title = fmt::format("{}: one token of {}",
                                         options.model_name.empty() ? "model" : options.model_name,
                                         graph.summary),
                    .schedule = options.schedule},
                   constants);
  if (!emitted) return forward_error(emitted);
  plan->fp.place_at("constants", plan->fp.used(), constants.count());
  if (auto checked = plan->check(); !checked) return tl::unexpected(checked.error());

  Image image;
  image.settings = settings;
  image.dialect = options.dialect;
  image.program = std::move(emitted->emitted.program);
  image.assembly = std::move(emitted->emitted.text);
  image.manifest =
      make_manifest(*tiled, *plan, plans->block, *shapes, emitted->block_entry, options);
  add_batch(image.manifest, *tiled, *plan, plans->batch, emitted->batch_entry);
  image.graph = describe(graph);
  image.plan = describe(*tiled) + "\n" + describe(*plan);
  image.tokenizer = options.tokenizer;
  image.fp_mem = make_fp_mem(*tiled, *plan, constants, settings.scalar_fp.element);
  image.int_mem = make_int_mem(image.manifest, *plan);
  if (!options.contents) return image;
  auto contents = pack_hbm(tensors_of(*tiled, *plan, *shapes, options), options.packing);
  if (!contents) return forward_error(contents);
  image.hbm = *std::move(contents);
  return image;
}

Result<Image> compile(const Model& model, const CompileOptions& options) {
  constexpr std::uint32_t kFineEnough = 8;  // bits of a weight, for gains to be folded in
  if (auto checked = check_options(options); !checked) return tl::unexpected(checked.error());
  const auto turns = choose_turns(
      model, options.settings,
      {.rule = options.rotate,
       .scales = options.scales,
       .graph = {.fold_gains = options.settings.hbm_m_weight_type.width() >= kFineEnough},
       .interrupted = options.packing.interrupted});
  if (!turns) return tl::unexpected(turns.error());
  auto graph = model_graph(model, turns->graph);
  if (!graph) return forward_error(graph);
  if (options.context != 0) graph->context = std::min(graph->context, options.context);
  auto image = compile(*graph, options);
  if (!image) return image;
  image->turned = summary(*turns);
  image->plan = describe(*turns) + image->plan;
  return image;
}

}  // namespace plena
