// Products of all tokens of a block with tiles that lie in Matrix SRAM: BLEN tokens and BLEN
// outputs an instruction, the inputs added up in the array. The write-outs of a few BLEN outputs
// have their lanes as immediates.

#include <algorithm>
#include <deque>
#include <utility>

#include "plena/compiler/block_kernels.h"

namespace plena {

namespace {

constexpr std::uint64_t kMostProducts = 16;  // of an M_MM in one stretch of code
constexpr std::uint64_t kFewInputs = 3;

class TileProductLoops {
 public:
  TileProductLoops(const BlockContext& context, const TileProduct& product)
      : context_(context),
        e_(context.emitter),
        product_(product),
        blen_(context.settings.blen),
        columns_(context.settings.mlen / context.settings.blen),
        column_stride_(product.transposed ? blen_ * context.settings.mlen : blen_) {}

  void emit() {
    const std::uint64_t rows = blen_ * context_.settings.vlen;
    Loop tokens(e_, context_.block.tokens / blen_, "tokens, BLEN at a time");
    if (product_.tile_walks) {
      emit_columns(product_.tile);
      e_.retreat(product_.tile, columns_ * column_stride_, "first outputs");
    } else {
      HeldGp column(e_, "BLEN outputs");
      e_.copy(column, product_.tile);
      if (few_inputs()) {
        emit_columns_of_few(column);
      } else if (product_.places.empty()) {
        emit_columns(column);
      } else {
        emit_placed_columns(column);
      }
    }
    for (; steps_ < product_.beside.size(); ++steps_) product_.beside[steps_]();
    e_.advance(product_.x, rows);
    e_.advance(product_.y, rows);
  }

 private:
  [[nodiscard]] bool few_inputs() const {
    return product_.inputs > 1 && product_.inputs <= kFewInputs && product_.places.empty() &&
           columns_ * product_.inputs <= 4 * kMostProducts;
  }

  void step_beside() {
    if (steps_ < product_.beside.size()) product_.beside[steps_++]();
  }

  // All outputs of a tile whose inputs have pointers of their own.
  void emit_columns_of_few(Gp column) {
    std::deque<HeldGp> inputs;
    std::deque<HeldGp> tiles;
    for (std::uint64_t i = 1; i < product_.inputs; ++i) {
      e_.offset(inputs.emplace_back(e_, "input"), product_.x, i * context_.tile_rows());
      e_.offset(tiles.emplace_back(e_, "its tile"), column, i * context_.tiled.tile_elements());
    }
    for (std::uint64_t i = 0; i < columns_; ++i) {
      for (std::uint64_t k = 0; k < product_.inputs; ++k) {
        const Gp tile = k == 0 ? column : Gp(tiles[k - 1]);
        multiply(k == 0 ? product_.x : Gp(inputs[k - 1]), tile);
        e_.advance(tile, column_stride_);
      }
      step_beside();
      e_.emit(Op::M_MM_WO, {product_.y, i * blen_});
    }
  }

  // All outputs of a tile, one behind the other.
  void emit_columns(Gp column) {
    const std::uint64_t most = std::max<std::uint64_t>(1, kMostProducts / product_.inputs);
    const std::uint64_t copies = abreast(columns_, std::min(columns_, most));
    const std::uint64_t turns = columns_ / copies;
    std::optional<HeldGp> walk;
    if (turns > 1) {
      walk.emplace(e_, "result");
      e_.copy(*walk, product_.y);
    }
    const Gp y = walk ? Gp(*walk) : product_.y;
    const Operands operands(*this, column);
    Loop loop(e_, turns, "outputs");
    for (std::uint64_t i = 0; i < copies; ++i) {
      multiply(operands, column);
      if (turns == 1) step_beside();
      e_.emit(Op::M_MM_WO, {y, i * blen_});
    }
    if (walk) e_.advance(*walk, copies * blen_);
  }

  void emit_placed_columns(Gp column) {
    const Operands operands(*this, column);
    std::uint64_t skipped = 0;
    for (const std::uint64_t place : product_.places) {
      if (place == kNoPlace) {
        skipped += column_stride_;
        continue;
      }
      if (skipped != 0) operands.skip(column, std::exchange(skipped, 0));
      multiply(operands, column);
      step_beside();
      if (place <= kImm18Max) {
        e_.emit(Op::M_MM_WO, {product_.y, place});
        continue;
      }
      HeldGp far(e_, "result");
      e_.offset(far, product_.y, place);
      e_.emit(Op::M_MM_WO, {far, 0});
    }
  }

  // What walks through the inputs of BLEN outputs. It starts on the next ones while the array is at
  // work on these, so that a write-out is followed by a product at once.
  class Operands {
   public:
    Operands(const TileProductLoops& loops, Gp column) : loops_(loops) {
      if (loops.product_.inputs == 1) return;
      x.emplace(loops.e_, "input");
      tile.emplace(loops.e_, "its tile");
      start(column);
    }
    void start(Gp column) const {
      if (x) {
        loops_.e_.copy(*x, loops_.product_.x);
        loops_.e_.copy(*tile, column);
      }
      loops_.e_.advance(column, loops_.column_stride_);
    }
    void skip(Gp column, std::uint64_t elements) const {
      if (tile) loops_.e_.advance(*tile, elements);
      loops_.e_.advance(column, elements);
    }

    std::optional<HeldGp> x;
    std::optional<HeldGp> tile;

   private:
    const TileProductLoops& loops_;
  };

  // BLEN outputs of BLEN tokens into the array; moves `column` on to the next ones.
  void multiply(const Operands& operands, Gp column) const {
    if (product_.inputs == 1) {
      multiply(product_.x, column);
    } else {
      multiply_inputs(*operands.x, *operands.tile);
    }
    operands.start(column);
  }

  void multiply_inputs(Gp x, Gp tile) const {
    const std::uint64_t copies = abreast(product_.inputs, std::min(product_.inputs, kMostProducts));
    Loop loop(e_, product_.inputs / copies, "inputs");
    for (std::uint64_t i = 0; i < copies; ++i) {
      multiply(x, tile);
      if (copies == product_.inputs && i + 1 == copies) break;
      e_.advance(x, context_.tile_rows());
      e_.advance(tile, context_.tiled.tile_elements());
    }
  }

  void multiply(Gp x, Gp tile) const {
    if (product_.transposed) return e_.emit(Op::M_TMM, {x, tile});
    e_.emit(Op::M_MM, {tile, x});
  }

  const BlockContext& context_;
  Emitter& e_;
  const TileProduct& product_;
  std::uint64_t blen_;
  std::uint64_t columns_;
  std::size_t steps_ = 0;        // beside the products, taken so far
  std::uint64_t column_stride_;  // elements of a tile from BLEN outputs to the next ones
};

}  // namespace

std::vector<std::uint64_t> places_in_use(const BlockContext& context,
                                         std::span<const std::uint32_t> lanes) {
  std::vector<std::uint64_t> places;
  const std::uint32_t blen = context.settings.blen;
  for (std::size_t lane = 0; lane < lanes.size(); lane += blen) {
    const bool used = std::ranges::any_of(lanes.subspan(lane, blen),
                                          [](std::uint32_t l) { return l != kPadding; });
    places.push_back(used ? lane : kNoPlace);
  }
  return places;
}

void emit_tile_product(const BlockContext& context, const TileProduct& product) {
  TileProductLoops(context, product).emit();
}

}  // namespace plena
