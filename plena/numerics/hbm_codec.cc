// Rows of HBM elements to SRAM rows and back, for any pair of types (semantics 5).
//
// What the SIMD kernels do not take goes through codes and exact products in double, which hold any
// element times any scale.
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

// Elements handled at a time where a kernel stopped, or on the way through f32.
constexpr std::size_t kPiece = 64;

// 2^exponent for |exponent| <= 127.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

// Value of an E8M0 scale byte.
double scale_value(std::uint8_t byte) {
  if (byte == kScaleNan) return std::numeric_limits<double>::quiet_NaN();
  return power_of_two(byte - kScaleBias);
}

// Exponent of the scale of a block whose largest magnitude is `largest`, finite and not 0.
int shared_exponent(float largest, int emax) {
  return std::clamp(std::ilogb(largest) - emax, -kScaleBias, kScaleBias);
}

// Largest magnitude of n values; NaN or infinity if one of them is.
float largest_magnitude(const float* values, std::size_t n) {
  float largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const float magnitude = std::fabs(values[i]);
    if (!std::isfinite(magnitude)) return magnitude;
    largest = std::max(largest, magnitude);
  }
  return largest;
}

// Where a plain type means the same as an SRAM format, a row of it is one.
bool is_sram_format(DataType type) {
  const ElementType element = type.element;
  return !type.is_mx() && (element == kBf16 || element == kFp16 || element == kFp32);
}

bool is_aligned(const void* address, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

void* element_at(ElementType format, void* row, std::size_t i) {
  return static_cast<std::uint8_t*>(row) + i * storage_bytes(format);
}

const void* element_at(ElementType format, const void* row, std::size_t i) {
  return static_cast<const std::uint8_t*>(row) + i * storage_bytes(format);
}

// One format to another by way of f32, which holds both.
void convert_row(const VectorKernels& from, ElementType from_format, const void* in,
                 const VectorKernels& to, ElementType to_format, void* out, std::size_t n) {
  alignas(64) std::array<float, kPiece> values;
  for (std::size_t i = 0; i < n; i += kPiece) {
    const std::size_t piece = std::min(kPiece, n - i);
    from.to_f32(element_at(from_format, in, i), values.data(), piece);
    to.from_f32(values.data(), element_at(to_format, out, i), piece);
  }
}

bool is_finite_bf16(std::uint16_t bits) {
  return (bits & 0x7F80) != 0x7F80;
}
bool is_zero_bf16(std::uint16_t bits) {
  return (bits & 0x7FFF) == 0;
}

// The table of an element type of up to 8 bits; bf16 holds all but the widest of those exactly.
BlockValueTable block_value_table(const std::vector<float>& values) {
  BlockValueTable table;
  int least = 0xFF;
  int most = 0;
  for (const float value : values) {
    const std::uint16_t bits = f32_to_bf16(value);
    const int exponent = bits >> 7 & 0xFF;
    if (is_finite_bf16(bits) && !is_zero_bf16(bits)) {
      if (bf16_to_f32(bits) != value || exponent == 0) return {};
      least = std::min(least, exponent);
      most = std::max(most, exponent);
    }
    table.bits.push_back(bits);
  }
  table.least_exponent = 1 - least;
  table.most_exponent = 254 - most;
  return table;
}

}  // namespace

HbmCodec::HbmCodec(DataType hbm, ElementType sram, SimdTarget target)
    : hbm_(hbm),
      block_(hbm.is_mx() ? hbm.block : 1),
      sram_(sram),
      emax_(element_emax(hbm.element)),
      decoder_(simd_block_decoder(target, hbm, sram)),
      encoder_(simd_block_encoder(target, hbm, sram)),
      sram_lanes_(&vector_kernels(sram, target)) {
  if (is_sram_format(hbm)) {
    plain_lanes_ = &vector_kernels(hbm.element, target);
    return;
  }
  if (hbm.width() > kTabulatedWidth) return;
  element_values_.resize(std::size_t{1} << hbm.width());
  for (std::uint32_t code = 0; code < element_values_.size(); ++code) {
    element_values_[code] = static_cast<float>(element_value(hbm.element, code, hbm.is_mx()));
  }
  if (hbm.is_mx() && hbm.width() <= 8 && (sram == kBf16 || sram == kFp32)) {
    bf16_values_ = block_value_table(element_values_);
  }
}

void HbmCodec::decode(const std::uint8_t* elements, const std::uint8_t* scales, std::uint64_t first,
                      std::size_t n, void* out) const {
  const auto first_bit = static_cast<std::uint32_t>(first % 8 * hbm_.width() % 8);
  if (!hbm_.is_mx()) return decode_plain(elements, first_bit, n, out);
  const auto first_in_block = static_cast<std::uint32_t>(first % hbm_.block);
  const bool kernel_fits = decoder_ != nullptr && first_in_block == 0;
  const std::size_t step = std::max<std::size_t>(kPiece, hbm_.block);  // whole blocks
  for (std::size_t i = 0; i < n;) {
    if (kernel_fits) {
      i += decoder_(elements + i * hbm_.width() / 8, scales + i / hbm_.block, hbm_.block, n - i,
                    element_at(sram_, out, i));
    }
    const std::size_t end = kernel_fits ? std::min(n, (i / step + 1) * step) : n;
    decode_blocks(elements, scales, first_bit, first_in_block, i, end, out);
    i = end;
  }
}

