// Where everything lives: HBM, Vector SRAM, Matrix SRAM, FP_MEM and INT_MEM of a compiled model.
//
// Every block is placed once, named, and has a life (life.h): those whose lives do not meet may
// share rows. That no two meet in one place is checked apart from how they are placed.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "plena/base/error.h"
#include "plena/compiler/graph.h"
#include "plena/compiler/life.h"
#include "plena/compiler/tiled_graph.h"
#include "plena/config/settings.h"

namespace plena {

/// Named consecutive entries of one memory: bytes of HBM, rows of Vector SRAM, tiles of Matrix
/// SRAM, entries of FP_MEM or INT_MEM.
struct Block {
  std::string name;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  Life life = {};
};

/// Hands out blocks of a memory.
class BlockAllocator {
 public:
  BlockAllocator(std::string memory, std::uint64_t capacity, std::string unit);

  /// The first `count` entries that are free all through `life`. What does not fit is remembered
  /// for status().
  Block place(std::string name, std::uint64_t count, const Life& life = {});

  /// Entries `first` … that the caller knows to be free.
  Block place_at(std::string name, std::uint64_t first, std::uint64_t count, const Life& life = {});

  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] std::uint64_t used() const { return used_; }
  [[nodiscard]] std::uint64_t capacity() const { return capacity_; }
  [[nodiscard]] const std::string& memory() const { return memory_; }
  [[nodiscard]] const std::string& unit() const { return unit_; }

  /// An error that lists the largest block when more was placed than there is.
  [[nodiscard]] Status status() const;

 private:
  std::string memory_;
  std::uint64_t capacity_;
  std::string unit_;
  std::uint64_t used_ = 0;
  std::vector<Block> blocks_;
};

/// No block leaves the memory, and at no step of any life do two blocks overlap that are in use
/// then.
Status check_blocks(const std::vector<Block>& blocks, std::uint64_t capacity);

/// A tensor in HBM: its elements from byte `base`, its scales at base + MemoryPlan::scale_offset.
struct HbmTensor {
  std::uint64_t base = 0;      // byte address
  std::uint64_t elements = 0;  // that may be touched, slack of whole-tile transfers included
};

/// A tensor with a part for each layer, layer after layer, cut into windows: an element offset
/// reaches 2^32 elements, the distance to the scales 2^32 bytes.
struct LayeredTensor {
  struct Place {
    std::size_t window = 0;
    std::uint64_t first = 0;  // element of the window
  };
  std::vector<HbmTensor> windows;
  std::vector<Place> layers;

  /// More than one address register can hold: it is set again for each layer.
  [[nodiscard]] bool windowed() const { return windows.size() > 1; }
};

/// Rows of a table in HBM that are sums of several rows: [entry][term][row][mlen].
struct TableShape {
  std::uint64_t entries = 0;
  std::uint32_t rows = 0;   // of an entry; 0: there is no such table
  std::uint32_t terms = 1;  // that add up to a row

  /// Rows of HBM an entry takes.
  [[nodiscard]] std::uint64_t stored_rows() const { return std::uint64_t{rows} * terms; }
};

/// Which entries of the program take the softmax of a context with a running maximum and sum: those
/// whose scores of the whole context do not fit Vector SRAM.
enum class RunningSoftmax : std::uint8_t { None, Blocks, All };

/// What the plan needs to know besides the graph.
struct PlanInput {
  TableShape positions;  // what follows from the position: [context] cosines and sines, embeddings
  TableShape vectors;    // biases and gains: [layers and the ending]
  TableShape expert_vectors;     // [layers * experts]
  std::uint32_t tokens = 1;      // of a block of prefill; 1: decoding only
  bool all_logits = false;       // of a block's tokens; else decoding ends the block for one
  std::uint32_t sequences = 1;   // that have positions of their own in the cache
  std::uint64_t logit_rows = 0;  // of a piece of the logits (logit_pieces.h); 0: they come at once
  // Blocks may share room within an entry, too, and not only with those of other entries. It is for
  // models that do not fit otherwise: what shares rows waits for what was there.
  bool share = false;
  // Attention goes through the context tile by tile, so that scores of one tile are there at once.
  RunningSoftmax running = RunningSoftmax::None;
  bool activation_stage = true;  // an activation has a stage of its own between others
  // Elements of weights or cache behind one address: no more than a register reaches anyway.
  std::uint64_t window_elements = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t hbm_start = 0;  // byte of HBM that tensors lie behind
};

