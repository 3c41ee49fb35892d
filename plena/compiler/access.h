// Which ranges of the memories an instruction reads and writes, as far as that is known before the
// program runs, and whether two of them meet.
#pragma once

#include <cstdint>
#include <vector>

#include "plena/compiler/affine.h"
#include "plena/config/settings.h"

namespace plena {

enum class Memory : std::uint8_t { Vram, Mram, Fp, Int, Hbm };

/// `rows` ranges of `lanes` elements or entries, `step` apart.
struct MemoryAccess {
  Memory memory{};
  bool write = false;
  bool anywhere = false;  // nothing is known of where
  Affine first;
  std::uint64_t lanes = 0;
  std::uint64_t rows = 1;
  std::uint64_t step = 0;
  std::uint8_t base = 0;  // of HBM: the address register; the rest is not looked at
};

/// `rd`, `rs1` and `rs2` are what is known of the gp registers those fields name.
struct GpOperands {
  Affine rd;
  Affine rs1;
  Affine rs2;
};
std::vector<MemoryAccess> accesses_of(const Instruction& instruction, const GpOperands& gp,
                                      const Settings& settings);

enum class Meeting : std::uint8_t { Never, Perhaps, Surely };

/// Whether two accesses to one memory share an element. Addresses that the machine accepts are
/// below 2^32, so that sums modulo 2^32 tell them apart. With `bases_apart` accesses by way of
/// different HBM address registers never meet.
Meeting meeting(const MemoryAccess& a, const MemoryAccess& b, bool bases_apart);

}  // namespace plena
