// The time of the emulator's memory for runs that need no clock beside it: everything else there
// takes a fixed number of cycles, one instruction after another (dialect-plena-rs 7).
#pragma once

#include <cstdint>
#include <functional>

#include "plena/isa/instruction.h"
#include "plena/machine/machine.h"

namespace plena {

/// When an H-type instruction that starts at cycle `now` is complete, a cycle a nanosecond. Asked
/// in the order of the run; copies share one memory.
std::function<std::uint64_t(const Machine& machine, const Instruction& instruction,
                            std::uint64_t now)>
emulator_memory_time();

}  // namespace plena
