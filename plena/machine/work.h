// How much arithmetic an instruction is, whatever its values: what statistics count and bounds rest
// on.
#pragma once

#include <cstdint>

#include "plena/config/settings.h"
#include "plena/isa/dialect.h"
#include "plena/isa/instruction.h"

namespace plena {

/// Products one instruction adds to accumulators: BLEN x BLEN x MLEN of M_MM, …; 0 outside the
/// array.
std::uint64_t multiply_adds_of(Op op, const Settings& settings, const Dialect& dialect);

}  // namespace plena