void HbmCodec::decode_plain(const std::uint8_t* elements, std::uint32_t first_bit, std::size_t n,
                            void* out) const {
  if (plain_lanes_ != nullptr && is_aligned(elements, storage_bytes(hbm_.element))) {
    if (hbm_.element == sram_) return sram_lanes_->canonical(elements, out, n);
    convert_row(*plain_lanes_, hbm_.element, elements, *sram_lanes_, sram_, out, n);
    return;
  }
  constexpr std::uint8_t kOne = kScaleBias;
  std::array<std::uint32_t, kPiece> codes;
  PackedReader reader(elements, first_bit, hbm_.width());
  for (std::size_t i = 0; i < n; i += kPiece) {
    const std::size_t piece = std::min(kPiece, n - i);
    for (std::size_t k = 0; k < piece; ++k) codes[k] = reader.next();
    decode_codes(codes.data(), piece, kOne, i, out);
  }
}

void HbmCodec::decode_blocks(const std::uint8_t* elements, const std::uint8_t* scales,
                             std::uint32_t first_bit, std::uint32_t first_in_block,
                             std::size_t begin, std::size_t end, void* out) const {
  std::array<std::uint32_t, kPiece> codes;
  const std::uint64_t bit = first_bit + std::uint64_t{begin} * hbm_.width();
  PackedReader reader(elements + bit / 8, bit % 8, hbm_.width());
  for (std::size_t i = begin; i < end;) {
    const std::size_t in_block = (first_in_block + i) % hbm_.block;
    const std::size_t run = std::min({kPiece, end - i, hbm_.block - in_block});
    for (std::size_t k = 0; k < run; ++k) codes[k] = reader.next();
    decode_codes(codes.data(), run, scales[(first_in_block + i) / hbm_.block], i, out);
    i += run;
  }
}

void HbmCodec::decode_codes(const std::uint32_t* codes, std::size_t n, std::uint8_t scale,
                            std::size_t at, void* out) const {
  const int exponent = scale - kScaleBias;
  if (exponent >= bf16_values_.least_exponent && exponent <= bf16_values_.most_exponent) {
    const int shift = sram_ == kFp32 ? 16 : 0;
    for (std::size_t i = 0; i < n; ++i) {
      std::uint16_t bits = bf16_values_.bits[codes[i]];
      if (is_finite_bf16(bits) && !is_zero_bf16(bits)) {
        bits = static_cast<std::uint16_t>(bits + (exponent << 7));
      }
      set_row_bits(sram_, out, at + i, std::uint32_t{bits} << shift);
    }
    return;
  }
  const double factor = scale_value(scale);
  for (std::size_t i = 0; i < n; ++i) {
    const double value = element_values_.empty()
                             ? element_value(hbm_.element, codes[i], hbm_.is_mx())
                             : element_values_[codes[i]];
    set_row_bits(sram_, out, at + i, encode_fp(sram_, value * factor));
  }
}

void HbmCodec::encode(const void* row, std::size_t n, std::uint8_t* elements,
                      std::uint8_t* scales) const {
  if (!hbm_.is_mx()) return encode_plain(row, n, elements);
  if (encoder_ != nullptr) return encoder_(row, n, hbm_.block, elements, scales);
  std::memset(elements, 0, n * hbm_.width() / 8);
  for (std::size_t i = 0; i < n; i += hbm_.block) {
    scales[i / hbm_.block] = encode_block(row, i, elements);
  }
}

void HbmCodec::encode_plain(const void* row, std::size_t n, std::uint8_t* elements) const {
  if (plain_lanes_ != nullptr && is_aligned(elements, storage_bytes(hbm_.element))) {
    if (hbm_.element == sram_) return sram_lanes_->canonical(row, elements, n);
    convert_row(*sram_lanes_, sram_, row, *plain_lanes_, hbm_.element, elements, n);
    return;
  }
  const std::uint32_t width = hbm_.width();
  std::memset(elements, 0, n * width / 8);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t code = round_to_plain_element(hbm_.element, row_value(sram_, row, i));
    write_packed(elements, std::uint64_t{i} * width, width, code);
  }
}

std::uint8_t HbmCodec::encode_block(const void* row, std::size_t first,
                                    std::uint8_t* elements) const {
  float largest = 0;
  for (std::size_t i = 0; i < hbm_.block; i += kPiece) {
    std::array<float, kPiece> values;
    const std::size_t piece = std::min<std::size_t>(kPiece, hbm_.block - i);
    sram_lanes_->to_f32(element_at(sram_, row, first + i), values.data(), piece);
    const float of_piece = largest_magnitude(values.data(), piece);
    if (!std::isfinite(of_piece)) return kScaleNan;  // the elements stay 0
    largest = std::max(largest, of_piece);
  }
  if (largest == 0) return 0;
  const int shared = shared_exponent(largest, emax_);
  const double factor = power_of_two(-shared);
  for (std::size_t i = first; i < first + hbm_.block; ++i) {
    const std::uint32_t code =
        round_to_block_element(hbm_.element, row_value(sram_, row, i) * factor);
    write_packed(elements, std::uint64_t{i} * hbm_.width(), hbm_.width(), code);
  }
  return static_cast<std::uint8_t>(shared + kScaleBias);
}

}  // namespace plena
