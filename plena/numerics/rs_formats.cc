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
constexpr std::uint8_t kScaleInfinity = 255;

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

float decode_scale(std::uint8_t byte) {
  if (byte == 0) return 0.0F;
  if (byte == kScaleInfinity) return std::numeric_limits<float>::infinity();
  return std::ldexp(1.0F, byte - kScaleBias);
}

int floor_log2(float magnitude, int low, int high) {
  const float exponent = std::floor(std::log2(magnitude + kLogGuard));
  return static_cast<int>(std::clamp(exponent, static_cast<float>(low), static_cast<float>(high)));
}

std::uint32_t encode_element(ElementType element, float y) {
  const int bias = bias_of(element);
  if (std::isnan(y)) return static_cast<std::uint32_t>(bias) << element.mantissa;  // +1.0
  if (y == 0.0F) return 0;
  const int largest = (1 << element.exponent) - 2 - bias;
  const float magnitude = std::fabs(y);
  const bool overflow = std::floor(std::log2(magnitude + kLogGuard)) > static_cast<float>(largest);
  const int exponent = floor_log2(magnitude, -bias, largest);
  const float significand = std::ldexp(magnitude, -exponent);
  const float steps =
      std::ldexp(exponent == -bias ? significand : significand - 1.0F, element.mantissa);
  const int most = (1 << element.mantissa) - 1;
  const float quarters = std::floor(4.0F * steps) / 4.0F;
  const float rounded = std::nearbyint(quarters);  // ties to even: the default rounding mode
  const int mantissa =
      overflow ? most : static_cast<int>(std::clamp(rounded, 0.0F, static_cast<float>(most)));
  const std::uint32_t sign = std::signbit(y) && element.sign ? 1U : 0U;
  return sign << (element.exponent + element.mantissa) |
         static_cast<std::uint32_t>(exponent + bias) << element.mantissa |
         static_cast<std::uint32_t>(mantissa);
}

// Writes the codes of one block from byte `begin` of a row, as many as fit; returns its scale byte.
// A block of zeros writes nothing.
std::uint8_t encode_block(DataType type, const float* values, std::size_t begin,
                          std::span<std::uint8_t> row) {
  const std::size_t code_bytes = (type.element.width() + 7) / 8;
  float largest = 0.0F;
  for (std::size_t k = 0; k < type.block; ++k) {
    if (std::fabs(values[k]) > largest) largest = std::fabs(values[k]);  // a NaN never is
  }
  if (largest == 0.0F) return 0;
  const int exponent = floor_log2(largest, -kScaleBias, kScaleBias);
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

void rs_decode_row(DataType type, const std::uint8_t* elements, const std::uint8_t* scales,
                   std::uint64_t first, std::size_t n, float* out) {
  const std::uint32_t width = type.width();
  const std::size_t bit = first * width % 8;
  const std::size_t block_phase = type.is_mx() ? first % type.block : 0;
  for (std::size_t k = 0; k < n; ++k) {
    const float value = decode_element(type.element, bits_at(elements, bit + k * width, width));
    out[k] = type.is_mx() ? value * decode_scale(scales[(block_phase + k) / type.block]) : value;
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
