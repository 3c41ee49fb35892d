// Division by a number that stays the same for long, without a division where it is a power of two.
#pragma once

#include <bit>
#include <cstdint>

namespace plena {

/// x % d, x / d and alignment tests. Settings are nearly always powers of two.
class Divisor {
 public:
  explicit Divisor(std::uint64_t d)
      : d_(d),
        mask_((d & (d - 1)) == 0 ? d - 1 : 0),
        shift_(static_cast<unsigned>(std::countr_zero(d))) {}
  [[nodiscard]] std::uint64_t modulo(std::uint64_t x) const {
    return mask_ != 0 || d_ == 1 ? x & mask_ : x % d_;
  }
  [[nodiscard]] bool divides(std::uint64_t x) const { return modulo(x) == 0; }
  [[nodiscard]] std::uint64_t quotient(std::uint64_t x) const {
    return mask_ != 0 || d_ == 1 ? x >> shift_ : x / d_;
  }

 private:
  std::uint64_t d_;
  std::uint64_t mask_;
  unsigned shift_;
};

}  // namespace plena
