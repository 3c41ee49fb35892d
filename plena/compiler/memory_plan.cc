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

// Elements of a table, the rows an H_PREFETCH_V loads beyond those wanted included.
std::uint64_t table_elements(const TableShape& table, std::uint64_t mlen, std::uint64_t row_slack) {
  return table.rows == 0 ? 0 : table.entries * table.stored_rows() * mlen + row_slack;
}

// Bytes of a tensor's elements and of its scales.
struct TensorBytes {
  std::uint64_t elements = 0;
  std::uint64_t scales = 0;
};

TensorBytes bytes_of(std::uint64_t elements, DataType type) {
  return {round_up((elements * type.width() + 7) / 8, kHbmAlignment),
          type.is_mx() ? round_up(elements / type.block + 1, kHbmAlignment) : 0};
}

// Elements that one address register reaches.
std::uint64_t most_elements(DataType type) {
  const std::uint64_t offsets = kRegisterReach - 1;
  if (!type.is_mx()) return offsets;
  return std::min(offsets, (kRegisterReach - kHbmAlignment) * 8 / type.width());
}

struct TensorToPlace {
  HbmTensor* place;
  std::string name;
  DataType type;
};

// Cuts a tensor with `parts` elements a layer into windows of whole layers, `slack` more elements
// behind each and `most` elements in all of one.
Result<LayeredTensor> cut_windows(std::string_view name, const std::vector<std::uint64_t>& parts,
                                  std::uint64_t slack, std::uint64_t most) {
  LayeredTensor tensor;
  tensor.windows.emplace_back();
  for (const std::uint64_t part : parts) {
    if (part > most || slack > most - part) {
      return fail(ErrorCode::Unsupported,
                  "{} of one layer takes {} elements, but one address reaches {}", name,
                  part + slack, most);
    }
    if (tensor.windows.back().elements + part > most - slack) tensor.windows.emplace_back();
    HbmTensor& window = tensor.windows.back();
    tensor.layers.push_back({tensor.windows.size() - 1, window.elements});
    window.elements += part;
  }
  for (HbmTensor& window : tensor.windows) window.elements += slack;
  return tensor;
}

// The weights of each layer and of the ending.
std::vector<std::uint64_t> weight_parts(const TiledGraph& tiled) {
  const Graph& graph = *tiled.graph;
  std::vector<std::uint64_t> parts;
  for (const Layer& layer : graph.layers) {
    parts.push_back(tiled.tiles_of_layer(graph.kinds[layer.kind]) * tiled.tile_elements());
  }
  parts.push_back(tiled.tiles_of_layer(graph.ending) * tiled.tile_elements());
  parts.front() += tiled.constant_tiles() * tiled.tile_elements();
  return parts;
}

Status cut_layered(MemoryPlan& plan, const TiledGraph& tiled, const PlanInput& input,
                   const Settings& settings) {
  const auto most = [&](DataType type) {
    return std::min(most_elements(type), input.window_elements);
  };
  // A transfer always moves its whole amount; what lies behind the last row wanted is slack.
  const std::uint64_t tile_slack =
      std::uint64_t{settings.hbm_m_prefetch_amount - settings.mlen} * tiled.mlen;
  auto weights =
      cut_windows("weights", weight_parts(tiled), tile_slack, most(settings.hbm_m_weight_type));
  if (!weights) return forward_error(weights);
  plan.weights = *std::move(weights);
  plan.weights.layers.front().first = tiled.constant_tiles() * tiled.tile_elements();

  plan.cache_stride = std::uint64_t{input.sequences} * tiled.context_tiles * tiled.tile_elements();
  const std::uint64_t regions = tiled.cache_regions();
  const std::uint64_t stored = round_up(regions, settings.hbm_v_writeback_amount) - regions;
  const std::vector<std::uint64_t> layers(tiled.graph->layers.size(), regions * plan.cache_stride);
  auto cache = cut_windows("KV cache", layers, stored * plan.cache_stride + tile_slack,
                           most(settings.hbm_m_kv_type));
  if (!cache) return forward_error(cache);
  plan.cache = *std::move(cache);
  return {};
}

