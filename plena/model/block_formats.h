// Decoding the blocks of small integers that GGUF files and gpt-oss checkpoints store weights in.
// Only reading; nothing here quantises.
#pragma once

#include <bit>
#include <cstdint>

#include "plena/model/tensor.h"

namespace plena {

/// The value of an IEEE half, exactly.
inline float half_to_float(std::uint16_t half) {
  // Shifted into f32's place the exponent is 112 short, in normal and subnormal numbers alike.
  constexpr std::uint32_t kInfinity = 0x7C00U << 13;
  const std::uint32_t magnitude = (half & 0x7FFFU) << 13;
  float value = std::bit_cast<float>(magnitude) * 0x1p112F;
  if (magnitude >= kInfinity) value = std::bit_cast<float>(magnitude | 0x7F800000U);
  return (half & 0x8000U) != 0 ? -value : value;
}

/// Decodes one block of a GGUF block type: block_bytes(type) bytes to block_elements(type) values.
void decode_block(StoredType type, const std::uint8_t* block, float* out);

/// Decodes a gpt-oss block: 16 bytes, low nibble first, to 32 values times 2^(scale - 127). The
/// scale 255 means NaN (OCP MX 1.0, E8M0).
void decode_mxfp4_block(const std::uint8_t* block, std::uint8_t scale, float* out);

}  // namespace plena
