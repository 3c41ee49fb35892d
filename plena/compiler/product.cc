// Dense products: tiles of weights stream through Matrix SRAM in the order they are stored.
//
// Matrix SRAM has two slots for them. While the array works on a group of tiles in one, the next
// group comes into the other; behind the last group of a product comes the first one of the next.

#include <algorithm>
#include <utility>

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

// The next `tiles` tiles of a stream to `to` and behind it; moves both on.
void load_tiles(const KernelContext& context, Gp stream, Gp to, std::uint64_t tiles) {
  Emitter& e = context.emitter;
  const std::uint64_t tile_elements = context.tiled.tile_elements();
  unroll(e, tiles, kMostCopies, "tiles to load", [&](std::uint64_t copies, bool more) {
    for (std::uint64_t i = 0; i < copies; ++i) {
      e.emit(Op::H_PREFETCH_M, {to, stream, kWeightsBase, kContiguous, kWeights});
      e.advance(stream, tile_elements);
      if (more || i + 1 < copies) e.advance(to, tile_elements);
    }
  });
}

constexpr unsigned kThirdSlot = 2;

// Address of a slot of weight tiles.
std::uint64_t slot_address(const KernelContext& context, std::uint64_t slot) {
  const MemoryPlan& plan = context.plan;
  if (slot == kThirdSlot) return context.tile(plan.third_slot);
  return (plan.stage.first + slot * plan.slot_pitch) * context.tiled.tile_elements();
}

// The next `tiles` tiles of the weight stream to a slot, behind those that are there.
void load_slot(const KernelContext& context, std::uint64_t slot, std::uint64_t there,
               std::uint64_t tiles) {
  if (tiles == 0) return;
  HeldGp to(context.emitter, "slot to fill");
  context.emitter.set(to, slot_address(context, slot) + there * context.tiled.tile_elements(),
                      "slot to fill");
  load_tiles(context, context.weights, to, tiles);
}

class ProductLoops {
 public:
  ProductLoops(const KernelContext& context, const TiledProduct& product)
      : context_(context),
        e_(context.emitter),
        product_(product),
        group_(tile_group(context.plan, product.input_tiles, product.output_tiles)),
        pipeline_(context.pipeline),
        streams_(product.stream.index == context.weights.index),
        vlen_(context.settings.vlen),
        tile_elements_(context.tiled.tile_elements()) {}

  void emit() {
    HeldGp y(e_, "output");
    HeldGp current(e_, "slot in use");
    e_.set(y, product_.add ? context_.row(context_.plan.partials) : product_.outputs, "output");
    load_first();
    e_.set(current, slot(place_.slot) + place_.skipped * tile_elements_, "slot in use");
    if (group_.chunks == 1) {
      emit_groups(current, y);
    } else {
      emit_chunks(current, y);
    }
    finish();
  }

 private:
  [[nodiscard]] bool double_buffered() const { return context_.plan.slots == 2; }
  [[nodiscard]] std::uint64_t slot(unsigned index) const { return slot_address(context_, index); }

  void load(Gp to, std::uint64_t tiles) const { load_tiles(context_, product_.stream, to, tiles); }
  void load_slot(unsigned index, std::uint64_t skipped, std::uint64_t tiles) const {
    if (tiles == 0) return;
    HeldGp to(e_, "slot to fill");
    e_.set(to, slot(index) + skipped * tile_elements_, "slot to fill");
    load(to, tiles);
  }

  // What the product before has not loaded of the first group.
  void load_first() {
    std::uint64_t loaded = 0;
    if (streams_) {
      loaded = std::exchange(pipeline_.loaded, 0);
      if (loaded != 0) place_ = pipeline_.place;
    }
    if (!double_buffered()) return;
    if (loaded > group_.first_tiles) {
      e_.retreat(product_.stream, (loaded - group_.first_tiles) * tile_elements_,
                 "tiles that the next product loads itself");
    } else {
      load_slot(place_.slot, place_.skipped + loaded, group_.first_tiles - loaded);
    }
  }

