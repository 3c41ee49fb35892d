// What the compiler makes: a program, the memory it starts with, and a manifest that says where
// the host writes inputs and reads results. Kept as a folder of plain files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plena/base/contents.h"
#include "plena/base/error.h"
#include "plena/config/settings.h"
#include "plena/isa/dialect.h"
#include "plena/isa/encoding.h"
#include "plena/machine/machine.h"

namespace plena {

/// Bytes of HBM that hold their contents before the first run.
struct HbmSegment {
  std::string name;           // tensor, for people
  std::uint64_t address = 0;  // byte address
  Contents bytes;
};

/// An integer the host writes into INT_MEM before each run. It follows from the position alone:
/// ((max(position - subtract, 0) / divide) % modulo) * multiply + add, without the modulo when
/// that is 0.
struct PositionInput {
  std::string name;
  std::uint32_t address = 0;  // entry of INT_MEM
  std::uint32_t subtract = 0;
  std::uint32_t divide = 1;
  std::uint32_t modulo = 0;
  std::uint32_t multiply = 1;
  std::uint32_t add = 0;
  bool of_last = false;  // of a block: follows from its last position for all tokens

  [[nodiscard]] std::uint32_t value(std::uint32_t position) const {
    std::uint32_t v = (position > subtract ? position - subtract : 0) / divide;
    if (modulo != 0) v %= modulo;
    return v * multiply + add;
  }
};

/// Where the program stands at a C_BREAK for the host to pick experts, as V_TOPK would: it reads
/// the router's logits, and writes ids and weights (softmax over the picks), best first.
struct HostRouting {
  std::uint64_t logits_address = 0;  // element of Vector SRAM; `experts` consecutive elements
  std::uint32_t experts = 0;
  std::uint32_t picks = 0;
  std::uint32_t ids_address = 0;      // entry of INT_MEM
  std::uint32_t weights_address = 0;  // entry of FP_MEM
};

/// Where Vector SRAM does not hold all logits: they come `logits` at a time, in the same place. The
/// program stops at a C_BREAK behind each piece but the last, for the host to read it, and says in
/// INT_MEM how many there have been, this piece included.
struct LogitPieces {
  std::uint32_t logits = 0;          // of a piece; whole tiles of MLEN
  std::uint32_t so_far_address = 0;  // entry of INT_MEM; 0 until the first piece is there
};

/// A second entry of the program: it takes a block of tokens at consecutive positions at once. The
/// host writes entry i of each input for the block's token i; the run ends at the end of the
/// program. One that starts at 0 then ends at the C_BREAK before `entry`.
struct BlockEntry {
  std::uint32_t tokens = 0;              // of a block
  std::uint32_t entry = 0;               // pc
  std::uint32_t last_token_address = 0;  // entry of INT_MEM: index of the token whose logits come
  std::uint64_t logits_address = 0;      // element of Vector SRAM
  // Where the logits of all tokens come, MLEN of each token after the other: elements from these to
  // the next MLEN. 0: those of one token come.
  std::uint64_t logits_stride = 0;

  [[nodiscard]] bool has_all_logits() const { return logits_stride != 0; }
};

/// A third entry: it decodes a token of each of several sequences, which have positions of their
/// own in the cache. Its inputs are those of one token for each sequence, elsewhere.
struct BatchEntry {
  std::uint32_t sequences = 0;
  std::uint32_t entry = 0;           // pc
  std::uint32_t inputs_address = 0;  // entry of INT_MEM: [sequences][1 + inputs], token first
  std::uint32_t first_input = 0;     // entry of the first of the inputs of one token that are meant
  std::uint32_t inputs = 0;          // how many they are
  std::uint32_t sequence_address = 0;   // entry of INT_MEM: whose positions the other entries use,
  std::uint32_t sequence_elements = 0;  // as its index times this
  std::uint64_t logits_address = 0;     // element of Vector SRAM: MLEN of each sequence in turn,
  std::uint64_t logits_stride = 0;      // and so many elements behind them the next MLEN
};

/// One run of the program computes the logits of one token at one position.
struct Manifest {
  std::string model;  // file name of the source, for people
  std::uint32_t vocab = 0;
  std::uint32_t context = 0;        // positions 0 … context-1 work
  std::uint32_t token_address = 0;  // entry of INT_MEM for the token id
  std::vector<PositionInput> position_inputs;
  // Element of Vector SRAM; `vocab` consecutive elements, or those of a piece.
  std::uint64_t logits_address = 0;
  std::optional<LogitPieces> logit_pieces;
  std::optional<HostRouting> host_routing;
  std::optional<BlockEntry> block;
  std::optional<BatchEntry> batch;
  bool causal = true;  // false: there are only blocks, which see themselves as a whole

  /// Logits that are in Vector SRAM at once.
  [[nodiscard]] std::uint32_t logits_at_once() const {
    return logit_pieces ? std::min(vocab, logit_pieces->logits) : vocab;
  }
};

struct Image {
  Settings settings;
  Dialect dialect;
  Program program;
  std::string assembly;  // the program as commented text
  std::vector<HbmSegment> hbm;
  std::vector<std::uint32_t> fp_mem;   // bit patterns of SCALAR_FP, from entry 0
  std::vector<std::uint32_t> int_mem;  // from entry 0
  Manifest manifest;
  std::string graph;   // the operator graph as text, of an image just compiled
  std::string plan;    // tiles and memory likewise
  std::string turned;  // what Hadamard rotations turn, in a few words; likewise
  Contents tokenizer;  // the tokenizer's file, so that an image stands alone
};

/// Whether every address of the image lies inside the memories its settings give, and the sizes in
/// its manifest make sense. An error says which does not.
Status check_image(const Image& image);

/// Puts the initial contents of an image into a machine at reset that has its settings. What lies
/// in a file is read when the program gets there, and stays as it is there whatever the program
/// writes.
Status preload(const Image& image, Machine& machine);

/// Where a segment of HBM at `address` begins in hbm.bin, of which `end` bytes are taken: as far
/// into a page as in HBM, so that it can be mapped.
std::uint64_t segment_offset(std::uint64_t end, std::uint64_t address);

/// Whether save_image() may write to `folder`: nothing is there, or an image.
Status check_image_target(const std::string& folder);

/// Writes the image as a folder (manifest.json, program.mem, program.asm, settings.toml, hbm.bin,
/// fp_mem.bin, int_mem.bin, tokenizer.bin); complete or absent. An image that is already there is
/// replaced, anything else is an error. docs/image.md describes the files.
Status save_image(const Image& image, const std::string& folder);

/// Reads such a folder; hbm.bin and the tokenizer are mapped. Whatever is missing, malformed or out
/// of range is an error that names the file; the result passed check_image().
Result<Image> load_image(const std::string& folder);

/// Whether `path` is a folder with a manifest, and so meant to be an image.
bool is_image_folder(const std::string& path);

}  // namespace plena
