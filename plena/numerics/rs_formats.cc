#include "plena/numerics/rs_formats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "plena/numerics/float_format.h"

namespace plena {

namespace {

// The emulator keeps away from log2(0) with this (dialect-plena-rs.md 5).
constexpr float kLogGuard = 1e-9F;
constexpr int kScaleBias = 127;

int bias_of(ElementType element) {
  return (1 << (element.exponent - 1)) - 1;
}

// Bits first … first+width-1 of a little-endian bit string.
std::uint32_t bits_at(const std::uint8_t* bytes, std::size_t first, std::uint32_t width) {
  std::uint64_t window = 0;
  const std::size_t last_byte = (first + width - 1) / 8;
  for (std::size_t byte = first / 8; byte <= last_byte; ++byte) {
    window |= std::uint64_t{bytes[byte]} << (8 * (byte - first / 8));
  }
  return static_cast<std::uint32_t>(window >> (first % 8) & ((std::uint64_t{1} << width) - 1));
}

float decode_element(ElementType element, std::uint32_t code) {
  if (element.exponent == 8) return decode_fp(element, code);
  const std::uint32_t mantissa_mask = (1U << element.mantissa) - 1;
  const std::uint32_t exponent_mask = (1U << element.exponent) - 1;
  const std::uint32_t mantissa = code & mantissa_mask;
  const std::uint32_t exponent = code >> element.mantissa & exponent_mask;
  const bool negative = element.sign && (code >> (element.exponent + element.mantissa) & 1) != 0;
  float magnitude = 0;
  if (exponent == exponent_mask) {
    magnitude = mantissa == 0 ? std::numeric_limits<float>::infinity()
                              : std::numeric_limits<float>::quiet_NaN();
  } else {
    const float fraction = std::ldexp(static_cast<float>(mantissa), -element.mantissa);
    const float significand = exponent == 0 ? fraction : 1.0F + fraction;
    magnitude = std::ldexp(significand, static_cast<int>(exponent) - bias_of(element));
  }
  return negative ? -magnitude : magnitude;
}

// 2^(byte - 127) by its bits, which are those of the scale.
float decode_scale(std::uint8_t byte) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(byte) << 23);
}

int floor_log2(float magnitude, int low, int high) {
  const float exponent = std::floor(std::log2(magnitude + kLogGuard));
  return static_cast<int>(std::clamp(exponent, static_cast<float>(low), static_cast<float>(high)));
}

// A finite element that is not 0, before its mantissa is cut to size.
struct Rounded {
  int exponent = 0;
  float mantissa = 0;  // whole steps of 2^(exponent - M); 2^M where it should carry
  bool overflow = false;
};

Rounded round_element(ElementType element, float magnitude) {
  const int bias = bias_of(element);
  const int largest = (1 << element.exponent) - 2 - bias;
  Rounded out;
  out.overflow = std::floor(std::log2(magnitude + kLogGuard)) > static_cast<float>(largest);
  out.exponent = floor_log2(magnitude, -bias, largest);
  const float significand = std::ldexp(magnitude, -out.exponent);
  const float steps =
      std::ldexp(out.exponent == -bias ? significand : significand - 1.0F, element.mantissa);
  const float quarters = std::floor(4.0F * steps) / 4.0F;
  out.mantissa = std::nearbyint(quarters);  // ties to even: the default rounding mode
  return out;
}

std::uint32_t encode_element(ElementType element, float y) {
  const int bias = bias_of(element);
  if (std::isnan(y)) return static_cast<std::uint32_t>(bias) << element.mantissa;  // +1.0
  if (y == 0.0F) return 0;
  const Rounded rounded = round_element(element, std::fabs(y));
  const int most = (1 << element.mantissa) - 1;
  const int mantissa =
      rounded.overflow
          ? most
          : static_cast<int>(std::clamp(rounded.mantissa, 0.0F, static_cast<float>(most)));
  const std::uint32_t sign = std::signbit(y) && element.sign ? 1U : 0U;
  return sign << (element.exponent + element.mantissa) |
         static_cast<std::uint32_t>(rounded.exponent + bias) << element.mantissa |
         static_cast<std::uint32_t>(mantissa);
}

float largest_magnitude(const float* values, std::size_t n) {
  float largest = 0.0F;
  for (std::size_t k = 0; k < n; ++k) {
    if (std::fabs(values[k]) > largest) largest = std::fabs(values[k]);  // a NaN never is
  }
  return largest;
}

int shared_exponent(float largest) {
  return floor_log2(largest, -kScaleBias, kScaleBias);
}

