// Elements of any width up to 32 bits, packed little-end first (semantics 5.4).
#pragma once

#include <cstdint>

namespace plena {

/// The `width` bits that start at bit `first_bit` of `bytes`; touches only bytes that hold them.
inline std::uint32_t read_packed(const std::uint8_t* bytes, std::uint64_t first_bit,
                                 std::uint32_t width) {
  const std::uint8_t* byte = bytes + first_bit / 8;
  const auto offset = static_cast<std::uint32_t>(first_bit % 8);
  std::uint64_t window = 0;
  for (std::uint32_t got = 0; got < offset + width; got += 8) {
    window |= static_cast<std::uint64_t>(*byte++) << got;
  }
  return static_cast<std::uint32_t>(window >> offset & ((std::uint64_t{1} << width) - 1));
}

/// Sets those bits to `code`, which has no others; the bits must be 0 before.
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