std::vector<TensorToPlace> windows_to_place(LayeredTensor& tensor, std::string_view name,
                                            DataType type) {
  std::vector<TensorToPlace> windows;
  const std::size_t count = tensor.windows.size();
  for (std::size_t i = 0; i < count; ++i) {
    windows.push_back(
        {&tensor.windows[i],
         count == 1 ? std::string(name) : fmt::format("{}, part {} of {}", name, i + 1, count),
         type});
  }
  return windows;
}

// Everything in HBM, with how many elements it has.
std::vector<TensorToPlace> tensors_to_place(MemoryPlan& plan, const TiledGraph& tiled,
                                            const PlanInput& input, const Settings& settings) {
  const std::uint64_t mlen = tiled.mlen;
  const std::uint64_t row_slack = std::uint64_t{settings.hbm_v_prefetch_amount} * mlen;
  const DataType act = settings.hbm_v_act_type;
  std::vector<TensorToPlace> tensors =
      windows_to_place(plan.weights, "weights", settings.hbm_m_weight_type);
  for (auto& window : windows_to_place(plan.cache, "KV cache", settings.hbm_m_kv_type)) {
    tensors.push_back(std::move(window));
  }
  const auto add = [&](HbmTensor& tensor, const char* name, std::uint64_t elements) {
    tensor.elements = elements;
    if (elements != 0) tensors.push_back({&tensor, name, act});
  };
  add(plan.embedding, "embedding",
      std::uint64_t{tiled.graph->vocab} * tiled.dim_tiles * mlen + row_slack);
  add(plan.position_table, "position table", table_elements(input.positions, mlen, row_slack));
  add(plan.vector_table, "biases and gains", table_elements(input.vectors, mlen, row_slack));
  add(plan.expert_table, "biases of experts",
      table_elements(input.expert_vectors, mlen, row_slack));
  add(plan.constants, "constants", constant_rows(tiled).count * mlen + row_slack);
  return tensors;
}

// The distance of all scales from their elements: that of one region for all elements and another
// for all scales where it can be, or else what the longest tensor needs.
std::uint64_t scale_distance(const std::vector<TensorToPlace>& tensors) {
  std::uint64_t all = 0;
  std::uint64_t longest = 0;
  for (const TensorToPlace& tensor : tensors) {
    const TensorBytes bytes = bytes_of(tensor.place->elements, tensor.type);
    all += std::max(bytes.elements, bytes.scales);
    if (bytes.scales != 0) longest = std::max(longest, bytes.elements);
  }
  if (longest == 0) return 0;
  return all < kRegisterReach ? all : longest;
}

// The end of a block that overlaps `count` bytes from `first` on; 0: there is none.
std::uint64_t end_of_overlap(const std::vector<Block>& blocks, std::uint64_t first,
                             std::uint64_t count) {
  for (const Block& block : blocks) {
    if (count != 0 && first < block.first + block.count && block.first < first + count) {
      return block.first + block.count;
    }
  }
  return 0;
}

// Places a tensor as far in front as its elements and, at their distance, its scales find room
// (semantics 5.5), from `start` on.
void place_tensor(MemoryPlan& plan, const TensorToPlace& tensor, std::uint64_t start) {
  const TensorBytes bytes = bytes_of(tensor.place->elements, tensor.type);
  const std::uint64_t distance = plan.scale_offset;
  std::uint64_t base = start;
  for (;;) {
    if (const auto end = end_of_overlap(plan.hbm.blocks(), base, bytes.elements); end != 0) {
      base = end;
    } else if (const auto after = end_of_overlap(plan.hbm.blocks(), base + distance, bytes.scales);
               after != 0) {
      base = after - distance;
    } else {
      break;
    }
  }
  tensor.place->base = base;
  plan.hbm.place_at(tensor.name, base, bytes.elements);
  if (bytes.scales != 0) {
    plan.hbm.place_at(tensor.name + ", scales", base + distance, bytes.scales);
  }
}

