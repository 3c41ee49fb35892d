#include "plena/numerics/scale_search.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "plena/numerics/element.h"
#include "plena/numerics/hbm_codec.h"
#include "plena/numerics/packed_bits.h"

namespace plena {

namespace {

constexpr int kScaleBias = 127;
constexpr std::uint8_t kScaleNan = 0xFF;

// One block's codes under one scale.
struct Candidate {
  int exponent = 0;
  double error = std::numeric_limits<double>::infinity();  // sum of squares
  std::vector<std::uint32_t> codes;
};

class ScaleSearch {
 public:
  explicit ScaleSearch(DataType type)
      : type_(type),
        emax_(element_emax(type.element)),
        largest_element_(largest_element(type.element)) {}

  // The best scale of a block whose largest magnitude is finite and not 0.
  const Candidate& find(std::span<const float> block, float largest) {
    const int floor_rule = clamp(std::ilogb(largest) - emax_);
    best_.error = std::numeric_limits<double>::infinity();
    consider(block, floor_rule);
    // One step up nothing saturates any more, and the elements of a larger scale are elements of
    // the smaller one too: further up nothing improves.
    consider(block, clamp(floor_rule + 1));
    // The further down, the more of the largest element is lost.
    for (int exponent = floor_rule - 1; exponent >= -kScaleBias; --exponent) {
      const double lost = largest - std::ldexp(largest_element_, exponent);
      if (lost * lost >= best_.error) break;
      consider(block, exponent);
    }
    return best_;
  }

 private:
  static int clamp(int exponent) { return std::clamp(exponent, -kScaleBias, kScaleBias); }

  static double largest_element(ElementType element) {
    if (element.kind == ElementType::Kind::Int) {
      return element_value(element, (1U << (element.int_width - 1)) - 1, /*fixed_point=*/true);
    }
    return element_value(element, largest_magnitude_code(element), /*fixed_point=*/true);
  }

  void consider(std::span<const float> block, int exponent) {
    const double down = std::ldexp(1.0, -exponent);
    const double up = std::ldexp(1.0, exponent);
    trial_.exponent = exponent;
    trial_.error = 0;
    trial_.codes.resize(block.size());
    for (std::size_t i = 0; i < block.size() && trial_.error < best_.error; ++i) {
      const std::uint32_t code = round_to_block_element(type_.element, block[i] * down);
      const double approximation = element_value(type_.element, code, true) * up;
      if (std::fabs(approximation) > std::numeric_limits<float>::max())
        return;  // reads as infinity
      const double error = block[i] - approximation;
      trial_.codes[i] = code;
      trial_.error += error * error;
    }
    if (trial_.error < best_.error) std::swap(trial_, best_);
  }

  DataType type_;
  int emax_;
  double largest_element_;
  Candidate best_;
  Candidate trial_;
};

float largest_magnitude(std::span<const float> block) {
  float largest = 0;
  for (const float value : block) {
    if (!std::isfinite(value)) return std::numeric_limits<float>::infinity();
    largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

}  // namespace

void encode_with_least_error(DataType type, const float* values, std::size_t n,
                             std::uint8_t* elements, std::uint8_t* scales) {
  const std::uint32_t width = type.width();
  std::memset(elements, 0, n * width / 8);
  ScaleSearch search(type);
  for (std::size_t first = 0; first < n; first += type.block) {
    const std::span block(values + first, type.block);
    const float largest = largest_magnitude(block);
    std::uint8_t& scale = scales[first / type.block];
    scale = largest == 0 ? 0 : kScaleNan;  // the elements stay 0
    if (largest == 0 || !std::isfinite(largest)) continue;
    const Candidate& best = search.find(block, largest);
    scale = static_cast<std::uint8_t>(best.exponent + kScaleBias);
    for (std::size_t i = 0; i < block.size(); ++i) {
      write_packed(elements, std::uint64_t{first + i} * width, width, best.codes[i]);
    }
  }
}

}  // namespace plena
