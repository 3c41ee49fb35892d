// The program that decodes one token, or takes a block of them: setup, loops over layers, the
// ending.
#pragma once

#include <string>

#include "plena/base/error.h"
#include "plena/compiler/batch_plan.h"
#include "plena/compiler/block_plan.h"
#include "plena/compiler/constant_pool.h"
#include "plena/compiler/emitter.h"
#include "plena/compiler/memory_plan.h"
#include "plena/compiler/tiled_graph.h"
#include "plena/isa/dialect.h"

namespace plena {

struct ProgramInput {
  const TiledGraph& tiled;
  const MemoryPlan& plan;
  const BlockPlan& block;
  const BatchPlan& batch;
  const PlanInput& tables;
  const Settings& settings;
  const Dialect& dialect;
  std::string title;  // of the text
  bool schedule = true;
};

struct CompiledProgram {
  EmittedProgram emitted;
  std::uint32_t block_entry = 0;  // pc; 0: there is none
  std::uint32_t batch_entry = 0;  // likewise
};

/// Emits decoding and, where the plan has room for more than one token, behind a C_BREAK the entry
/// for blocks, and likewise the one for sequences; constants they need are added to the pool.
Result<CompiledProgram> emit_program(const ProgramInput& input, ConstantPool& constants);

/// The memory map as text: every block of every memory, and when it is in use, if not always.
std::string describe(const MemoryPlan& plan);

}  // namespace plena