Status place_hbm(MemoryPlan& plan, const TiledGraph& tiled, const PlanInput& input,
                 const Settings& settings) {
  if (auto cut = cut_layered(plan, tiled, input, settings); !cut) return cut;
  const auto tensors = tensors_to_place(plan, tiled, input, settings);
  for (const TensorToPlace& tensor : tensors) {
    if (tensor.place->elements <= most_elements(tensor.type)) continue;
    return fail(ErrorCode::Unsupported, "{} takes {} elements, but an address register reaches {}",
                tensor.name, tensor.place->elements, most_elements(tensor.type));
  }
  plan.scale_offset = scale_distance(tensors);
  for (const TensorToPlace& tensor : tensors)
    place_tensor(plan, tensor, round_up(input.hbm_start, kHbmAlignment));
  return {};
}

// Rows of a value, and behind the last one room for transfers of whole amounts and write-outs of
// BLEN rows.
std::uint64_t value_rows(const TiledGraph& tiled, const PlanInput& input, ValueId id,
                         const Settings& settings) {
  const std::uint64_t slack =
      std::max({settings.hbm_v_prefetch_amount, settings.hbm_v_writeback_amount, settings.blen}) -
      1;
  return rows_at_once(tiled, input, id) + slack;
}

// The product of the logits, if they come in pieces.
const ProductOp* product_of_pieces(const TiledGraph& tiled, const PlanInput& input) {
  if (input.logit_rows == 0) return nullptr;
  for (const Operator& op : tiled.graph->ending.operators) {
    const auto* product = std::get_if<ProductOp>(&op);
    if (product != nullptr && product->to == tiled.graph->logits) return product;
  }
  return nullptr;
}

// Biases and gains of the layer with the most of them, and the bias of a piece of the logits.
void place_vectors(MemoryPlan& plan, const TiledGraph& tiled, const PlanInput& input,
                   std::uint64_t slack) {
  std::uint64_t rows = loaded_vectors(tiled, input, tiled.graph->ending);
  for (const LayerKind& kind : tiled.graph->kinds) {
    rows = std::max<std::uint64_t>(rows, loaded_vectors(tiled, input, kind));
  }
  const std::uint64_t terms = input.vectors.terms;
  if (rows != 0) plan.vectors = plan.vram.place("biases and gains", rows * terms + slack);
  const ProductOp* product = product_of_pieces(tiled, input);
  if (product == nullptr || !product->bias) return;
  plan.logit_bias =
      plan.vram.place("bias of a piece of the logits", input.logit_rows * terms + slack);
}

// When decoding's rows are in use. Blocks of a prompt use them for experts and for the ending,
// sequences for what they do one by one.
class DecodingLives {
 public:
  DecodingLives(const MemoryPlan& plan, const TiledGraph& tiled, const PlanInput& input)
      : plan_(plan), tiled_(tiled), sequences_(input.sequences > 1) {}

  // Lanes that no head has are written by nobody: they are 0 because nobody else writes them
  // either.
  [[nodiscard]] Life of_value(ValueId id) const {
    if (has_lanes_of_nobody(tiled_, tiled_.graph->values[id])) return {};
    return plan_.widened(
        plan_.step_order.of_value(ProgramEntry::Decode, id).with(of_others([&](const Step& step) {
          return step.stage != Step::Stage::HandOver || id == tiled_.graph->residual;
        })));
  }
  // Where one of the operators is at work that `Ops` names.
  template <class... Ops>
  [[nodiscard]] Life during() const {
    const auto named = [](const Step& step) {
      return step.op != nullptr && (std::holds_alternative<Ops>(*step.op) || ...);
    };
    return plan_.widened(plan_.step_order
                             .where([&](const Step& step) {
                               return step.entry == ProgramEntry::Decode && named(step);
                             })
                             .with(of_others(named)));
  }
  // All the time in which a token's position matters.
  [[nodiscard]] Life of_position() const {
    return plan_.step_order.all(ProgramEntry::Decode).with(of_others([](const Step&) {
      return false;
    }));
  }

