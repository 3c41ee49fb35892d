#include "plena/compiler/hadamard.h"

#include <bit>
#include <cmath>
#include <numeric>

namespace plena {

namespace {

// A bit of SplitMix64 of the element's index.
bool is_negated(std::size_t element) {
  std::uint64_t z = (element + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
  z = (z ^ z >> 27) * 0x94D049BB133111EBU;
  return (z >> 63) != 0;
}

}  // namespace

void Hadamard::turn(std::span<float> vector) const {
  turn_columns(vector, 1);
}

void Hadamard::turn_columns(std::span<float> rows, std::size_t columns) const {
  if (block == 1 || columns == 0) return;
  const float scale = 1.0F / std::sqrt(static_cast<float>(block));
  const std::size_t size = block * columns;
  for (std::size_t at = 0; at + size <= rows.size(); at += size) {
    const auto turned = rows.subspan(at, size);
    for (std::size_t i = 0; i < size; ++i) {
      turned[i] *= is_negated(i / columns) ? -scale : scale;
    }
    // Butterflies of elements i and i + step.
    for (std::size_t step = columns; step < size; step *= 2) {
      for (std::size_t first = 0; first < size; first += 2 * step) {
        for (std::size_t i = first; i < first + step; ++i) {
          const float a = turned[i];
          const float b = turned[i + step];
          turned[i] = a + b;
          turned[i + step] = a - b;
        }
      }
    }
  }
}

Hadamard widest_hadamard(std::uint32_t width, std::uint32_t mlen) {
  const std::uint32_t common = std::gcd(width, mlen);
  if (common == 0) return {};
  return {1U << static_cast<unsigned>(std::countr_zero(common))};
}

}  // namespace plena
