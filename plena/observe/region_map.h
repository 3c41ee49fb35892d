// Which region an instruction lies in, looked up once for every word of a program.
#pragma once

#include <cstdint>
#include <vector>

#include "plena/isa/encoding.h"

namespace plena {

inline constexpr std::uint32_t kNoRegion = ~std::uint32_t{0};

/// Indices into program.regions.
struct RegionMap {
  std::vector<std::uint32_t> innermost;  // by pc; kNoRegion: in none
  std::vector<std::uint32_t> parent;     // by region; kNoRegion: in no other

  explicit RegionMap(const Program& program) : innermost(program.words.size(), kNoRegion) {
    // Regions come in the order they open, so that an inner one is laid over the outer.
    for (const ProgramRegion& region : program.regions) {
      const auto index = static_cast<std::uint32_t>(parent.size());
      parent.push_back(region.begin < region.end ? innermost[region.begin] : kNoRegion);
      for (std::uint64_t pc = region.begin; pc < region.end; ++pc) innermost[pc] = index;
    }
  }
};

}  // namespace plena