 private:
  template <class Used>
  [[nodiscard]] Life of_others(Used&& used) const {
    return plan_.step_order.where([&](const Step& step) {
      if (step.entry == ProgramEntry::Sequences) return sequences_;
      if (step.entry != ProgramEntry::Prompt || !used(step)) return false;
      return step.stage >= Step::Stage::HandOver ||
             (step.op != nullptr && std::holds_alternative<ExpertsOp>(*step.op));
    });
  }

  const MemoryPlan& plan_;
  const TiledGraph& tiled_;
  bool sequences_;
};

void place_values(MemoryPlan& plan, const TiledGraph& tiled, const PlanInput& input,
                  const Settings& settings) {
  const DecodingLives lives(plan, tiled, input);
  for (ValueId id = 0; id < tiled.graph->values.size(); ++id) {
    plan.values.push_back(plan.vram.place(
        tiled.graph->values[id].name, value_rows(tiled, input, id, settings), lives.of_value(id)));
  }
}

void place_scores(MemoryPlan& plan, const TiledGraph& tiled, const Settings& settings,
                  const DecodingLives& lives) {
  const std::uint64_t heads = tiled.heads.heads_per_tile();
  if (plan.running_softmax) {
    const Life attention = lives.during<AttentionOp>();
    plan.scores = plan.vram.place("scores of a tile", heads, attention);
    if (tiled.heads.slots > 1) {
      plan.outputs = plan.vram.place("outputs head by head", heads, attention);
    }
    return;
  }
  // The lowest scores, written once, lie right before the others.
  const std::uint64_t scores = tiled.context_tiles * heads + settings.blen - 1;
  const Block all = plan.vram.place("lowest scores, scores", heads + scores, lives.of_position());
  plan.no_scores = {"lowest scores", all.first, heads};
  plan.scores = {"scores", all.first + heads, scores};
}

// What attention and feed-forward layers pass from stage to stage.
void place_stages(MemoryPlan& plan, const TiledGraph& tiled, const PlanInput& input,
                  const Settings& settings) {
  const DecodingLives lives(plan, tiled, input);
  const std::uint64_t heads = tiled.heads.heads_per_tile();
  const Life attention = lives.during<AttentionOp>();
  plan.heads = plan.vram.place("queries head by head", heads, attention);
  place_scores(plan, tiled, settings, lives);
  plan.group_sums = plan.vram.place("sums of weights", tiled.heads.groups + settings.blen - 1);
  plan.group_scales = plan.vram.place("1 / sum by lanes", tiled.heads.groups, attention);
  const std::uint64_t hidden = tiled.hidden_tiles;
  const Life feed_forward = lives.during<FeedForwardOp, ExpertsOp>();
  plan.gate = plan.vram.place("gate, up", 2 * hidden, feed_forward);
  if (input.activation_stage) {
    plan.activation = plan.vram.place("stage of the activation", hidden, feed_forward);
  }
  if (tiled.rotates()) {
    plan.rotated =
        plan.vram.place("q, k between products", tiled.heads.query_rows() + tiled.heads.key_rows(),
                        lives.during<RotateOp>());
  }
  plan.partials =
      plan.vram.place("partial sums", tiled.dim_tiles, lives.during<ProductOp, ExpertsOp>());
  plan.scratch = plan.vram.place("scratch", 4);
}

// What a run fetches once.
void place_fetched_rows(MemoryPlan& plan, const TiledGraph& tiled, const PlanInput& input,
                        const Settings& settings) {
  const DecodingLives lives(plan, tiled, input);
  const std::uint64_t fetched = settings.hbm_v_prefetch_amount;
  const std::uint64_t slack = fetched - 1;
  const Life of_position = lives.of_position();
  plan.mask = plan.vram.place("causal mask", 1 + slack, of_position);
  for (const std::uint32_t window : tiled.windows) {
    plan.windows[window].mask =
        plan.vram.place(fmt::format("mask of window {}", window), 1 + slack, of_position);
  }
  if (input.positions.rows != 0) {
    plan.position_rows =
        plan.vram.place("rows of the position", input.positions.stored_rows() + slack, of_position);
  }
  place_vectors(plan, tiled, input, slack);
  if (input.expert_vectors.rows != 0) {
    plan.expert_vectors = plan.vram.place("biases of the expert",
                                          round_up(input.expert_vectors.stored_rows(), fetched),
                                          lives.during<ExpertsOp>());
  }
  const ConstantRows constants = constant_rows(tiled);
  plan.selectors =
      plan.vram.place("zeros, slot selectors", round_up(constants.router_padding, fetched));
  if (constants.router_rows != 0) {
    plan.router_padding =
        plan.vram.place("lanes without experts", round_up(constants.router_rows, fetched));
  }
}

