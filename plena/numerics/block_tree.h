// The balanced tree of semantics 4.5 over parts that arrive one after the other.
#pragma once

#include <array>
#include <cstddef>

namespace plena {

/// Adds parts so that neighbours pair up at every level and an odd one at the end moves up as it
/// is, keeping only one partial sum a level: like the carries of a binary counter.
class BlockTree {
 public:
  void add(float part) {
    for (std::size_t bit = count_; (bit & 1) != 0; bit >>= 1) part = levels_[--depth_] + part;
    levels_[depth_++] = part;
    ++count_;
  }

  /// The root; at least one part was added.
  [[nodiscard]] float root() const {
    float sum = levels_[depth_ - 1];
    for (std::size_t level = depth_ - 1; level-- > 0;) sum = levels_[level] + sum;
    return sum;
  }

 private:
  std::array<float, 64> levels_;  // NOLINT: only the first depth_ are ever read
  std::size_t depth_ = 0;
  std::size_t count_ = 0;
};

}  // namespace plena
