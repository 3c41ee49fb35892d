#include "plena/compiler/query_packing.h"

#include <algorithm>

namespace plena {

namespace {

// Biases and norms of queries have the lanes of unpacked rows; q, k and v are one product.
bool queries_come_bare(const Graph& graph) {
  for (const LayerKind& kind : graph.kinds) {
    for (const Operator& op : kind.operators) {
      if (const auto* norm = std::get_if<HeadNormOp>(&op)) {
        if (norm->part == HeadPart::Queries) return false;
      }
      const auto* product = std::get_if<ProductOp>(&op);
      if (product == nullptr || !product->bias) continue;
      for (const MatrixUse& use : product->matrices) {
        if (use.role == MatrixRole::Query) return false;
      }
    }
  }
  return true;
}

}  // namespace

QueryPacking pack_queries(const TiledGraph& tiled, const Settings& settings) {
  const HeadLayout& layout = tiled.heads;
  if (layout.span > 1 || settings.hlen % layout.head_lanes != 0) return {};
  if (!queries_come_bare(*tiled.graph)) return {};
  const std::uint32_t kv_heads = layout.slots / layout.copies;  // of a K tile
  QueryPacking packing;
  packing.family_kv_heads = settings.hlen / layout.head_lanes;
  if (kv_heads % packing.family_kv_heads != 0) return {};
  packing.families = kv_heads / packing.family_kv_heads;
  for (std::uint32_t kv = 0; kv < packing.family_kv_heads; ++kv) {
    for (std::uint32_t copy = 0; copy < layout.copies; ++copy) {
      for (std::uint32_t group = 0; group < layout.groups; ++group) {
        packing.heads.push_back({copy * kv_heads + kv, group});
      }
    }
  }
  const auto slots = settings.mlen / settings.hlen;
  packing.packs = tiles_of(packing.heads.size(), slots);
  packing.rows = layout.tiles * packing.families * packing.packs;
  if (packing.rows >= layout.tiles * layout.heads_per_tile()) return {};
  return packing;
}

std::optional<PackedPlace> packed_place(const QueryPacking& packing, const TiledGraph& tiled,
                                        const Settings& settings, std::uint32_t row,
                                        std::uint32_t lane) {
  const HeadLayout& layout = tiled.heads;
  const std::uint32_t tile = row / layout.groups;
  const std::uint32_t slot = lane / layout.head_lanes;
  if (slot >= layout.slots ||
      tile * layout.slots + slot >= layout.copies * tiled.graph->heads.kv_heads) {
    return std::nullopt;
  }
  const std::uint32_t kv_heads = layout.slots / layout.copies;
  const std::uint32_t family = slot % kv_heads / packing.family_kv_heads;
  const std::uint32_t kv = slot % kv_heads % packing.family_kv_heads;
  const std::uint32_t head =
      (kv * layout.copies + slot / kv_heads) * layout.groups + row % layout.groups;
  const std::uint32_t slots = settings.mlen / settings.hlen;
  return PackedPlace{
      .row = (tile * packing.families + family) * packing.packs + head / slots,
      .lane = head % slots * settings.hlen + kv * layout.head_lanes + lane % layout.head_lanes};
}

}  // namespace plena
