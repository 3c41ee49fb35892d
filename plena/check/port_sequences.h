// Instruction sequences that mean to the specification what one instruction means to plena-rs.
#pragma once

#include <cstdint>
#include <vector>

#include "plena/isa/instruction.h"

namespace plena {

/// f := 0.25 and f := -1, exact in every format: exp(0) = 1, then sums and a reciprocal.
std::vector<Instruction> load_quarter(std::uint8_t f);
std::vector<Instruction> load_minus_one(std::uint8_t f);

/// Multiplies `rows` rows of Vector SRAM from gp<base> + imm by f<factor>; `address` and `counter`
/// are registers to work with.
struct RowScaling {
  std::uint8_t base;
  std::uint32_t imm;
  std::uint32_t rows;
  std::uint32_t row_elements;  // VLEN
  std::uint8_t factor;
  std::uint8_t address;
  std::uint8_t counter;
};
std::vector<Instruction> scale_rows(const RowScaling& scaling);

/// rs-mask-merge for a lane-wise instruction: selected lanes of gp<rd> become the operation's,
/// the others keep gp<rs1>'s, every bit of them. `operation` is the instruction without its mask.
struct LaneMerge {
  Instruction operation;
  std::uint8_t source;         // rs1 of the instruction
  std::uint32_t selected;      // V_MASK
  std::uint32_t all;           // V_MASK that selects every lane
  std::uint8_t minus_one;      // f register
  std::uint8_t scratch;        // gp register with the address of a row of zeros; zeros again after
  std::uint8_t mask_register;  // gp register to work with
};
std::vector<Instruction> merge_lanes(const LaneMerge& merge);

}  // namespace plena