// Writes the codes of one block from byte `begin` of a row, as many as fit; returns its scale byte.
// A block of zeros writes nothing.
std::uint8_t encode_block(DataType type, const float* values, std::size_t begin,
                          std::span<std::uint8_t> row) {
  const std::size_t code_bytes = (type.element.width() + 7) / 8;
  const float largest = largest_magnitude(values, type.block);
  if (largest == 0.0F) return 0;
  const int exponent = shared_exponent(largest);
  for (std::size_t k = 0; k < type.block; ++k) {
    // 2^exponent is an f32 subnormal at -127; dividing by it is still exact scaling.
    const std::uint32_t code = encode_element(type.element, values[k] / std::ldexp(1.0F, exponent));
    const std::size_t at = begin + k * code_bytes;
    if (at < row.size()) std::memcpy(&row[at], &code, std::min(code_bytes, row.size() - at));
  }
  return static_cast<std::uint8_t>(exponent + kScaleBias);
}

// A plain type keeps the upper mantissa bits of a NaN, rounded: one that rounds over is infinity.
std::uint32_t encode_plain(ElementType element, float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const unsigned dropped = 23U - element.mantissa;
  if (!std::isnan(value) || dropped == 0) return encode_fp(element, value);
  const std::uint32_t mantissa = bits & 0x7FFFFFU;
  const std::uint32_t half = 1U << (dropped - 1);
  std::uint32_t kept = mantissa >> dropped;
  const std::uint32_t rest = mantissa & (2 * half - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  const std::uint32_t infinity = 0xFFU << element.mantissa;
  const std::uint32_t sign = element.sign ? bits >> 31 << (element.exponent + element.mantissa) : 0;
  return sign | infinity | (kept >> element.mantissa != 0 ? 0 : kept);
}

constexpr std::size_t kLanes = 8;
constexpr std::size_t kAccumulators = 4;
using Lanes = std::array<float, kLanes>;

void add_chunk(Lanes& sum, const float* chunk) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) sum[lane] += chunk[lane];
}

// Cascaded summation: `groups` steps of `accumulators` consecutive partial sums; every 16 steps
// (more for very long rows) a level folds into the next, so that error grows slowly.
template <class Partial, std::size_t kCount, class Add>
std::array<Partial, kCount> cascade(std::size_t groups, Add add) {
  constexpr std::size_t kLevels = 4;
  const auto ceil_log2 = static_cast<std::size_t>(groups <= 1 ? 0 : std::bit_width(groups - 1));
  const std::size_t level_bits = std::max<std::size_t>(4, ceil_log2 / kLevels);
  const std::size_t level_step = std::size_t{1} << level_bits;
  const std::size_t level_mask = level_step - 1;
  std::array<std::array<Partial, kCount>, kLevels> levels{};
  const auto fold = [](Partial& into, Partial& from) {
    if constexpr (std::is_same_v<Partial, float>) {
      into += from;
      from = 0.0F;
    } else {
      add_chunk(into, from.data());
      from.fill(0.0F);
    }
  };
  std::size_t step = 0;
  while (step + level_step <= groups) {
    for (std::size_t j = 0; j < level_step; ++j, ++step) {
      for (std::size_t k = 0; k < kCount; ++k) add(levels[0][k], step * kCount + k);
    }
    for (std::size_t level = 1; level < kLevels; ++level) {
      for (std::size_t k = 0; k < kCount; ++k) fold(levels[level][k], levels[level - 1][k]);
      if ((step & (level_mask << (level * level_bits))) != 0) break;
    }
  }
  for (; step < groups; ++step) {
    for (std::size_t k = 0; k < kCount; ++k) add(levels[0][k], step * kCount + k);
  }
  for (std::size_t level = 1; level < kLevels; ++level) {
    for (std::size_t k = 0; k < kCount; ++k) fold(levels[0][k], levels[level][k]);
  }
  return levels[0];
}

float sum_short(const float* values, std::size_t n) {
  const std::size_t groups = n / kAccumulators;
  auto sums = cascade<float, kAccumulators>(
      groups, [&](float& sum, std::size_t index) { sum += values[index]; });
  for (std::size_t k = groups * kAccumulators; k < n; ++k) sums[0] += values[k];
  for (std::size_t k = 1; k < kAccumulators; ++k) sums[0] += sums[k];
  return sums[0];
}

}  // namespace

RsDecoder::RsDecoder(DataType type) : type_(type) {
  constexpr std::uint32_t kWidestTable = 8;
  if (type.width() > kWidestTable || type.element.kind != ElementType::Kind::Fp) return;
  for (std::uint32_t code = 0; code < 1U << type.width(); ++code)
    values_.push_back(decode_element(type.element, code));
}

float RsDecoder::element(const std::uint8_t* elements, std::size_t bit) const {
  const std::uint32_t code = bits_at(elements, bit, type_.width());
  return values_.empty() ? decode_element(type_.element, code) : values_[code];
}