/// Places in FP_MEM, INT_MEM and Vector SRAM that belong to a window of attention.
struct WindowPlaces {
  Block mask;        // [tokens] lowest up to the window's first position in its tile, else 0
  Block first_tile;  // INT_MEM, [tokens]: element of a K tile region where the window's first tile
                     // starts
  Block first_lane;  // INT_MEM, [tokens]: lane of the first position in sight in its tile
};

struct MemoryPlan {
  bool running_softmax = false;  // see running_attention.cc

  // HBM. One SCALE_REG serves all tensors: each one's scales lie the same distance behind its
  // elements.
  LayeredTensor weights;     // tiles in the order of use; the first layer's behind the permutation
                             // of RoPE, the last "layer" is the ending
  LayeredTensor cache;       // [layer][key rows, value rows][sequence][position][mlen]
  HbmTensor embedding;       // [vocab][dim tiles * mlen]
  HbmTensor position_table;  // PlanInput::positions
  HbmTensor vector_table;    // PlanInput::vectors
  HbmTensor expert_table;    // PlanInput::expert_vectors
  HbmTensor constants;       // [zeros, slot selectors, router padding, mask, triangle][mlen]
  std::uint64_t scale_offset = 0;
  std::uint64_t cache_stride = 0;  // elements between a layer's regions of the cache

  // Vector SRAM, in rows.
  std::vector<Block> values;     // by ValueId, [tokens][rows]
  Block heads;                   // [heads of a tile] queries, each alone in its row
  Block no_scores;               // [heads of a tile] the lowest, as if of a tile before the first
  Block scores;                  // [context tiles][heads of a tile], and rows an M_MM reads behind;
                                 // with a running softmax [heads of a tile]
  Block outputs;                 // [heads of a tile] so far, of heads that share rows; likewise
  Block group_sums;              // [groups] sums of weights in the first lanes of slots
  Block group_scales;            // [groups] what the outputs are to be multiplied by, head by head
  Block gate;                    // [tokens][2 hidden tiles] gate and up in turn
  Block activation;              // [tokens][hidden tiles] between the stages of an activation
  Block rotated;                 // [tokens][query rows, key rows] on their way through RoPE
  Block partials;                // [tokens] of one output tile, to be added
  Block scratch;                 // [4]
  Block mask;                    // [tokens] 0 up to the position, else a very negative number
  Block position_rows;           // [tokens] cosines and sines of each table, then the embedding
  Block selectors;               // row 0: zeros; row 1 + slot: 1 in the lanes of the slot, else 0
  Block router_padding;          // lowest in lanes that are no expert
  Block vectors;                 // of the layer
  std::uint64_t logit_rows = 0;  // tiles of logits that are there at once: all, or a piece
  Block logit_bias;              // [terms][logit_rows] of a piece; empty: it is one of the vectors
  Block expert_vectors;          // of the expert

  // Matrix SRAM, in tiles.
  Block rotation;                // [1] the signed permutation of RoPE, loaded once a token
  Block stage;                   // slots of weight tiles
  std::uint64_t slots = 1;       // 2: one is filled while the other is in use
  std::uint64_t slot_tiles = 1;  // that a slot holds
  std::uint64_t slot_pitch = 1;  // tiles from one slot to the next
  Block cache_stage;  // [rows of a head] K or V tiles in use where the context's do not fit
  Block key_tiles;    // [rows of a head][context tiles] K of a tile of lanes; empty where K and V
  Block value_tiles;  // of the whole context do not fit; V likewise
  Block third_slot;   // of weight tiles; empty where it does not fit
  Block other_keys;   // K tiles again, for the next layer; empty where they do not fit
  Block ones;         // [1] every element 1; with `spread`, where there is room besides those
  Block spread;       // [1] takes the first lane of each slot of heads to all of its lanes

