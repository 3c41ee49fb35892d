// Where the entry for blocks of tokens keeps its rows and tiles. Rows of a value lie tile by tile:
// all tokens' rows of its first tile, then of the second, so that M_MM and M_TMM find the tokens of
// a tile in consecutive rows.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "plena/compiler/memory_plan.h"
#include "plena/compiler/query_packing.h"
#include "plena/compiler/tiled_graph.h"
#include "plena/config/settings.h"

namespace plena {

/// Rows of scores whose softmax runs side by side: one for each f register but f0.
inline constexpr std::uint64_t kScoresAbreast = 7;
/// Rows that other kernels take side by side.
inline constexpr std::uint64_t kRowsAbreast = 4;

/// What hides the positions before a window.
struct BlockWindow {
  Block masks;       // [2][tokens] for the tile before `edge`, then for that one
  Block first_tile;  // INT_MEM: tiles before the first one in sight of the block
  Block edge;        // INT_MEM: tiles before the last one that a token's window may begin in
  Block
      edge_lane;  // INT_MEM: what lane of the tile before `edge` the first token's window begins in
};

struct BlockPlan {
  /// Rows before values and `up` that belong to nobody (gated_silu.h).
  static constexpr std::uint64_t kLeadRows = kRowsAbreast;

  std::uint32_t tokens = 1;  // of a block; 1: the program has no entry for blocks
  bool all_logits = false;   // of its tokens; else decoding's ending computes those of one
  QueryPacking packing;

  // Vector SRAM, in rows.
  std::vector<Block> values;     // by ValueId, [rows][tokens]; of q, k, v the queries may be packed
  std::uint32_t query_rows = 0;  // of q, k, v
  Block gate;                    // [hidden tiles][tokens]
  Block up;                      // [hidden tiles][tokens]
  Block activation;              // [hidden tiles][tokens] between the stages of an activation
  Block rotated;                 // [tokens] of a row on their way through RoPE
  // The same of keys where queries are packed: either leaves lanes at 0 that the other has.
  Block rotated_keys;
  Block partials;                // [tokens] to be added to a product's output
  Block heads;                   // [heads of a K tile][tokens] queries, each alone in its rows
  Block scores;                  // [context tiles and one more at either end][score_rows]
  std::uint64_t score_rows = 0;  // [heads of a K tile][rows_per_head], and a few
  std::uint64_t rows_per_head = 0;
  bool tile_by_tile = false;  // scores of one tile of positions, behind those of sinks
  Block weighted;             // [groups][span][tokens] weighted sums of one tile of V
  Block weights;              // [groups][tokens] sums of weights in the first lanes of each head's
  Block denominators;         // [K tiles][groups][tokens] the same, of all tiles
  Block quotients;   // [tokens] 1 / sums of weights in all lanes of a head; 1 where there is none
  Block mask;        // [tokens] 0 up to the token's position in its tile, else very negative
  Block first_lane;  // [1] 0 in the first lane, else very negative
  Block position_rows;            // [tokens] as MemoryPlan::position_rows
  Block staged;                   // [tokens][staged_rows] embeddings as they are fetched
  std::uint64_t staged_rows = 0;  // that whole transfers of one embedding take
  Block scratch;                  // [3][kRowsAbreast]

  // Matrix SRAM, in tiles; behind the permutation of RoPE they lie where decoding keeps others.
  BlockAllocator mram{"Matrix SRAM", 0, "tiles"};
  Block ones;                    // [1] every element 1
  Block spread;                  // [1] what takes the first lane of a slot to all of its lanes
  Block pool;                    // weights, and in turn K or V
  std::uint64_t slots = 1;       // of K or V tiles in the pool
  std::uint64_t slot_pitch = 1;  // tiles from one of these to the next
  std::uint64_t value_slot = 0;  // of V where scores come tile by tile

  Block maxima;  // FP_MEM: [score_rows] so far; empty where those of all tiles are found at once
  Block lowest;  // FP_MEM: [kScoresAbreast] right before them, where BlockMaxima finds them

  // INT_MEM.
  Block expert_tokens;    // counter of the loop over tokens whose experts run
  Block expert_token;     // elements from the first token's rows to its own
  Block kv_tiles;         // counter of the loop over tiles of K lanes
  Block walk_at;          // the next tile of positions in the cache
  Block walk_end;         // behind the last one in sight
  Block walk_left;        // what is left of the way between them
  Block score_at;         // the scores of the tile in hand
  Block score_end;        // behind the scores of the tiles in sight
  Block edge_left;        // tiles to the edge of the window, of scores that come tile by tile
  Block outputs_at;       // where the outputs of the tile of K lanes start
  Block sums_at;          // and its denominators
  Block product_counter;  // of the loop over a product's output tiles
  Block product_output;   // the output tile's rows
  Block product_bias;     // and its bias
  std::map<std::uint32_t, BlockWindow> windows;  // by width; all but 0
};

/// What a block's tokens are: positions of one sequence, or one of each of several, which have all
/// their logits and meet the cache one by one.
enum class BlockUse : std::uint8_t { Prompt, Sequences };

/// The plan for blocks of `tokens`, whose rows and integers are placed in `plan` behind those of
/// decoding; MemoryPlan::check() says whether they fit. An error where Matrix SRAM is too small.
Result<BlockPlan> plan_block(const TiledGraph& tiled, const PlanInput& input,
                             const Settings& settings, std::uint32_t tokens, MemoryPlan& plan,
                             BlockUse use = BlockUse::Prompt);

/// The most tokens a block may have, at most `most`: they divide a tile of positions, and whole
/// transfers store them. 1 where there is no such number.
std::uint32_t block_size(const TiledGraph& tiled, const Settings& settings, std::uint32_t most);

}  // namespace plena
