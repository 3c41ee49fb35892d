// The compiler: a model's operator graph to an image that a machine can run.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "plena/base/error.h"
#include "plena/base/files.h"
#include "plena/compiler/graph.h"
#include "plena/compiler/hbm_packer.h"
#include "plena/compiler/image.h"
#include "plena/compiler/memory_plan.h"
#include "plena/compiler/turn_choice.h"
#include "plena/config/settings.h"
#include "plena/isa/dialect.h"
#include "plena/model/model.h"
#include "plena/numerics/scale_search.h"

namespace plena {

struct CompileOptions {
  Settings settings;
  Dialect dialect;
  std::string model_name;               // file name of the source, for people
  Bytes tokenizer;                      // goes into the image as it is
  std::uint32_t context = 0;            // positions; 0: the model's
  std::uint32_t block = 0;              // tokens of a prompt taken at once, at most; 0: MLEN
  bool schedule = true;                 // the program; the results are the same without
  std::uint32_t sequences = 1;          // to be decoded side by side
  ScaleRule scales = ScaleRule::Floor;  // of weights and embedding, where they are of an Mx type
  TurnRule rotate = TurnRule::Off;      // of a model's vectors, for the sake of those scales
  bool all_logits = false;              // of a block's tokens, not of the last one alone
  std::uint32_t logits_at_once = 0;     // in Vector SRAM, at most; 0: as many as it holds
  bool share_rows = false;              // of Vector SRAM by buffers, even where all of them fit
  RunningSoftmax running = RunningSoftmax::None;  // at least there, even where all scores fit
  // Elements of weights or KV cache behind one address, at most; an address register's reach is the
  // default. What exceeds it is cut between layers, and the registers are set anew for each.
  std::uint64_t window_elements = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t hbm_start = 0;  // first byte of HBM that the image may use
  bool contents = true;  // false: the image's HBM stays empty, for who wants to see the program
  PackOptions packing;
};

/// Compiles decoding of one token and, for models without experts, an entry that takes a block of
/// them. The machine computes everything from the token's embedding to
/// the logits; the host writes the integers the manifest names and, where there are experts and
/// the extension `moe` is off, picks them.
///
/// Errors: settings that contradict each other or that this compiler does not handle (VLEN other
/// than MLEN, two types for the KV cache, blocks that do not divide a row), and a model that does
/// not fit one of the memories; each says what would satisfy it. Errors of packing are
/// pack_hbm()'s. Weights are read and quantised on all cores while they are written to the image's
/// file.
Result<Image> compile(const Graph& graph, const CompileOptions& options);

/// The same for a model, by way of its graph.
Result<Image> compile(const Model& model, const CompileOptions& options);

}  // namespace plena