// When decoding's tiles are in use. Prompts have tiles of their own but for the ending, sequences
// but for attention.
class TileLives {
 public:
  TileLives(const MemoryPlan& plan, const PlanInput& input)
      : step_order_(plan.step_order),
        ends_prompts_(!input.all_logits),
        sequences_(input.sequences > 1) {}

  [[nodiscard]] Life of_weights(bool during_attention) const {
    return step_order_.where([&](const Step& step) {
      if (step.entry == ProgramEntry::Prompt) {
        return ends_prompts_ && step.stage == Step::Stage::Ending;
      }
      return step.entry == ProgramEntry::Decode && (during_attention || !attends(step));
    });
  }
  // Layers may load the next one's.
  [[nodiscard]] Life of_cache(bool during_products) const {
    return step_order_.where([&](const Step& step) {
      if (step.entry == ProgramEntry::Sequences) return sequences_ && is_positioned(step);
      return step.entry == ProgramEntry::Decode && (during_products || attends(step));
    });
  }
  [[nodiscard]] Life of_constants() const {
    return step_order_.where([&](const Step& step) {
      return step.entry == ProgramEntry::Decode ||
             (step.entry == ProgramEntry::Sequences && sequences_);
    });
  }

 private:
  static bool attends(const Step& step) {
    return step.op != nullptr && std::holds_alternative<AttentionOp>(*step.op);
  }

  const StepOrder& step_order_;
  bool ends_prompts_;
  bool sequences_;
};

// Two slots of weight tiles, as large as a quarter of what there is allows, or one; then the
// cache's.
void place_tiles(MemoryPlan& plan, const TiledGraph& tiled, const PlanInput& input,
                 const Settings& settings) {
  constexpr std::uint64_t kLeastUseful = 8;  // transfers that may be under way
  const TileLives lives(plan, input);
  BlockAllocator& mram = plan.mram;
  const auto room = [&] { return mram.capacity() - std::min(mram.used(), mram.capacity()); };
  const std::uint64_t slack = settings.hbm_m_prefetch_amount / settings.mlen - 1;
  const std::uint64_t span = tiled.heads.span;
  if (tiled.rotates()) {
    plan.rotation = mram.place("RoPE permutation", 1, plan.step_order.all(ProgramEntry::Decode));
  }
  const std::uint64_t wanted = std::max<std::uint64_t>(tiled.most_inputs, kLeastUseful);
  plan.slot_tiles = std::clamp<std::uint64_t>(room() / 4, 1, wanted);
  plan.slot_pitch = plan.slot_tiles + slack;
  plan.slots = 2 * plan.slot_pitch + span + slack <= room() ? 2 : 1;
  if (plan.slots == 1) {  // nothing is loaded ahead
    plan.slot_tiles = 1;
    plan.stage = mram.place("weight tiles in use", span + slack, lives.of_weights(false));
    plan.cache_stage =
        mram.place_at("cache tiles in use", plan.stage.first, span + slack, lives.of_cache(false));
    return;
  }
  plan.stage = mram.place("slots of weight tiles", 2 * plan.slot_pitch, lives.of_weights(true));
  plan.cache_stage = mram.place("cache tiles in use", span + slack, lives.of_cache(true));
  const std::uint64_t context = std::uint64_t{tiled.context_tiles} * span + slack;
  if (plan.running_softmax || 2 * context > room()) return;
  plan.key_tiles = mram.place("K tiles", context, lives.of_cache(true));
  plan.value_tiles = mram.place("V tiles", context, lives.of_cache(true));
  if (2 * (1 + slack) > room()) return;
  plan.ones = mram.place("ones", 1 + slack, lives.of_constants());
  plan.spread = mram.place("first lanes to slots", 1 + slack, lives.of_constants());
  if (plan.slot_pitch <= room()) {
    plan.third_slot = mram.place("third slot", plan.slot_pitch, lives.of_weights(true));
  }
  // Another half, where a layer may load what the next one attends to.
  const bool one_load = tiled.heads.tiles == 1 && tiled.context_tiles > 1;
  if (!one_load || plan.cache.windowed() || context > room()) return;
  plan.other_keys = mram.place("K tiles of the next layer", context, lives.of_cache(true));
}