  // The tiles of the step to come, while those in `current` are multiplied; with one slot those of
  // this step.
  void load_ahead(Gp current, std::uint64_t next, std::uint64_t now) const {
    HeldGp to(e_, "slot to fill");
    if (!double_buffered()) {
      e_.copy(to, current);
      return load(to, now);
    }
    e_.set(to, slot(0) + slot(1));
    e_.emit(Op::S_SUB_INT, {to, to, current}, "the other slot");
    load(to, next);
  }
  void swap(Gp current) const {
    if (!double_buffered()) return;
    HeldGp both(e_, "both slots");
    e_.set(both, slot(0) + slot(1));
    e_.emit(Op::S_SUB_INT, {current, both, current}, "the other slot");
  }

  // How many tiles of the next product attention has loaded, and where.
  std::pair<std::uint64_t, SlotPlace> take_loaded() const {
    return {std::exchange(pipeline_.behind_next_loaded, std::exchange(pipeline_.third_loaded, 0)),
            std::exchange(pipeline_.behind_next_place, {kThirdSlot, 0})};
  }

  // The last step of a product, whose tiles are in slot `at`: first, or last where they go to the
  // same slot, the first tiles of the next product.
  template <class Multiply>
  void last_step(Gp current, unsigned at, std::uint64_t tiles, Multiply&& multiply) {
    if (!double_buffered()) {
      load_ahead(current, 0, tiles);
      return multiply();
    }
    const std::uint64_t next = streams_ ? pipeline_.next_tiles : 0;
    const auto [there, loaded_to] =
        streams_ ? take_loaded() : std::pair<std::uint64_t, SlotPlace>{};
    const unsigned other = at == 0 ? 1 : 0;
    const SlotPlace to =
        there != 0 ? loaded_to : SlotPlace{pipeline_.next_in_first_slot ? 0 : other, 0};
    if (to.slot != at) load_slot(to.slot, to.skipped + there, next - there);
    multiply();
    if (to.slot == at) load_slot(to.slot, to.skipped + there, next - there);
    if (!streams_) return;
    pipeline_.loaded = next;
    pipeline_.place = to;
  }

  // Groups of outputs whose tiles fit a slot.
  void emit_groups(Gp current, Gp y) {
    const std::uint64_t inputs = product_.input_tiles;
    const std::uint64_t whole = product_.output_tiles / group_.outputs;
    const std::uint64_t rest = product_.output_tiles % group_.outputs;
    const std::uint64_t tiles = group_.outputs * inputs;
    if (rest != 0) {
      load_ahead(current, tiles, rest * inputs);
      multiply_outputs(current, y, rest);
      swap(current);
    }
    if (whole > 1) {
      Loop groups(e_, whole - 1, "groups of output tiles");
      load_ahead(current, tiles, tiles);
      multiply_outputs(current, y, group_.outputs);
      swap(current);
    }
    const std::uint64_t steps = whole + (rest != 0 ? 1 : 0);
    const unsigned slot = place_.slot;
    const auto at = slot == kThirdSlot ? slot : static_cast<unsigned>((slot + steps - 1) % 2);
    last_step(current, at, tiles, [&] { multiply_outputs(current, y, group_.outputs); });
  }

