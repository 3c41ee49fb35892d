// Which gp and f registers an instruction reads and writes, and which a listing still needs where.
#pragma once

#include <cstdint>
#include <vector>

#include "plena/compiler/listing.h"

namespace plena {

/// gp0 … gp15, then f0 … f7, a bit each; those of gp0 and f0 are never set.
using RegisterSet = std::uint32_t;
inline constexpr unsigned kFirstFp = 16;
inline constexpr unsigned kRegisters = 24;
constexpr RegisterSet register_bit(unsigned index) {
  return RegisterSet{1} << index;
}

struct RegisterNeeds {
  RegisterSet reads = 0;
  RegisterSet writes = 0;
};
RegisterNeeds registers_of(const Instruction& instruction);

/// For each line its partner: C_LOOP_START and C_LOOP_END name each other, others themselves.
std::vector<std::size_t> pair_loops(const Listing& listing);

/// Registers whose values somebody may still read, before each line and (last) behind all of them.
/// Whoever continues behind a C_BREAK or starts at an entry finds what the program left.
std::vector<RegisterSet> live_before(const Listing& listing);

}  // namespace plena
