// Where everything lives: HBM, Vector SRAM, Matrix SRAM, FP_MEM and INT_MEM of a compiled Llama.
//
// Every block is placed once and named; overlap is impossible by construction and still checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plena/base/error.h"
#include "plena/compiler/tiling.h"
#include "plena/config/settings.h"

namespace plena {

/// Named consecutive entries of one memory: bytes of HBM, rows of Vector SRAM, tiles of Matrix
/// SRAM, entries of FP_MEM or INT_MEM.
struct Block {
  std::string name;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// Hands out blocks of a memory from its start on.
class BlockAllocator {
 public:
  BlockAllocator(std::string memory, std::uint64_t capacity, std::string unit);

  /// The next `count` entries. What does not fit is remembered for status().
  Block place(std::string name, std::uint64_t count);

  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] std::uint64_t used() const { return used_; }
  [[nodiscard]] std::uint64_t capacity() const { return capacity_; }

  /// An error that lists the largest block when more was placed than there is.
  [[nodiscard]] Status status() const;

 private:
  std::string memory_;
  std::uint64_t capacity_;
  std::string unit_;
  std::uint64_t used_ = 0;
  std::vector<Block> blocks_;
};

/// Blocks neither overlap nor leave the memory.
Status check_blocks(const std::vector<Block>& blocks, std::uint64_t capacity);

/// A tensor in HBM: its elements from byte `base`, its scales at base + MemoryPlan::scale_offset.
struct HbmTensor {
  std::uint64_t base = 0;      // byte address
  std::uint64_t elements = 0;  // that may be touched, slack of whole-tile transfers included
};

/// What the plan needs to know of the tables besides the tiling.
struct PlanInput {
  std::uint64_t weight_tiles = 0;
  std::uint32_t rope_rows = 0;  // per position
  std::uint32_t layers = 0;
  std::uint32_t vocab = 0;
  std::uint32_t context = 0;
};

/// Rows of the constants before the mask: zeros and the selectors.
std::uint64_t selector_rows(const LlamaTiling& tiling);

struct MemoryPlan {
  // HBM. One SCALE_REG serves all tensors: each one's scales lie the same distance behind its
  // elements.
  HbmTensor weights;
  HbmTensor cache;      // [layer][K tiles, V tiles][position][mlen]
  HbmTensor embedding;  // [vocab][dim tiles * mlen]
  HbmTensor rope;       // [context][rows][mlen]
  HbmTensor constants;  // [zeros, slot selectors, 2 rows of causal mask][mlen]
  std::uint64_t scale_offset = 0;
  std::uint64_t cache_stride = 0;  // elements between K tile 0 and the next of a layer

  // Vector SRAM, in rows.
  Block residual;   // [dim tiles]
  Block normed;     // [dim tiles]
  Block qkv;        // [query tiles, K tiles, V tiles]
  Block heads;      // [heads of a tile] queries, each alone in its row
  Block scores;     // [context tiles][heads of a tile]
  Block attention;  // [query tiles] output of attention
  Block gate;       // [2] gate and up of one hidden tile
  Block hidden;     // [hidden tiles]
  Block logits;     // [vocab tiles]
  Block scratch;    // [1]
  Block mask;       // row 0: 0 up to the position, else a very negative number
  Block rope_rows;  // [cosine terms, sine terms]
  Block selectors;  // row 0: zeros; row 1 + slot: 1 in the lanes of the slot, else 0

  // Matrix SRAM, in tiles.
  Block rotation;     // [1] the signed permutation of RoPE, loaded once a token
  Block stage;        // tiles one H_PREFETCH_M fills
  Block value_tiles;  // [context tiles] V of one layer; empty where it does not fit

  // FP_MEM and INT_MEM.
  Block norm_bias;   // dim * epsilon
  Block one;         // 1
  Block lowest;      // the very negative number
  Block token;       // written by the host, as the rest of INT_MEM
  Block cache_row;   // element of this position in a K or V tile region
  Block rope_row;    // element of this position in the rope table
  Block cache_span;  // elements of a K tile region up to the position's tile, it included
  Block score_span;  // elements of `scores` up to there
  Block last_lane;   // lane of this position in its tile

  BlockAllocator hbm, vram, mram, fp, integers;

  [[nodiscard]] Status check() const;
};

/// Fails, saying which memory and by how much, where the model does not fit the settings.
Result<MemoryPlan> plan_memory(const PlanInput& input, const LlamaTiling& tiling,
                               const Settings& settings);

}  // namespace plena
