// The program that decodes one token, or takes a block of them: setup, loops over layers, the
// ending.
#pragma once

#include <string>

#include "plena/base/error.h"
#include "plena/compiler/constant_pool.h"
#include "plena/compiler/emitter.h"
#include "plena/compiler/memory_plan.h"
#include "plena/compiler/tiled_graph.h"
#include "plena/isa/dialect.h"

namespace plena {

struct ProgramInput {
  const TiledGraph& tiled;
  const MemoryPlan& plan;
  const PlanInput& tables;
  const Settings& settings;
  const Dialect& dialect;
  std::uint32_t tokens = 1;  // of a block
  std::string title;         // of the text
};

/// Emits the program; constants it needs are added to the pool.
Result<EmittedProgram> emit_program(const ProgramInput& input, ConstantPool& constants);

/// The memory map as text: every block of every memory.
std::string describe(const MemoryPlan& plan);

}  // namespace plena
