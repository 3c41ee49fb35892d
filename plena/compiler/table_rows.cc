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

void load_token(const KernelContext& context, Gp token) {
  Emitter& e = context.emitter;
  const ValueId residual = context.tiled.graph->residual;
  const std::uint64_t tiles = context.tiled.dim_tiles;
  HeldGp from(e, "element of the embedding");
  HeldGp to(e, "row width, residual");
  load_kept(context, from, context.plan.token, "token", token);
  e.set(to, tiles * context.tiled.mlen);
  e.emit(Op::S_MUL_INT, {from, from, to});
  set_indexed(context, to, context.row(residual), context.token_stride(residual), token,
              "residual");
  load_rows(context, from, kEmbeddingBase, to, tiles);
}

// residual += the learned embedding of the position.
void add_position(const KernelContext& context, Gp token) {
  Emitter& e = context.emitter;
  const Graph& graph = *context.tiled.graph;
  const std::uint64_t vlen = context.settings.vlen;
  const std::uint64_t tiles = context.tiled.dim_tiles;
  const std::uint64_t angles = 2 * graph.rotary.size() * context.tiled.heads.span;
  HeldGp x(e, "residual");
  HeldGp learned(e, "embedding of the position");
  set_indexed(context, x, context.row(graph.residual), context.token_stride(graph.residual), token,
              "residual");
  set_indexed(context, learned, context.row(context.plan.position_rows, angles),
              context.tables.positions.stored_rows() * vlen, token, "embedding of the position");
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

void emit_layer_vectors(const KernelContext& context, std::uint32_t rows) {
  if (rows == 0) return;
  Emitter& e = context.emitter;
  const RegionScope region(e, "layer_vectors");
  HeldGp from(e, "element of the vectors");
  HeldGp to(e, "biases and gains");
  load_kept(context, from, context.plan.vectors_at, "vectors of this layer");
  e.set(to, context.row(context.plan.vectors), "biases and gains");
  load_entry(context, from, kVectorsBase, to, context.tables.vectors);
}

void emit_embedding(const KernelContext& context) {
  const RegionScope region(context.emitter, "embedding");
  TokenLoop tokens(context);
  load_token(context, tokens.index());
  if (context.tiled.graph->positions) add_position(context, tokens.index());
}

void emit_pick_token(const KernelContext& context, ValueId value) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "pick_token");
  const std::uint64_t tiles = context.tiled.rows(value);
  HeldGp from(e, "rows of the last token");
  HeldGp to(e, "rows of the first");
  load_kept(context, to, context.plan.last_token, "token whose logits are wanted");
  e.set(from, context.token_stride(value));
  e.emit(Op::S_MUL_INT, {from, from, to});
  e.advance(from, context.row(value), "its rows");
  e.set(to, context.row(value), "rows of the first token");
  Loop loop(e, tiles, "rows");
  e.emit(Op::V_ADD_VF, {to, from, kZeroFp, kAllLanes});
  step(context, to, context.settings.vlen, tiles);
  step(context, from, context.settings.vlen, tiles);
}

}  // namespace plena
