// Query heads that share HLEN lanes of K, side by side in rows for M_BTMM: each slot of HLEN lanes
// of such a row holds one head, in the lanes where K has its KV head, zeros elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plena/compiler/tiled_graph.h"
#include "plena/config/settings.h"

namespace plena {

/// KV heads in HLEN lanes of K, with all query heads of them, are a family. It takes `packs` rows;
/// rows lie [K tile][family][pack].
struct QueryPacking {
  struct Head {
    std::uint32_t slot = 0;   // of the first family's K and output rows
    std::uint32_t group = 0;  // output row
  };
  std::uint32_t rows = 0;             // of a token; 0: heads are multiplied one by one
  std::uint32_t families = 0;         // of a K tile
  std::uint32_t family_kv_heads = 0;  // also the slots from one family to the next
  std::uint32_t packs = 0;            // rows of a family
  std::vector<Head> heads;            // of a family, in the order of its rows' slots

  [[nodiscard]] bool empty() const { return rows == 0; }
};

/// Packs queries where that takes fewer products than one a head; a model whose queries have biases
/// or norms of their own has them head by head.
QueryPacking pack_queries(const TiledGraph& tiled, const Settings& settings);

/// Where lane `lane` of query row `row` goes: a row and a lane of the packed ones.
struct PackedPlace {
  std::uint32_t row = 0;
  std::uint32_t lane = 0;
};
/// Nothing for a lane that belongs to no head.
std::optional<PackedPlace> packed_place(const QueryPacking& packing, const TiledGraph& tiled,
                                        const Settings& settings, std::uint32_t row,
                                        std::uint32_t lane);

}  // namespace plena
