// Which value holds which register while the nodes of a block are put into an order.
#pragma once

#include <cstdint>
#include <vector>

#include "plena/compiler/straight_block.h"

namespace plena {

class BlockRegisters {
 public:
  /// With `lends`, registers of values at the exit hold others until those are made.
  BlockRegisters(const StraightBlock& block, bool lends);

  /// Whether the node's result finds a register, and leaves `spare` more of its kind.
  [[nodiscard]] bool has_room(const BlockNode& node, unsigned spare) const;

  /// The node is the next one: registers it reads last become free, its result takes one.
  /// Precondition: has_room(node, 0).
  void issue(const BlockNode& node);

  /// The register of each web that was issued, gp or f number.
  [[nodiscard]] const std::vector<std::uint8_t>& given() const { return given_; }

 private:
  [[nodiscard]] std::size_t web_index(int value) const {
    return block_.values[static_cast<std::size_t>(value)].web;
  }
  [[nodiscard]] const ValueWeb* new_web(const BlockNode& node) const;
  [[nodiscard]] RegisterSet pool(const ValueWeb& web) const;
  [[nodiscard]] RegisterSet freed_by(const BlockNode& node) const;

  const StraightBlock& block_;
  bool lends_;
  std::vector<std::uint8_t> given_;
  std::vector<int> left_;  // reads to come, by web
  RegisterSet taken_ = 0;
  RegisterSet kept_ = 0;  // for the values at the exit
};

}  // namespace plena
