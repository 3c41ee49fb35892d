// Memories from files and to files: --load and --dump. Comparing is memory_compare.h.
#pragma once

#include <atomic>

#include "plena/base/error.h"
#include "plena/machine/machine.h"
#include "plena/observe/memory_spec.h"

namespace plena {

/// Puts a file into a memory from element spec.first on. Raw files hold state-file elements
/// (Machine::file_element_bytes); the values of an .npy array are placed one after another in C
/// order, each rounded once to the memory's format. Integers go into INT_MEM, bytes into HBM. A
/// file of another kind or one that does not fit is an error.
Status load_memory(Machine& machine, const MemorySpec& spec);

/// Elements a dump without a count takes: all of INT_MEM and FP_MEM; of the others those up to the
/// last one that is not 0, whole rows in the tile SRAMs.
std::uint64_t default_count(const Machine& machine, MemoryKind memory, std::uint64_t first);

/// Whether the elements a dump names exist; dump_memory() checks it, too.
Status check_dump(const Machine& machine, const MemorySpec& spec);

/// Writes elements to a file, complete or not at all: raw, or as .npy in float32 (uint32 of
/// INT_MEM, uint8 of HBM), two-dimensional where they are whole rows. What was never written
/// becomes a hole. Ends with ErrorCode::Interrupted soon after `interrupted` is set.
Status dump_memory(const Machine& machine, const MemorySpec& spec,
                   const std::atomic<bool>* interrupted = nullptr);

}  // namespace plena