void RsDecoder::decode(const std::uint8_t* elements, const std::uint8_t* scales,
                       std::uint64_t first, std::size_t n, float* out) const {
  const std::uint32_t width = type_.width();
  const std::size_t bit = first * width % 8;
  if (!type_.is_mx()) {
    for (std::size_t k = 0; k < n; ++k) out[k] = element(elements, bit + k * width);
    return;
  }
  std::size_t left_in_block = type_.block - first % type_.block;
  for (std::size_t k = 0; k < n; ++scales) {
    const float scale = decode_scale(*scales);
    const std::size_t end = std::min(n, k + left_in_block);
    if (width == 8) {
      for (; k < end; ++k) out[k] = values_[elements[k]] * scale;
    } else {
      for (; k < end; ++k) out[k] = element(elements, bit + k * width) * scale;
    }
    left_in_block = type_.block;
  }
}

void rs_encode_row(DataType type, const float* values, std::size_t n, std::uint8_t* elements,
                   std::uint8_t* scales) {
  const std::span<std::uint8_t> row(elements, n * type.width() / 8);
  if (!type.is_mx()) {
    const std::size_t bytes = type.width() / 8;
    for (std::size_t k = 0; k < n; ++k) {
      const std::uint32_t code = encode_plain(type.element, values[k]);
      std::memcpy(elements + k * bytes, &code, bytes);
    }
    return;
  }
  std::fill(row.begin(), row.end(), std::uint8_t{0});
  for (std::size_t block = 0; block < n / type.block; ++block) {
    const std::size_t first = block * type.block;
    scales[block] = encode_block(type, values + first, first * type.width() / 8, row);
  }
}

std::size_t rs_lost_carries(DataType type, const float* values, std::size_t n) {
  std::size_t lost = 0;
  const float carry = std::ldexp(1.0F, type.element.mantissa);
  for (std::size_t first = 0; type.is_mx() && first + type.block <= n; first += type.block) {
    const float largest = largest_magnitude(values + first, type.block);
    const float scale = std::ldexp(1.0F, largest == 0.0F ? 0 : shared_exponent(largest));
    for (std::size_t k = first; k < first + type.block; ++k) {
      const float magnitude = std::fabs(values[k] / scale);
      if (magnitude == 0.0F || !std::isfinite(magnitude)) continue;
      const Rounded rounded = round_element(type.element, magnitude);
      lost += !rounded.overflow && rounded.mantissa >= carry ? 1 : 0;
    }
  }
  return lost;
}

float rs_row_sum(const float* values, std::size_t n) {
  if (n < kLanes) return sum_short(values, n);
  const std::size_t chunks = n / kLanes;
  const std::size_t groups = chunks / kAccumulators;
  auto sums = cascade<Lanes, kAccumulators>(
      groups, [&](Lanes& sum, std::size_t chunk) { add_chunk(sum, values + chunk * kLanes); });
  for (std::size_t chunk = groups * kAccumulators; chunk < chunks; ++chunk) {
    add_chunk(sums[0], values + chunk * kLanes);
  }
  for (std::size_t k = 1; k < kAccumulators; ++k) add_chunk(sums[0], sums[k].data());
  float tail = 0.0F;
  for (std::size_t k = chunks * kLanes; k < n; ++k) tail += values[k];
  float total = n % kLanes == 0 ? sums[0][0] : tail + sums[0][0];
  for (std::size_t lane = 1; lane < kLanes; ++lane) total += sums[0][lane];
  return total;
}

namespace {

Status check_rs_type(const char* key, DataType type) {
  const ElementType element = type.element;
  const bool usable = element.kind == ElementType::Kind::Fp && element.width() != 32 &&
                      (type.is_mx() || element.exponent == 8);
  if (usable) return {};
  return fail_with_hint(
      ErrorCode::Settings,
      fmt::format("{} is {}, which the emulator of rs-mx cannot compute with", key, type.name()),
      "use an mx type with floating-point elements, or a plain one with 8 exponent bits and fewer "
      "than 32 in all, "
      "such as bf16 (dialect-plena-rs.md 5)");
}

}  // namespace

Status check_rs_types(const Settings& s) {
  const std::array types = {std::pair("MATRIX_SRAM_TYPE", s.matrix_sram_type),
                            std::pair("VECTOR_SRAM_TYPE", s.vector_sram_type),
                            std::pair("HBM_M_WEIGHT_TYPE", s.hbm_m_weight_type),
                            std::pair("HBM_M_KV_TYPE", s.hbm_m_kv_type),
                            std::pair("HBM_V_ACT_TYPE", s.hbm_v_act_type),
                            std::pair("HBM_V_KV_TYPE", s.hbm_v_kv_type)};
  for (const auto& [key, type] : types) {
    if (auto checked = check_rs_type(key, type); !checked) return checked;
  }
  return {};
}

}  // namespace plena