  // Write-outs have their rows as immediates.
  void multiply_outputs(Gp current, Gp y, std::uint64_t outputs) const {
    if (by_kinds()) return multiply_kinds(current, y);
    HeldGp tile(e_, "tile");
    e_.copy(tile, current);
    const std::uint64_t inputs = product_.input_tiles;
    const bool other_groups = outputs != product_.output_tiles;
    HeldGp x(e_, "input");
    if (inputs == 1) e_.set(x, product_.inputs, "input");
    const std::uint64_t most = std::max<std::uint64_t>(1, kMostCopies / inputs);
    unroll(e_, outputs, most, "output tiles", [&](std::uint64_t copies, bool more) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        if (inputs > 1) e_.set(x, product_.inputs, "input");
        multiply_inputs(tile, x, inputs);
        e_.emit(Op::M_MV_WO, {y, i * vlen_});
      }
      if (more || other_groups) e_.advance(y, copies * vlen_);
    });
  }

  // Few tiles that are all there may be taken in any order.
  [[nodiscard]] bool by_kinds() const {
    return product_.kinds > 1 && group_.whole &&
           product_.output_tiles * product_.input_tiles <= kMostCopies;
  }
  void multiply_kinds(Gp current, Gp y) const {
    HeldGp tile(e_, "tile");
    HeldGp x(e_, "input");
    const std::uint64_t inputs = product_.input_tiles;
    for (std::uint64_t kind = 0; kind < product_.kinds; ++kind) {
      for (std::uint64_t i = kind; i < product_.output_tiles; i += product_.kinds) {
        e_.offset(tile, current, i * inputs * tile_elements_);
        e_.set(x, product_.inputs, "input");
        multiply_inputs(tile, x, inputs);
        e_.emit(Op::M_MV_WO, {y, i * vlen_});
      }
    }
  }

  void multiply_inputs(Gp tile, Gp x, std::uint64_t tiles) const {
    unroll(e_, tiles, kMostCopies, "input tiles", [&](std::uint64_t copies, bool) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        e_.emit(Op::M_TMV, {x, tile});
        e_.advance(tile, tile_elements_);
        step(context_, x, vlen_, tiles);
      }
    });
  }

  // Output tiles whose inputs do not fit a slot: a chunk of them at a time.
  void emit_chunks(Gp current, Gp y) {
    if (product_.output_tiles > 1) {
      Loop outputs(e_, product_.output_tiles - 1, "output tiles");
      HeldGp x(e_, "input");
      e_.set(x, product_.inputs, "input");
      {
        Loop chunks(e_, group_.chunks, "chunks of input tiles");
        chunk(current, x);
      }
      e_.emit(Op::M_MV_WO, {y, 0});
      e_.advance(y, vlen_);
    }
    HeldGp x(e_, "input");
    e_.set(x, product_.inputs, "input");
    {
      Loop chunks(e_, group_.chunks - 1, "chunks of input tiles");
      chunk(current, x);
    }
    const std::uint64_t steps = product_.output_tiles * group_.chunks;
    last_step(current, static_cast<unsigned>((place_.slot + steps - 1) % 2), group_.inputs,
              [&] { multiply_chunk(current, x); });
    e_.emit(Op::M_MV_WO, {y, 0});
  }

  void chunk(Gp current, Gp x) const {
    load_ahead(current, group_.inputs, group_.inputs);
    multiply_chunk(current, x);
    swap(current);
    e_.advance(x, group_.inputs * vlen_);
  }

  void multiply_chunk(Gp current, Gp x) const {
    HeldGp tile(e_, "tile");
    HeldGp row(e_, "input");
    e_.copy(tile, current);
    e_.copy(row, x);
    multiply_inputs(tile, row, group_.inputs);
  }

  // y = [y + partial] [* scale] [+ bias], all output tiles at once.
  void finish() const {
    if (!product_.add && !product_.bias && !product_.scale) return;
    HeldGp y(e_, "output");
    HeldGp partial(e_, "partial sum");
    std::optional<HeldGp> bias;
    e_.set(y, product_.outputs, "output");
    if (product_.add) e_.set(partial, context_.row(context_.plan.partials), "partial sums");
    if (product_.bias) {
      bias.emplace(e_, "bias");
      e_.set(*bias, *product_.bias, "bias");
    }
    const Gp sum = product_.add ? Gp(partial) : Gp(y);
    unroll(e_, product_.output_tiles, kMostCopies, "output tiles", [&](std::uint64_t copies, bool) {
      for (std::uint64_t i = 0; i < copies; ++i) {
        if (product_.scale) e_.emit(Op::V_MUL_VF, {sum, sum, *product_.scale, kAllLanes});
        if (bias) e_.emit(Op::V_ADD_VV, {sum, sum, *bias, kAllLanes});
        if (product_.add) e_.emit(Op::V_ADD_VV, {y, y, partial, kAllLanes});
        step(context_, y, vlen_, product_.output_tiles);
        if (bias) step(context_, *bias, vlen_, product_.output_tiles);
        if (product_.add) step(context_, partial, vlen_, product_.output_tiles);
      }
    });
  }

  const KernelContext& context_;
  Emitter& e_;
  const TiledProduct& product_;
  TileGroup group_;
  WeightPipeline& pipeline_;
  bool streams_;     // the weights follow those of the product before
  SlotPlace place_;  // of the first group
  std::uint64_t vlen_;
  std::uint64_t tile_elements_;
};

}  // namespace

