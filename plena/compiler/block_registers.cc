#include "plena/compiler/block_registers.h"

#include <bit>

namespace plena {

namespace {

std::uint8_t number_of(unsigned reg) {
  return static_cast<std::uint8_t>(reg < kFirstFp ? reg : reg - kFirstFp);
}

}  // namespace

BlockRegisters::BlockRegisters(const StraightBlock& block, bool lends)
    : block_(block), lends_(lends), given_(block.webs.size(), 0) {
  for (std::size_t w = 0; w < block.webs.size(); ++w) {
    const ValueWeb& web = block.webs[w];
    left_.push_back(web.reads);
    if (web.at_exit) kept_ |= register_bit(web.reg);
    if (!web.at_entry) continue;
    given_[w] = number_of(web.reg);
    if (web.reads != 0 || web.at_exit) taken_ |= register_bit(web.reg);
  }
}

bool BlockRegisters::has_room(const BlockNode& node, unsigned spare) const {
  const ValueWeb* web = new_web(node);
  if (web == nullptr) return true;
  const RegisterSet taken = taken_ & ~freed_by(node);
  if (web->at_exit) return (taken & register_bit(web->reg)) == 0;
  return static_cast<unsigned>(std::popcount(pool(*web) & ~taken)) > spare;
}

void BlockRegisters::issue(const BlockNode& node) {
  taken_ &= ~freed_by(node);
  for (const int source : node.sources) {
    if (source != kNoValue) --left_[web_index(source)];
  }
  const ValueWeb* web = new_web(node);
  if (web == nullptr) return;
  const RegisterSet free = pool(*web) & ~taken_;
  const RegisterSet own = free & ~kept_;
  const auto first_free = static_cast<unsigned>(std::countr_zero(own != 0 ? own : free));
  const unsigned reg = web->at_exit ? web->reg : first_free;
  const std::size_t w = web_index(node.result);
  given_[w] = number_of(reg);
  if (web->reads != 0 || web->at_exit) taken_ |= register_bit(reg);
}

// The web that begins with the node's result.
const ValueWeb* BlockRegisters::new_web(const BlockNode& node) const {
  if (node.result == kNoValue || node.accumulates) return nullptr;
  return &block_.webs[web_index(node.result)];
}

// Registers for values that do not outlive the block.
RegisterSet BlockRegisters::pool(const ValueWeb& web) const {
  constexpr RegisterSet kGp = (register_bit(kFirstFp) - 1) & ~register_bit(0);
  constexpr RegisterSet kFp = (register_bit(kRegisters) - 1) & ~(register_bit(kFirstFp + 1) - 1);
  return (web.fp ? kFp : kGp) & ~(lends_ ? 0 : kept_);
}

// Registers whose values nobody reads behind this node.
RegisterSet BlockRegisters::freed_by(const BlockNode& node) const {
  RegisterSet freed = 0;
  for (const int source : node.sources) {
    if (source == kNoValue) continue;
    const std::size_t w = web_index(source);
    int here = 0;
    for (const int other : node.sources) {
      if (other != kNoValue && web_index(other) == w) ++here;
    }
    const ValueWeb& web = block_.webs[w];
    if (left_[w] == here && !web.at_exit) {
      freed |= register_bit(given_[w] + (web.fp ? kFirstFp : 0));
    }
  }
  return freed;
}

}  // namespace plena
