// What in a straight block has to wait for what, and how many cycles at least.
#pragma once

#include <cstdint>
#include <vector>

#include "plena/base/error.h"
#include "plena/compiler/straight_block.h"
#include "plena/isa/dialect.h"
#include "plena/timing/profile.h"
#include "plena/timing/unit.h"

namespace plena {

/// Figures of the machine a schedule is made for.
struct ScheduleCosts {
  const TimingProfile& profile;
  const Settings& settings;
  const Dialect& dialect;
  bool bases_apart = false;  // see meeting()
};

/// `node` issues `delay` cycles behind another one at the earliest.
struct DependenceEdge {
  std::size_t node = 0;
  std::uint32_t delay = 0;
};

struct DependenceNode {
  Unit unit{};
  std::uint32_t latency = 0;   // cycles until its results are there; an assumption for transfers
  std::uint32_t interval = 0;  // cycles its unit is busy
  bool follows_store = false;  // loads what a store of the block may have written
  std::vector<DependenceEdge> after;  // later nodes that wait for this one
  std::size_t before = 0;             // nodes it waits for (counted once for each edge)
};

/// One for each node of the block, in its order. Everything two instructions may share keeps its
/// order: registers through their values, SCALE_REG and its like, ranges of memories unless they
/// are known to be apart, the array (semantics 4.5: the order of additions), the transfers of a
/// unit.
Result<std::vector<DependenceNode>> find_dependences(const StraightBlock& block,
                                                     const ScheduleCosts& costs);

}  // namespace plena
