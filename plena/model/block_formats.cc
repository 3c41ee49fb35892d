#include "plena/model/block_formats.h"

#include <array>
#include <cmath>
#include <limits>

namespace plena {

namespace {

constexpr int kBlock = 32;        // elements of a plain block
constexpr int kSuperBlock = 256;  // elements of a K block
constexpr int kPart = 16;         // of them with one scale in Q2_K, Q3_K and Q6_K

float read_half(const std::uint8_t* bytes) {
  return half_to_float(static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8));
}

// 4-bit blocks keep element j and element j + 16 in one byte.
void decode_q4(const std::uint8_t* nibbles, float scale, int zero, float minimum, float* out) {
  for (int j = 0; j < kBlock / 2; ++j) {
    out[j] = static_cast<float>((nibbles[j] & 0xF) - zero) * scale + minimum;
    out[j + kBlock / 2] = static_cast<float>((nibbles[j] >> 4) - zero) * scale + minimum;
  }
}

// The same with a fifth bit, bit j of `high` for element j.
void decode_q5(const std::uint8_t* high, const std::uint8_t* nibbles, float scale, int zero,
               float minimum, float* out) {
  for (int j = 0; j < kBlock; ++j) {
    const int low = j < kBlock / 2 ? nibbles[j] & 0xF : nibbles[j - kBlock / 2] >> 4;
    const int bit = high[j / 8] >> (j % 8) & 1;
    out[j] = static_cast<float>((low | bit << 4) - zero) * scale + minimum;
  }
}

void decode_q8(const std::uint8_t* block, float* out) {
  const float scale = read_half(block);
  for (int j = 0; j < kBlock; ++j) {
    out[j] = static_cast<float>(static_cast<std::int8_t>(block[2 + j])) * scale;
  }
}

constexpr std::array<float, 16> kE2m1{0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                      -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

float e8m0(std::uint8_t scale) {
  return scale == 255 ? std::numeric_limits<float>::quiet_NaN()
                      : std::ldexp(1.0F, static_cast<int>(scale) - 127);
}

// The scale, then nibbles as in Q4_0.
void decode_mxfp4(const std::uint8_t* block, float* out) {
  const float scale = e8m0(block[0]);
  for (int j = 0; j < kBlock / 2; ++j) {
    out[j] = kE2m1[block[1 + j] & 0xF] * scale;
    out[j + kBlock / 2] = kE2m1[block[1 + j] >> 4] * scale;
  }
}

// Where part `part`, 16 of 256 elements, lies among bit pairs: a run of 128 elements shares 32
// bytes, 32 elements a pair of bits.
struct PairPlace {
  int byte;
  int shift;
};

PairPlace place_of_pairs(int part) {
  return {part / 8 * 32 + part % 2 * 16, part % 8 / 2 * 2};
}

// [16] 4-bit scales and minimums, [64] 2-bit elements, the f16 both are multiples of.
void decode_q2_k(const std::uint8_t* block, float* out) {
  const float scale = read_half(block + 80);
  const float minimum = read_half(block + 82);
  for (int part = 0; part < kSuperBlock / kPart; ++part) {
    const auto [byte, shift] = place_of_pairs(part);
    const std::uint8_t* elements = block + 16 + byte;
    const float d = scale * static_cast<float>(block[part] & 0xF);
    const float m = minimum * static_cast<float>(block[part] >> 4);
    for (int j = 0; j < kPart; ++j) {
      out[part * kPart + j] = d * static_cast<float>(elements[j] >> shift & 3) - m;
    }
  }
}

// [32] high bits (clear: 4 less), [64] low bit pairs, [12] 6-bit scales, f16.
void decode_q3_k(const std::uint8_t* block, float* out) {
  const std::uint8_t* scales = block + 96;
  const float scale = read_half(block + 108);
  for (int part = 0; part < kSuperBlock / kPart; ++part) {
    const auto [byte, shift] = place_of_pairs(part);
    const std::uint8_t* low = block + 32 + byte;
    const std::uint8_t* high = block + part % 2 * kPart;
    const int nibble = part < 8 ? scales[part] & 0xF : scales[part - 8] >> 4;
    const int top = scales[8 + part % 4] >> (part / 4 * 2) & 3;
    const float d = scale * static_cast<float>((nibble | top << 4) - 32);
    for (int j = 0; j < kPart; ++j) {
      const int value = (low[j] >> shift & 3) + (high[j] >> (part / 2) & 1) * 4 - 4;
      out[part * kPart + j] = d * static_cast<float>(value);
    }
  }
}

struct ScaleAndMinimum {
  int scale;
  int minimum;
};

// Part `part` of the eight 6-bit pairs that Q4_K and Q5_K pack into 12 bytes.
ScaleAndMinimum unpack_pair(const std::uint8_t* packed, int part) {
  if (part < 4) return {packed[part] & 63, packed[part + 4] & 63};
  return {(packed[part + 4] & 0xF) | packed[part - 4] >> 6 << 4,
          packed[part + 4] >> 4 | packed[part] >> 6 << 4};
}

// f16 scale and minimum, [12] pairs, for Q5_K [32] fifth bits, [128] nibbles: 64 elements in 32
// bytes, low nibbles first.
void decode_q45_k(const std::uint8_t* block, bool fifth_bit, float* out) {
  const float scale = read_half(block);
  const float minimum = read_half(block + 2);
  const std::uint8_t* pairs = block + 4;
  const std::uint8_t* high = block + 16;
  const std::uint8_t* nibbles = high + (fifth_bit ? 32 : 0);
  for (int part = 0; part < 8; ++part) {
    const auto pair = unpack_pair(pairs, part);
    const float d = scale * static_cast<float>(pair.scale);
    const float m = minimum * static_cast<float>(pair.minimum);
    for (int j = 0; j < 32; ++j) {
      const int byte = nibbles[part / 2 * 32 + j];
      int value = part % 2 == 0 ? byte & 0xF : byte >> 4;
      if (fifth_bit) value |= (high[j] >> part & 1) << 4;
      out[part * 32 + j] = d * static_cast<float>(value) - m;
    }
  }
}

// [128] low nibbles, [64] high bit pairs, [16] 8-bit scales, f16. A run of 128 elements is four
// rows of 32 over 64 nibble bytes and 32 bytes of bit pairs.
void decode_q6_k(const std::uint8_t* block, float* out) {
  const float scale = read_half(block + 208);
  for (int part = 0; part < kSuperBlock / kPart; ++part) {
    const auto [byte, shift] = place_of_pairs(part);
    const int row = part % 8 / 2;
    const std::uint8_t* low = block + part / 8 * 64 + row % 2 * 32 + part % 2 * kPart;
    const std::uint8_t* high = block + 128 + byte;
    const int low_shift = row / 2 * 4;
    const float d = scale * static_cast<float>(static_cast<std::int8_t>(block[192 + part]));
    for (int j = 0; j < kPart; ++j) {
      const int value = (low[j] >> low_shift & 0xF) | (high[j] >> shift & 3) << 4;
      out[part * kPart + j] = d * static_cast<float>(value - 32);
    }
  }
}

}  // namespace

void decode_block(StoredType type, const std::uint8_t* block, float* out) {
  switch (type) {
    case StoredType::Q4_0:
      return decode_q4(block + 2, read_half(block), 8, 0, out);
    case StoredType::Q4_1:
      return decode_q4(block + 4, read_half(block), 0, read_half(block + 2), out);
    case StoredType::Q5_0:
      return decode_q5(block + 2, block + 6, read_half(block), 16, 0, out);
    case StoredType::Q5_1:
      return decode_q5(block + 4, block + 8, read_half(block), 0, read_half(block + 2), out);
    case StoredType::Q8_0:
      return decode_q8(block, out);
    case StoredType::Mxfp4Block:
      return decode_mxfp4(block, out);
    case StoredType::Q2_K:
      return decode_q2_k(block, out);
    case StoredType::Q3_K:
      return decode_q3_k(block, out);
    case StoredType::Q4_K:
      return decode_q45_k(block, false, out);
    case StoredType::Q5_K:
      return decode_q45_k(block, true, out);
    case StoredType::Q6_K:
      return decode_q6_k(block, out);
    case StoredType::F32:
    case StoredType::F16:
    case StoredType::BF16:
    case StoredType::Mxfp4:
    case StoredType::Normal:
      break;  // no blocks of their own
  }
}

void decode_mxfp4_block(const std::uint8_t* block, std::uint8_t scale, float* out) {
  const float factor = e8m0(scale);
  for (int j = 0; j < kBlock / 2; ++j) {
    out[2 * j] = kE2m1[block[j] & 0xF] * factor;
    out[2 * j + 1] = kE2m1[block[j] >> 4] * factor;
  }
}

}  // namespace plena
