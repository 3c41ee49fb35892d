// Numbers as the public Rust emulator computes them, where they differ from semantics 4 and 5:
// the dialect switches rs-mx and rs-sum-order (dialect-plena-rs.md 2, 5 and 6).
#pragma once

#include <cstddef>
#include <cstdint>

#include "plena/base/error.h"
#include "plena/config/settings.h"

namespace plena {

/// Decodes n elements that start at bit 0 of `elements` (packed, little end first) with one scale
/// byte a block in `scales` (unused for a plain type) to f32: element times scale in f32. An
/// element with exponent field 0 is (m / 2^M) * 2^-bias, one with all ones infinity or NaN, E4M3
/// too; scale byte 0 is 0.0 and 255 infinity. Plain types with an 8-bit exponent decode as IEEE
/// does.
void rs_decode_row(DataType type, const std::uint8_t* elements, const std::uint8_t* scales,
                   std::size_t n, float* out);

/// Bytes one element takes in the emulator's MX encoder: whole bytes, never packed.
inline std::size_t rs_code_bytes(ElementType element) {
  return (element.width() + 7) / 8;
}

/// The emulator's H_STORE_V: n values to n * rs_code_bytes element bytes and n / block scale bytes.
/// emax is not subtracted from the shared exponent, and a mantissa that rounds up to 2^M does not
/// carry.
void rs_encode_row(DataType type, const float* values, std::size_t n, std::uint8_t* elements,
                   std::uint8_t* scales);

/// Sum of a row in the order of the emulator's tensor library: four accumulators of 8 lanes, folded
/// together and then across lanes; longer rows in cascaded levels.
float rs_row_sum(const float* values, std::size_t n);

/// rs-mx refuses the types the emulator computes garbage with: plain ones without an 8-bit
/// exponent, 32-bit ones and integers.
Status check_rs_types(const Settings& settings);

}  // namespace plena
