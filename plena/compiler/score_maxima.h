// The largest scores of the heads of one tile of K lanes, found while the scores are computed: in
// registers, and in FP_MEM those of heads that find none.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "plena/compiler/attention_tile.h"

namespace plena {

class ScoreMaxima {
 public:
  /// Whether heads are few enough, and all of their scores count as they come.
  static bool serve(const AttentionTile& tile) {
    constexpr std::uint64_t kMostHeads = 8;
    return tile.head_count() <= kMostHeads && tile.op.window == 0 && tile.op.score_cap == 0 &&
           !tile.op.sinks;
  }

  explicit ScoreMaxima(const AttentionTile& tile);

  /// Each head's is the lowest of scores.
  void start() const;

  /// That of `head` to those of a row as well.
  void raise(std::uint64_t head, Gp row) const;

  /// All of them to those of a tile, a part at each head in turn, so that nothing waits for FP_MEM:
  /// `row` are the scores of `head`, `other` those of the first head without a register, which
  /// moves on.
  void raise_in_turn(std::uint64_t head, Gp row, Gp other) const;
  void end_turns() const;

  /// Heads with a register.
  [[nodiscard]] std::uint64_t held() const { return held_.size(); }

  /// The register that holds the head's, until another head's is asked for.
  [[nodiscard]] Fp of(std::uint64_t head) const;

 private:
  [[nodiscard]] bool in_register(std::uint64_t head) const { return head < held_.size(); }
  void load(std::uint64_t head) const;
  void save(std::uint64_t head) const;

  const AttentionTile& tile_;
  Emitter& e_;
  std::deque<HeldFp> held_;
  std::optional<HeldFp> passing_;  // for the others in turn
};

}  // namespace plena
