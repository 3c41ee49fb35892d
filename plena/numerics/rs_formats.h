// Numbers as the public Rust emulator computes them, where they differ from semantics 4 and 5:
// the dialect switches rs-mx and rs-sum-order (dialect-plena-rs.md 2, 5 and 6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plena/base/error.h"
#include "plena/config/settings.h"

namespace plena {

/// The emulator's loads. An element with exponent field 0 is (m / 2^M) * 2^-bias, one with all ones
/// infinity or NaN, E4M3 too; scale byte 0 is 0.0 and 255 infinity. Plain types with an 8-bit
/// exponent decode as IEEE does.
class RsDecoder {
 public:
  explicit RsDecoder(DataType type);

  /// Decodes elements first … first+n-1 of a tensor to f32: element times scale in f32. `elements`
  /// points at the byte that holds the first bit of element `first` (packed, little end first),
  /// `scales` at the scale byte of its block (unused for a plain type).
  void decode(const std::uint8_t* elements, const std::uint8_t* scales, std::uint64_t first,
              std::size_t n, float* out) const;

 private:
  [[nodiscard]] float element(const std::uint8_t* elements, std::size_t bit) const;

  DataType type_;
  std::vector<float> values_;  // by code, for elements of up to 8 bits
};

/// The emulator's H_STORE_V: n values to n * width / 8 element bytes and n / block scale bytes.
/// emax is not subtracted from the shared exponent, and a mantissa that rounds up to 2^M does not
/// carry. A code takes whole bytes, so that narrower ones spill into the next block's, which then
/// overwrites them; elements after the last whole block are written as 0.
void rs_encode_row(DataType type, const float* values, std::size_t n, std::uint8_t* elements,
                   std::uint8_t* scales);

/// How many elements of such a store round up to the next power of two and do not carry.
std::size_t rs_lost_carries(DataType type, const float* values, std::size_t n);

/// Sum of a row in the order of the emulator's tensor library: four accumulators of 8 lanes, folded
/// together and then across lanes; longer rows in cascaded levels.
float rs_row_sum(const float* values, std::size_t n);

/// rs-mx refuses the types the emulator computes garbage with: plain ones without an 8-bit
/// exponent, 32-bit ones and integers.
Status check_rs_types(const Settings& settings);

}  // namespace plena
