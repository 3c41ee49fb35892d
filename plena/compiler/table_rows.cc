// Rows of tables in HBM: those of the position, the biases and gains of a layer, the embedding.

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

// rows[0 ...] += rows of the other terms, which follow in the same order.
void add_up_terms(const KernelContext& context, Gp to, const TableShape& table) {
  if (table.terms == 1) return;
  Emitter& e = context.emitter;
  const std::uint64_t vlen = context.settings.vlen;
  HeldGp sum(e, "sum");
  HeldGp term(e, "term");
  e.offset(term, to, table.rows * vlen, "second terms");
  Loop terms(e, table.terms - 1, "terms");
  e.copy(sum, to);
  Loop rows(e, table.rows, "rows");
  e.emit(Op::V_ADD_VV, {sum, sum, term, kAllLanes});
  step(context, sum, vlen, table.rows);
  step(context, term, vlen, table.stored_rows());
}

void load_token(const KernelContext& context) {
  Emitter& e = context.emitter;
  const ValueId residual = context.tiled.graph->residual;
  const std::uint64_t tiles = context.tiled.dim_tiles;
  HeldGp from(e, "element of the embedding");
  HeldGp to(e, "row width, residual");
  load_kept(context, from, context.plan.token, "token");
  e.set(to, tiles * context.tiled.mlen);
  e.emit(Op::S_MUL_INT, {from, from, to});
  e.set(to, context.row(residual), "residual");
  load_rows(context, from, kEmbeddingBase, to, tiles);
}

// residual += the learned embedding of the position.
void add_position(const KernelContext& context) {
  Emitter& e = context.emitter;
  const Graph& graph = *context.tiled.graph;
  const std::uint64_t vlen = context.settings.vlen;
  const std::uint64_t tiles = context.tiled.dim_tiles;
  const std::uint64_t angles = 2 * graph.rotary.size() * context.tiled.heads.span;
  HeldGp x(e, "residual");
  HeldGp learned(e, "embedding of the position");
  e.set(x, context.row(graph.residual), "residual");
  e.set(learned, context.row(context.plan.position_rows, angles), "embedding of the position");
  Loop loop(e, tiles, "residual tiles");
  e.emit(Op::V_ADD_VV, {x, x, learned, kAllLanes});
  step(context, x, vlen, tiles);
  step(context, learned, vlen, tiles);
}

}  // namespace

void load_rows(const KernelContext& context, Gp from, AddressRegister base, Gp to,
               std::uint64_t rows) {
  Emitter& e = context.emitter;
  const std::uint64_t amount = context.settings.hbm_v_prefetch_amount;
  const std::uint64_t transfers = (rows + amount - 1) / amount;
  Loop loop(e, transfers, "transfers");
  e.emit(Op::H_PREFETCH_V, {to, from, base, kContiguous, kActivation});
  step(context, to, amount * context.settings.vlen, transfers);
  step(context, from, amount * context.settings.vlen, transfers);
}

void load_entry(const KernelContext& context, Gp from, AddressRegister base, Gp to,
                const TableShape& table) {
  {
    HeldGp row(context.emitter, "row");
    context.emitter.copy(row, to);
    load_rows(context, from, base, row, table.stored_rows());
  }
  add_up_terms(context, to, table);
}

namespace {

// `rows` rows of each term from element `from` of the vectors on, to `block`, and their sums.
void load_vectors(const KernelContext& context, Gp from, const Block& block, std::uint64_t rows) {
  Emitter& e = context.emitter;
  const TableShape& table = context.tables.vectors;
  HeldGp to(e, block.name);
  if (rows == table.rows) {
    e.set(to, context.row(block), block.name);
    return load_entry(context, from, kVectorsBase, to, table);
  }
  for (std::uint32_t term = 0; term < table.terms; ++term) {
    HeldGp element(e, "element of the vectors");
    e.offset(element, from, std::uint64_t{term} * table.rows * context.tiled.mlen);
    e.set(to, context.row(block, term * rows), block.name);
    load_rows(context, element, kVectorsBase, to, rows);
  }
  e.set(to, context.row(block), block.name);
  add_up_terms(context, to,
               {.entries = 1, .rows = static_cast<std::uint32_t>(rows), .terms = table.terms});
}

}  // namespace

void emit_layer_vectors(const KernelContext& context, std::uint32_t rows) {
  if (rows == 0) return;
  Emitter& e = context.emitter;
  const RegionScope region(e, "layer_vectors");
  HeldGp from(e, "element of the vectors");
  load_kept(context, from, context.plan.vectors_at, "vectors of this layer");
  load_vectors(context, from, context.plan.vectors, rows);
}

void emit_logit_bias(const KernelContext& context, const LayerKind& ending, VectorId bias,
                     std::uint64_t rows) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "logit_bias");
  HeldGp from(e, "element of the vectors");
  {
    HeldGp piece(e, "logits so far");
    load_kept(context, from, context.plan.vectors_at, "vectors of the ending");
    load_kept(context, piece, context.plan.logits_so_far, "logits so far");
    e.emit(Op::S_ADD_INT, {from, from, piece});
  }
  const std::uint64_t first = context.tiled.first_row(ending.vectors, bias);
  if (first != 0) e.advance(from, first * context.tiled.mlen, "their bias");
  load_vectors(context, from, context.plan.logit_bias, rows);
}

std::uint64_t bias_address(const KernelContext& context, const LayerKind& kind,
                           const ProductOp& op) {
  const bool of_piece = op.to == context.tiled.graph->logits && context.plan.logit_bias.count != 0;
  if (of_piece) return context.row(context.plan.logit_bias);
  return context.row(context.plan.vectors, context.tiled.first_row(kind.vectors, *op.bias));
}

void emit_embedding(const KernelContext& context) {
  const RegionScope region(context.emitter, "embedding");
  load_token(context);
}

void emit_position_terms(const KernelContext& context) {
  if (context.tables.positions.rows == 0) return;
  HeldGp rows(context.emitter, "rows of the position");
  context.emitter.set(rows, context.row(context.plan.position_rows), "rows of the position");
  add_up_terms(context, rows, context.tables.positions);
}

void emit_arrived_rows(const KernelContext& context) {
  const RegionScope region(context.emitter, "arrived_rows");
  emit_position_terms(context);
  if (context.tiled.graph->positions) add_position(context);
  emit_no_scores(context);
}

}  // namespace plena
