// Rows of HBM elements to SRAM rows and back, for any pair of types (semantics 5).
#include "plena/numerics/hbm_codec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "plena/numerics/element.h"
#include "plena/numerics/float_format.h"
#include "plena/numerics/packed_bits.h"
#include "plena/numerics/sram_formats.h"

namespace plena {

namespace {

constexpr int kScaleBias = 127;
constexpr std::uint8_t kScaleNan = 0xFF;
constexpr std::uint32_t kTabulatedWidth = 16;

// Value of an E8M0 scale byte; a double holds all of them as normal numbers.
double scale_value(std::uint8_t byte) {
  if (byte == kScaleNan) return std::numeric_limits<double>::quiet_NaN();
  return std::ldexp(1.0, byte - kScaleBias);
}

// Byte of the scale of a block whose largest magnitude is `largest`, finite and not 0.
std::uint8_t shared_scale(double largest, int emax) {
  const int exponent = std::ilogb(largest) - emax;
  return static_cast<std::uint8_t>(std::clamp(exponent, -kScaleBias, kScaleBias) + kScaleBias);
}

// Largest magnitude of n row values; NaN or infinity if one of them is.
double largest_magnitude(ElementType format, const void* row, std::size_t first, std::size_t n) {
  double largest = 0;
  for (std::size_t i = first; i < first + n; ++i) {
    const double magnitude = std::fabs(row_value(format, row, i));
    if (!std::isfinite(magnitude)) return magnitude;
    largest = std::max(largest, magnitude);
  }
  return largest;
}

}  // namespace

HbmCodec::HbmCodec(DataType hbm, ElementType sram) : hbm_(hbm), sram_(sram) {
  if (hbm.width() > kTabulatedWidth) return;
  element_values_.resize(std::size_t{1} << hbm.width());
  for (std::uint32_t code = 0; code < element_values_.size(); ++code) {
    element_values_[code] = static_cast<float>(element_value(hbm.element, code, hbm.is_mx()));
  }
}

void HbmCodec::decode(const std::uint8_t* elements, const std::uint8_t* scales, std::uint64_t first,
                      std::size_t n, void* out) const {
  const std::uint32_t width = hbm_.width();
  const std::uint64_t first_bit = first % 8 * width % 8;
  const std::uint64_t first_in_block = hbm_.is_mx() ? first % hbm_.block : 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t code = read_packed(elements, first_bit + i * width, width);
    double value = element_values_.empty() ? element_value(hbm_.element, code, hbm_.is_mx())
                                           : element_values_[code];
    // A double holds the product exactly, so that the only rounding is the one to the SRAM format.
    if (hbm_.is_mx()) value *= scale_value(scales[(first_in_block + i) / hbm_.block]);
    set_row_bits(sram_, out, i, encode_fp(sram_, value));
  }
}

void HbmCodec::encode(const void* row, std::size_t n, std::uint8_t* elements,
                      std::uint8_t* scales) const {
  std::memset(elements, 0, n * hbm_.width() / 8);
  if (!hbm_.is_mx()) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t code = round_to_plain_element(hbm_.element, row_value(sram_, row, i));
      write_packed(elements, i * hbm_.width(), hbm_.width(), code);
    }
    return;
  }
  for (std::size_t first = 0; first < n; first += hbm_.block) {
    scales[first / hbm_.block] = encode_block(row, first, elements);
  }
}

std::uint8_t HbmCodec::encode_block(const void* row, std::size_t first,
                                    std::uint8_t* elements) const {
  const double largest = largest_magnitude(sram_, row, first, hbm_.block);
  if (!std::isfinite(largest)) return kScaleNan;  // the elements stay 0
  if (largest == 0) return 0;
  const std::uint8_t scale = shared_scale(largest, element_emax(hbm_.element));
  for (std::size_t i = first; i < first + hbm_.block; ++i) {
    const double scaled = std::ldexp(row_value(sram_, row, i), kScaleBias - scale);
    write_packed(elements, i * hbm_.width(), hbm_.width(),
                 round_to_block_element(hbm_.element, scaled));
  }
  return scale;
}

}  // namespace plena
