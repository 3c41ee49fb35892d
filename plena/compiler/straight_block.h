// Straight-line code by the values that pass through its registers instead of the registers: what
// false dependences are made of is gone, and pointers that follow from each other by constants are
// each made from the first one.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plena/compiler/access.h"
#include "plena/compiler/affine.h"
#include "plena/compiler/register_use.h"

namespace plena {

inline constexpr int kNoValue = -1;

/// What a register holds from one write to the next.
struct RegisterValue {
  int node = -1;     // that makes it; -1: it is there when the block starts
  unsigned reg = 0;  // in the program as written, as in RegisterSet
  unsigned web = 0;  // of values that must share a register
  Affine affine;     // gp only
};

/// Values that accumulate one into the next, and so share a register.
struct ValueWeb {
  bool fp = false;
  bool at_entry = false;  // starts with what a register holds when the block starts
  bool at_exit = false;   // is read behind the block, in register `reg`
  unsigned reg = 0;       // where it is at entry or exit
  int reads = 0;          // operands of nodes
};

struct BlockNode {
  Instruction instruction;  // its register fields are those of the program as written
  std::string comment;
  std::size_t line = 0;                                      // in the block as written
  std::array<int, 3> sources{kNoValue, kNoValue, kNoValue};  // by field rd, rs1, rs2
  int result = kNoValue;
  bool accumulates = false;  // the result takes the register of sources[0]
  GpOperands gp;             // what is known of its gp operands
};

struct StraightBlock {
  std::vector<BlockNode> nodes;
  std::vector<RegisterValue> values;  // the first kRegisters are those at entry
  std::vector<ValueWeb> webs;
};

struct BlockSurroundings {
  AffineState entry;
  RegisterSet live_in = 0;
  RegisterSet live_out = 0;
};

/// Of `code`, instructions without loops. With `simplify` pointers are made from each other anew,
/// constants join immediates, and arithmetic nobody needs any more is left out.
StraightBlock make_block(std::span<const Line> code, const BlockSurroundings& around,
                         Symbols& symbols, bool simplify);

}  // namespace plena