void place_scalars(MemoryPlan& plan, const TiledGraph& tiled, const PlanInput& input) {
  const Graph& graph = *tiled.graph;
  const DecodingLives lives(plan, tiled, input);
  const Life attention = lives.during<AttentionOp>();
  plan.score_maxima = plan.fp.place("maxima of scores", tiled.heads.heads_per_tile(), attention);
  if (plan.running_softmax) {
    plan.corrections = plan.fp.place("corrections", tiled.heads.heads_per_tile(), attention);
  }
  plan.head_scales = plan.fp.place("reciprocals of sums", tiled.heads.heads_per_tile(), attention);
  const bool sinks =
      std::ranges::any_of(graph.layers, [](const Layer& l) { return !l.sinks.empty(); });
  if (sinks) {
    plan.sinks = plan.fp.place(
        "sinks", graph.layers.size() * tiled.heads.tiles * tiled.heads.heads_per_tile());
  }
  plan.token = plan.integers.place("token", input.tokens);
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
  plan.position_inputs = {"inputs of the position", plan.cache_row.first,
                          plan.integers.used() - plan.cache_row.first};
  if (input.sequences > 1) plan.sequence_at = plan.integers.place("start of the sequence", 1);
  if (tiled.experts != 0) {
    plan.expert_weights =
        plan.fp.place("weights of the experts", kMostPicks, lives.during<ExpertsOp>());
    plan.experts = plan.integers.place("experts chosen", kMostPicks);
  }
  plan.last_token = plan.integers.place("last token", 1);
  if (input.logit_rows != 0) {
    plan.logits_so_far = plan.integers.place("logits so far", 1);
    plan.logit_pieces = plan.integers.place("loop over pieces of the logits", 1);
  }
  plan.keys_at = plan.integers.place("regions of the tile", 1);
  plan.queries_at = plan.integers.place("queries of the tile", 1);
  plan.last_scores = plan.integers.place("scores of the newest tile", 1);
  const std::uint64_t entries = layer_place_entries(plan).size();
  if (entries != 0) {
    plan.layer_places = plan.integers.place("windows of the layers", entries);
    plan.layer_place_at = plan.integers.place("window of the layer", 1);
  }
  plan.layer_loops = plan.integers.place("loops over layers", 2);
  plan.key_half = plan.integers.place("half of the K tiles", 1);
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

std::uint64_t rows_at_once(const TiledGraph& tiled, const PlanInput& input, ValueId value) {
  const std::uint64_t rows = tiled.rows(value);
  const bool in_pieces = value == tiled.graph->logits && input.logit_rows != 0;
  return in_pieces ? std::min(rows, input.logit_rows) : rows;
}

std::uint32_t loaded_vectors(const TiledGraph& tiled, const PlanInput& input,
                             const LayerKind& kind) {
  const ProductOp* product = product_of_pieces(tiled, input);
  if (&kind != &tiled.graph->ending || product == nullptr || !product->bias) {
    return tiled.all_rows(kind.vectors);
  }
  return tiled.first_row(kind.vectors, *product->bias);  // which is the last one
}

bool has_lanes_of_nobody(const TiledGraph& tiled, const Value& value) {
  if (value.layout != Layout::Outputs) return false;
  return std::ranges::count(tiled.lanes(value.layout, value.width), kPadding) != 0;
}

BlockAllocator::BlockAllocator(std::string memory, std::uint64_t capacity, std::string unit)
    : memory_(std::move(memory)), capacity_(capacity), unit_(std::move(unit)) {}

Block BlockAllocator::place(std::string name, std::uint64_t count, const Life& life) {
  std::vector<const Block*> present;
  for (const Block& block : blocks_) {
    if (block.count != 0 && block.life.meets(life)) present.push_back(&block);
  }
  std::ranges::sort(present, {}, [](const Block* block) { return block->first; });
  std::uint64_t first = 0;
  for (const Block* block : present) {
    if (block->first >= first && block->first - first >= count) break;
    first = std::max(first, block->first + block->count);
  }
  return place_at(std::move(name), first, count, life);
}

Block BlockAllocator::place_at(std::string name, std::uint64_t first, std::uint64_t count,
                               const Life& life) {
  blocks_.push_back({std::move(name), first, count, life});
  used_ = std::max(used_, first + count);
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
  std::vector<const Block*> sorted;
  std::size_t steps = 1;
  for (const Block& block : blocks) {
    if (block.count > capacity || block.first > capacity - block.count) {
      return fail(ErrorCode::Unsupported, "block '{}' leaves its memory", block.name);
    }
    sorted.push_back(&block);
    steps = std::max(steps, block.life.steps());
  }
  std::ranges::sort(sorted, {}, [](const Block* block) { return block->first; });
  for (std::size_t step = 0; step < steps; ++step) {
    const Block* before = nullptr;
    for (const Block* block : sorted) {
      if (block->count == 0 || !block->life.has(step)) continue;
      if (before != nullptr && block->first < before->first + before->count) {
        return fail(ErrorCode::Unsupported, "blocks '{}' and '{}' overlap", before->name,
                    block->name);
      }
      before = block;
    }
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

std::vector<std::uint32_t> layer_place_entries(const MemoryPlan& plan) {
  std::vector<std::uint32_t> entries;
  for (std::size_t layer = 0; layer < plan.weights.layers.size(); ++layer) {
    for (const LayeredTensor* tensor : {&plan.weights, &plan.cache}) {
      if (!tensor->windowed()) continue;
      // The ending has no cache.
      const LayeredTensor::Place place = tensor->layers[std::min(layer, tensor->layers.size() - 1)];
      const std::uint64_t base = tensor->windows[place.window].base;
      entries.push_back(static_cast<std::uint32_t>(base));
      entries.push_back(static_cast<std::uint32_t>(base >> 32));
      entries.push_back(static_cast<std::uint32_t>(place.first));
    }
  }
  return entries;
}

Result<MemoryPlan> plan_memory(const TiledGraph& graph, const PlanInput& input,
                               const Settings& settings) {
  const std::uint64_t reachable_rows = kRegisterReach / settings.vlen;
  MemoryPlan plan{
      .running_softmax = input.running == RunningSoftmax::All,
      .step_order = StepOrder(*graph.graph),
      .share = input.share,
      .hbm = BlockAllocator("HBM", settings.hbm_size, "bytes"),
      .vram = BlockAllocator("Vector SRAM", std::min(settings.vector_sram_size, reachable_rows),
                             "rows"),
      .mram = BlockAllocator("Matrix SRAM", settings.matrix_sram_size / settings.mlen, "tiles"),
      .fp = BlockAllocator("FP_MEM", settings.fp_sram_depth, "entries"),
      .integers = BlockAllocator("INT_MEM", settings.int_sram_depth, "entries")};
  if (auto placed = place_hbm(plan, graph, input, settings); !placed) {
    return tl::unexpected(placed.error());
  }
  plan.logit_rows = rows_at_once(graph, input, graph.graph->logits);
  place_values(plan, graph, input, settings);
  place_stages(plan, graph, input, settings);
  place_fetched_rows(plan, graph, input, settings);
  place_tiles(plan, graph, input, settings);
  place_scalars(plan, graph, input);
  if (auto checked = plan.check(); !checked) return tl::unexpected(checked.error());
  return plan;
}

}  // namespace plena
