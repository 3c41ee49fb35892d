// SiLU of gate and up of a block of tokens, BLEN of them at a time while the array multiplies: what
// depends on the gate alone beside the products of up, the product with up beside those of the next
// tokens, so that nothing waits for the write-outs. That of the first tokens falls on rows before
// them, which belong to nobody (BlockPlan::kLeadRows); those of the last ones are left to finish().
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "plena/compiler/block_kernels.h"

namespace plena {

/// gate = g u / (1 + exp g), both negative (FeedForwardOp), for BLEN tokens a step.
class GatedSilu {
 public:
  /// Whether there are registers for the rows of BLEN tokens, beside products of one input tile in
  /// one stretch of code.
  static bool fits(const Settings& settings) {
    constexpr std::uint32_t kMostColumns = 16;
    return settings.blen <= kRowsAbreast && settings.mlen / settings.blen <= kMostColumns;
  }

  /// From the gate rows on whose address is kept in `gate`, with the rows of up from `up` on.
  GatedSilu(const BlockContext& context, const Block& gate, Gp up);

  /// Steps beside the products of up, in order.
  [[nodiscard]] std::span<const std::function<void()>> steps() const { return steps_; }

  /// The products of the last BLEN tokens, whose rows of gate and up start at these addresses.
  static void finish(const BlockContext& context, std::uint64_t gate, std::uint64_t up);

 private:
  void plan_steps();
  [[nodiscard]] std::uint64_t rows() const { return gate_.size(); }

  const BlockContext& context_;
  Emitter& e_;
  RowsAbreast gate_;    // of the tokens before, until their product with up
  RowsAbreast factor_;  // 1 / (1 + exp g) on its way
  HeldGp up_;           // row of the token before, likewise
  HeldFp one_;
  std::vector<std::function<void()>> steps_;
};

}  // namespace plena
