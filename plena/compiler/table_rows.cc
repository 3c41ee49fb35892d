// Rows of tables in HBM: those of the position, the biases and gains of a layer, the embedding.

#include "plena/compiler/kernels.h"

namespace plena {

namespace {

// rows[0 ...] += rows of the other terms, which follow in the same order.
void add_up_terms(const KernelContext& context, const Block& to, const TableShape& table) {
  if (table.terms == 1) return;
  Emitter& e = context.emitter;
  const std::uint64_t vlen = context.settings.vlen;
  HeldGp sum(e, "sum");
  HeldGp term(e, "term");
  e.set(term, context.row(to, table.rows), "second terms");
  Loop terms(e, table.terms - 1, "terms");
  e.set(sum, context.row(to), to.name);
  Loop rows(e, table.rows, "rows");
  e.emit(Op::V_ADD_VV, {sum, sum, term, kAllLanes});
  step(context, sum, vlen, table.rows);
  step(context, term, vlen, table.stored_rows());
}

}  // namespace

void load_rows(const KernelContext& context, Gp from, AddressRegister base, const Block& to,
               std::uint64_t rows) {
  Emitter& e = context.emitter;
  const std::uint64_t amount = context.settings.hbm_v_prefetch_amount;
  const std::uint64_t transfers = (rows + amount - 1) / amount;
  HeldGp row(e, to.name);
  e.set(row, context.row(to), to.name);
  Loop loop(e, transfers, "transfers");
  e.emit(Op::H_PREFETCH_V, {row, from, base, kContiguous, kActivation});
  step(context, row, amount * context.settings.vlen, transfers);
  step(context, from, amount * context.settings.vlen, transfers);
}

void load_entry(const KernelContext& context, Gp from, AddressRegister base, const Block& to,
                const TableShape& table) {
  load_rows(context, from, base, to, table.stored_rows());
  add_up_terms(context, to, table);
}

void emit_layer_vectors(const KernelContext& context, std::uint32_t rows) {
  if (rows == 0) return;
  Emitter& e = context.emitter;
  const RegionScope region(e, "layer_vectors");
  HeldGp from(e, "element of the vectors");
  load_kept(context, from, context.plan.vectors_at, "vectors of this layer");
  load_entry(context, from, kVectorsBase, context.plan.vectors, context.tables.vectors);
}

void emit_embedding(const KernelContext& context) {
  Emitter& e = context.emitter;
  const RegionScope region(e, "embedding");
  const Graph& graph = *context.tiled.graph;
  const std::uint64_t tiles = context.tiled.dim_tiles;
  {
    HeldGp from(e, "element of the embedding");
    HeldGp row_width(e, "row width");
    e.emit(Op::S_LD_INT, {from, kZeroGp, context.plan.token.first}, "token");
    e.set(row_width, tiles * context.tiled.mlen);
    e.emit(Op::S_MUL_INT, {from, from, row_width});
    load_rows(context, from, kEmbeddingBase, context.plan.values[graph.residual], tiles);
  }
  if (!graph.positions) return;
  HeldGp x(e, "residual");
  HeldGp learned(e, "embedding of the position");
  e.set(x, context.row(graph.residual), "residual");
  e.set(learned,
        context.row(context.plan.position_rows, 2 * graph.rotary.size() * context.tiled.heads.span),
        "embedding of the position");
  Loop loop(e, tiles, "residual tiles");
  e.emit(Op::V_ADD_VV, {x, x, learned, kAllLanes});
  step(context, x, context.settings.vlen, tiles);
  step(context, learned, context.settings.vlen, tiles);
}

}  // namespace plena