  // FP_MEM; constants follow.
  Block head_scales;     // [heads of a tile] likewise, where heads have rows of their own
  Block score_maxima;    // [heads of a tile]
  Block corrections;     // [heads of a tile] of a running softmax
  Block expert_weights;  // [8]
  Block sinks;           // [layers][K tile][slot][group]

  // INT_MEM, what the host writes.
  Block token;           // [tokens of a block]
  Block cache_row;       // element of this position in a region of the cache
  Block position_entry;  // element of this position in the position table
  Block cache_end;       // elements of a region up to the position's tile, it included
  Block newest_tile;     // element of a region where the position's tile starts
  Block older_tile;      // where the tile before it starts, if there is one; else 0
  Block last_lane;       // lane of this position in its tile
  Block last_token;      // [1] index of the token in its block whose logits are wanted
  Block experts;         // [8] chosen by V_TOPK or the host
  Block logits_so_far;   // those of pieces that were there, [1] where logits come in pieces

  Block position_inputs;  // those of the above that follow from the position
  Block sequence_at;      // element of a region where the sequence's positions start; empty: 0

  // INT_MEM, the program's own.
  Block last_scores;   // elements of the scores before those with the newest tile
  Block keys_at;       // where the regions of this tile of K lanes start
  Block queries_at;    // where its query rows start among a token's
  Block logit_pieces;  // counter of the loop over pieces of the logits
  Block layer_loops;   // [2] counters of the loops over patterns and layers
  Block layer_places;  // [layers + 1][0, 3 or 6] see layer_place_entries()
  Block layer_place_at;
  Block key_half;  // elements from the first half of the K tiles to the one in use
  Block cache_at;  // where the layer's cache, vectors and sinks start
  Block vectors_at;
  Block expert_vectors_at;
  Block sinks_at;

  float lowest_score = 0;  // so low that exp of it is 0, and finite wherever it passes

  std::map<std::uint32_t, WindowPlaces> windows;  // by width; all but 0

  StepOrder step_order;  // of the lives
  bool share = false;    // PlanInput::share
  /// `life`, or without sharing all that it may be extended to.
  [[nodiscard]] Life widened(const Life& life) const {
    return share ? life : step_order.without_sharing(life);
  }

  BlockAllocator hbm, vram, mram, fp, integers;

  [[nodiscard]] Status check() const;
};

/// Rows of the constants: the selectors start at 0.
struct ConstantRows {
  std::uint64_t router_padding = 0;
  std::uint64_t router_rows = 0;
  std::uint64_t mask = 0;      // zeros, 2 rows of lowest, 2 of zeros
  std::uint64_t triangle = 0;  // [MLEN] row i is lowest behind lane i; for blocks of causal models
  std::uint64_t count = 0;
};
ConstantRows constant_rows(const TiledGraph& graph);

/// Whether a value has lanes that belong to no head, which attention does not write.
bool has_lanes_of_nobody(const TiledGraph& graph, const Value& value);

/// Rows of a value that Vector SRAM holds at once for each token: of logits perhaps but a piece.
std::uint64_t rows_at_once(const TiledGraph& graph, const PlanInput& input, ValueId value);

/// Rows of the vectors that a kind of layer loads before its operators: all but a bias that comes
/// with pieces of the logits.
std::uint32_t loaded_vectors(const TiledGraph& graph, const PlanInput& input,
                             const LayerKind& kind);

/// What INT_MEM holds of where each layer's parts of windowed tensors lie: the low and the high
/// word of its window's address and its first element, of the weights, then of the cache.
std::vector<std::uint32_t> layer_place_entries(const MemoryPlan& plan);

/// Fails, saying which memory and by how much, where the model does not fit the settings.
Result<MemoryPlan> plan_memory(const TiledGraph& graph, const PlanInput& input,
                               const Settings& settings);

}  // namespace plena
