// Elements of any width up to 32 bits, packed little-end first (semantics 5.4).
#pragma once

#include <cstdint>

namespace plena {

/// Reads codes of `width` bits one after the other, from bit `first_bit` < 8 of `bytes` on; touches
/// only bytes that hold them.
class PackedReader {
 public:
  PackedReader(const std::uint8_t* bytes, std::uint64_t first_bit, std::uint32_t width)
      : byte_(bytes), skip_(static_cast<std::uint32_t>(first_bit)), width_(width) {}

  std::uint32_t next() {
    while (held_ < skip_ + width_) {
      window_ |= static_cast<std::uint64_t>(*byte_++) << held_;
      held_ += 8;
    }
    const auto code =
        static_cast<std::uint32_t>(window_ >> skip_ & ((std::uint64_t{1} << width_) - 1));
    window_ >>= skip_ + width_;
    held_ -= skip_ + width_;
    skip_ = 0;
    return code;
  }

 private:
  const std::uint8_t* byte_;
  std::uint32_t skip_;  // bits before the next code
  std::uint32_t width_;
  std::uint64_t window_ = 0;
  std::uint32_t held_ = 0;  // bits in the window
};

/// Sets the `width` bits from bit `first_bit` of `bytes` on to `code`, which has no others; the
/// bits must be 0 before.
inline void write_packed(std::uint8_t* bytes, std::uint64_t first_bit, std::uint32_t width,
                         std::uint32_t code) {
  std::uint8_t* byte = bytes + first_bit / 8;
  const auto offset = static_cast<std::uint32_t>(first_bit % 8);
  std::uint64_t window = static_cast<std::uint64_t>(code) << offset;
  for (std::uint32_t put = 0; put < offset + width; put += 8, window >>= 8) {
    *byte = static_cast<std::uint8_t>(*byte | (window & 0xFF));
    ++byte;
  }
}

}  // namespace plena