TileGroup tile_group(const MemoryPlan& plan, std::uint64_t input_tiles,
                     std::uint64_t output_tiles) {
  constexpr std::uint64_t kTransfersUnderWay = 8;  // that the machine's queue holds by default
  TileGroup group;
  group.inputs = std::min(input_tiles, plan.slot_tiles);
  while (input_tiles % group.inputs != 0) --group.inputs;
  group.chunks = input_tiles / group.inputs;
  if (group.chunks == 1) {
    const std::uint64_t most = std::min(plan.slot_tiles, std::max(kTransfersUnderWay, input_tiles));
    group.outputs = std::clamp<std::uint64_t>(most / input_tiles, 1, output_tiles);
  }
  group.whole = group.chunks == 1 && group.outputs == output_tiles;
  const std::uint64_t rest = output_tiles % group.outputs;
  group.first_tiles = group.inputs * (rest != 0 ? rest : group.outputs);
  return group;
}

void load_first_tiles(const KernelContext& context, std::uint64_t tiles) {
  WeightPipeline& pipeline = context.pipeline;
  if (context.plan.slots < 2 || pipeline.loaded >= tiles) return;
  if (pipeline.loaded == 0) pipeline.place = {};
  load_slot(context, pipeline.place.slot, pipeline.place.skipped + pipeline.loaded,
            tiles - pipeline.loaded);
  pipeline.loaded = tiles;
}

void load_behind_next(const KernelContext& context) {
  WeightPipeline& pipeline = context.pipeline;
  if (pipeline.loaded != pipeline.next_tiles) return;  // the next one's are first in the stream
  const SlotPlace& next = pipeline.place;
  const SlotPlace behind{next.slot, next.skipped + pipeline.loaded};
  const bool fits = pipeline.behind_next_whole &&
                    behind.skipped + pipeline.behind_next_tiles <= context.plan.slot_tiles;
  pipeline.behind_next_place = fits ? behind : SlotPlace{1 - next.slot, 0};
  load_slot(context, pipeline.behind_next_place.slot, pipeline.behind_next_place.skipped,
            pipeline.behind_next_tiles);
  pipeline.behind_next_loaded = pipeline.behind_next_tiles;
}

void load_third(const KernelContext& context) {
  WeightPipeline& pipeline = context.pipeline;
  if (pipeline.behind_next_loaded == 0) return;
  load_slot(context, kThirdSlot, 0, pipeline.third_tiles);
  pipeline.third_loaded = pipeline.third_tiles;
}

void emit_tiled_product(const KernelContext& context, const TiledProduct& product) {
  ProductLoops(context, product).emit();
}

void emit_product(const KernelContext& context, const LayerKind& kind, const ProductOp& op,
                  const std::optional<LateNorm>& norm) {
  std::string name;
  std::uint64_t output_tiles = 0;
  for (const MatrixUse& use : op.matrices) {
    name += (name.empty() ? "" : "_") + std::string(matrix_role_name(use.role));
    output_tiles += context.tiled.rows(use.outputs, use.width);
  }
  const RegionScope region(context.emitter, name);
  TiledProduct product{.stream = context.weights,
                       .inputs = context.row(norm ? norm->from : op.from),
                       .outputs = context.row(op.to),
                       .input_tiles = context.tiled.rows(op.from),
                       .output_tiles = output_tiles,
                       .add = op.add};
  if (op.bias) product.bias = bias_address(context, kind, op);
  emit_tiled_product(context, product);
}

}  // namespace plena
