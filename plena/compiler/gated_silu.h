// SiLU of gate and up of a block of tokens, BLEN of them at a time while the array multiplies: what
// depends on the gate alone beside the products of up, the rest behind them.
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

  /// From the gate rows on whose address is kept in `gate`.
  GatedSilu(const BlockContext& context, const Block& gate);

  /// Steps beside the products of up, in order.
  [[nodiscard]] std::span<const std::function<void()>> steps() const { return steps_; }
  /// What follows them, with the rows of up from `up` on; moves on to the next tokens.
  void finish(Gp up) const;

 private:
  [[nodiscard]] std::uint64_t rows() const { return gate_.size(); }

  const BlockContext& context_;
  Emitter& e_;
  RowsAbreast gate_;
  RowsAbreast factor_;  // 1 / (1 + exp g) on its way
  HeldFp one_;
  std::vector<std::function<void()>> steps_;
};

}  // namespace plena
