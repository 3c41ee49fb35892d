// The maxima of a block's scores, found while the array makes scores: M_BTMM and M_BMM_WO keep it
// busy for long stretches in which nothing else could issue behind them.
#pragma once

#include <cstdint>
#include <optional>

#include "plena/compiler/block_attention.h"

namespace plena {

/// Raises the maxima in FP_MEM by the scores of the tile of positions before the one that score_at
/// points to, rows side by side from the first on. Of the first tile there is none before: it reads
/// a row of lowest scores and entries of lowest maxima instead, over and over.
class BlockMaxima {
 public:
  /// Whether maxima are found so: all scores count as they come, and there is room in FP_MEM.
  static bool serve(const BlockContext& context, const AttentionOp& op);

  /// What the first tile finds; once for each tile of K lanes.
  static void start(const BlockContext& context);

  explicit BlockMaxima(const BlockContext& context);

  /// The next `count` sets of rows side by side, of groups() in all.
  void raise(std::uint64_t count) const;
  [[nodiscard]] std::uint64_t groups() const;

 private:
  const BlockContext& context_;
  Emitter& e_;
  HeldGp row_step_;
  HeldGp from_step_;
  HeldGp from_;                      // entries to raise
  HeldGp to_;                        // and where they go
  std::optional<RowsAbreast> rows_;  // of the tile before
};

}  // namespace plena
