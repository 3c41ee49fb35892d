// Random programs that run to their end: legal addresses, balanced loops, arrays that are written
// out before their shape changes. For property tests.
#pragma once

#include <cstdint>
#include <vector>

#include "plena/config/settings.h"

namespace plena {

/// A small machine: MLEN 16, BLEN 4, HLEN 8, VLEN 16, or 32 when `wide`, and few of everything, so
/// that random instructions meet in the same rows, entries and bytes.
Settings random_program_settings(bool wide);

/// Words for that machine with all extensions. Equal seeds give equal programs.
std::vector<std::uint32_t> random_program(std::uint64_t seed, const Settings& settings);

}  // namespace plena
