// AMX multiplies a tile of up to 16 rows of pairs of bf16 by 16 columns of such pairs. For every
// output it sums the first elements of all pairs in order with fused multiply-add from +0, the
// second ones likewise, and adds both sums: where the pairs are those of two neighbouring blocks of
// BLEN, that is the lowest level of the tree. The levels above it are sums of whole tiles.
//
// It takes subnormals for 0, of operands and results alike. Where the last bit of every product is
// at least 2^-126 there are none.
#include "plena/numerics/matrix_unit.h"

#if defined(__x86_64__) && defined(__GNUC__)
// Intrinsics whose result is undefined at first, as GCC has them.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

namespace plena {

namespace {

constexpr std::size_t kBlen = 4;
constexpr std::size_t kPair = 2 * kBlen;  // elements of two blocks: what a multiplication takes
constexpr std::size_t kPanel = MatrixUnit::kPanel;
constexpr std::size_t kVector = 32;   // bf16 in a vector
constexpr std::size_t kPartials = 8;  // pairs of blocks whose tree stays in registers
constexpr std::size_t kStretch = kPartials * kPair;
constexpr std::size_t kMostStretches = 4;

// Exponents of the values that are not 0; none where most < least.
struct alignas(64) Range {
  int least = 0;
  int most = 0;
  bool plain = false;  // no subnormal, infinity or NaN

  [[nodiscard]] const std::uint8_t* packed() const {
    return reinterpret_cast<const std::uint8_t*>(this + 1);
  }
};

bool product_is_exact(const Range& a, const Range& w) {
  constexpr int kMantissas = 7 + 7;
  constexpr int kSumBits = 2 + 3;  // both mantissas below 2, eight products
  return a.plain && w.plain && a.least + w.least - kMantissas >= -126 &&
         a.most + w.most + kSumBits <= 127;
}

// What LDTILECFG reads: bytes of a row and rows of each tile register.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

// Sums in 0 to 3, weights in 4 and 5 [16 columns][4 pairs], activations in 6 and 7 [4 pairs][16
// rows].
constexpr TileShapes kShapes = [] {
  TileShapes shapes;
  for (int sum = 0; sum < 4; ++sum) {
    shapes.row_bytes[sum] = kPanel * sizeof(float);
    shapes.rows[sum] = kPanel;
  }
  for (int weights = 4; weights < 6; ++weights) {
    shapes.row_bytes[weights] = kPair * sizeof(std::uint16_t);
    shapes.rows[weights] = kPanel;
  }
  for (int rows = 6; rows < 8; ++rows) {
    shapes.row_bytes[rows] = kPanel * sizeof(float);
    shapes.rows[rows] = kBlen;
  }
  return shapes;
}();

// The compiler does not see what tile instructions read and write.
inline void memory_fence() {
  asm volatile("" ::: "memory");
}

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-bf16")

class RangeOfVectors {
 public:
  RangeOfVectors() : least_(_mm512_set1_epi16(-1)), most_(_mm512_setzero_si512()) {}

  void look_at(__m512i values) {
    const __m512i magnitude = _mm512_and_si512(values, _mm512_set1_epi16(0x7FFF));
    most_ = _mm512_max_epu16(most_, magnitude);
    // 0 becomes the largest of all.
    least_ = _mm512_min_epu16(least_, _mm512_sub_epi16(magnitude, _mm512_set1_epi16(1)));
  }
  [[nodiscard]] Range range() const {
    alignas(64) std::uint16_t least[kVector], most[kVector];
    _mm512_store_si512(least, least_);
    _mm512_store_si512(most, most_);
    unsigned smallest = 0xFFFF, largest = 0;
    for (std::size_t i = 0; i < kVector; ++i) {
      smallest = least[i] < smallest ? least[i] : smallest;
      largest = most[i] > largest ? most[i] : largest;
    }
    Range range;
    if (largest == 0) {
      range.least = 127;
      range.most = -126;
      range.plain = true;
      return range;
    }
    const unsigned lowest_field = (smallest + 1) >> 7, highest_field = largest >> 7;
    range.least = static_cast<int>(lowest_field) - 127;
    range.most = static_cast<int>(highest_field) - 127;
    range.plain = lowest_field != 0 && highest_field != 255;
    return range;
  }

 private:
  __m512i least_;
  __m512i most_;
};

// Elements i and i + BLEN of every two blocks side by side.
inline __m512i paired(__m512i values) {
  const __m512i places =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
  return _mm512_shuffle_epi8(values, places);
}

// [c][k], pairs in place.
void pack_weights(const void* weights, std::size_t columns, std::size_t n, void* packed) {
  auto* range = static_cast<Range*>(packed);
  const auto* from = static_cast<const std::uint16_t*>(weights);
  auto* to = reinterpret_cast<std::uint16_t*>(range + 1);
  RangeOfVectors seen;
  for (std::size_t i = 0; i < columns * n; i += kVector) {
    const __m512i values = _mm512_loadu_si512(from + i);
    seen.look_at(values);
    _mm512_store_si512(to + i, paired(values));
  }
  *range = seen.range();
}

// Row i of the result holds element i of every row.
inline void transpose(__m512i (&rows)[16]) {
  __m512i pairs[16], fours[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    fours[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
    fours[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
    fours[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    fours[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
  // Block b of fours[4 q + i] is element 4 b + i of rows 4 q to 4 q + 3.
  for (int i = 0; i < 4; ++i) {
    const __m512i low01 = _mm512_shuffle_i32x4(fours[i], fours[i + 4], 0x44);
    const __m512i low23 = _mm512_shuffle_i32x4(fours[i + 8], fours[i + 12], 0x44);
    const __m512i high01 = _mm512_shuffle_i32x4(fours[i], fours[i + 4], 0xEE);
    const __m512i high23 = _mm512_shuffle_i32x4(fours[i + 8], fours[i + 12], 0xEE);
    rows[i] = _mm512_shuffle_i32x4(low01, low23, 0x88);
    rows[i + 4] = _mm512_shuffle_i32x4(low01, low23, 0xDD);
    rows[i + 8] = _mm512_shuffle_i32x4(high01, high23, 0x88);
    rows[i + 12] = _mm512_shuffle_i32x4(high01, high23, 0xDD);
  }
}

// [panel][pair of elements][row of the panel][2].
void pack_rows(const void* rows, std::size_t stride, std::size_t count, std::size_t n,
               void* packed) {
  auto* range = static_cast<Range*>(packed);
  const auto* from = static_cast<const std::uint16_t*>(rows);
  auto* to = reinterpret_cast<std::uint16_t*>(range + 1);
  RangeOfVectors seen;
  for (std::size_t panel = 0; panel < count; panel += kPanel) {
    for (std::size_t k = 0; k < n; k += kVector) {
      __m512i values[kPanel];
      for (std::size_t r = 0; r < kPanel; ++r) {
        if (panel + r < count) {
          values[r] = _mm512_loadu_si512(from + (panel + r) * stride + k);
          seen.look_at(values[r]);
          values[r] = paired(values[r]);
        } else {
          values[r] = _mm512_setzero_si512();
        }
      }
      transpose(values);
      for (std::size_t i = 0; i < kPanel; ++i)
        _mm512_store_si512(to + (panel * n + (k + 2 * i) * kPanel), values[i]);
    }
  }
  *range = seen.range();
}

// Tiles of sums of eight pairs of blocks, side by side with those of another panel.
struct Partials {
  alignas(64) float at[kPartials][2][kPanel * kPanel];
};

inline __m512 sum_of_two(const Partials& partials, std::size_t pair, std::size_t panel,
                         std::size_t row) {
  return _mm512_add_ps(_mm512_load_ps(&partials.at[pair][panel][row * kPanel]),
                       _mm512_load_ps(&partials.at[pair + 1][panel][row * kPanel]));
}

// Row `row` of the tree over the partial sums of a panel.
inline __m512 tree(const Partials& partials, std::size_t panel, std::size_t row) {
  const __m512 left =
      _mm512_add_ps(sum_of_two(partials, 0, panel, row), sum_of_two(partials, 2, panel, row));
  const __m512 right =
      _mm512_add_ps(sum_of_two(partials, 4, panel, row), sum_of_two(partials, 6, panel, row));
  return _mm512_add_ps(left, right);
}

// Partial sums of 16 columns and one or two panels of rows, which lie `panel_bytes` apart.
template <std::size_t kPanels>
inline void multiply(const std::uint8_t* weights, std::size_t column_bytes,
                     const std::uint8_t* rows, std::size_t panel_bytes, Partials& to) {
  constexpr long kLine = 64;
  const auto pitch = static_cast<long>(column_bytes);
  const auto rows_of = [&](std::size_t pair, std::size_t panel) {
    return rows + panel * panel_bytes + pair * kBlen * kLine;
  };
  for (std::size_t pair = 0; pair < kPartials; pair += 2) {
    _tile_zero(0);
    _tile_loadd(4, weights + pair * 16, pitch);
    _tile_loadd(6, rows_of(pair, 0), kLine);
    _tile_dpbf16ps(0, 4, 6);
    _tile_stored(0, to.at[pair][0], kLine);
    if constexpr (kPanels == 2) {
      _tile_zero(1);
      _tile_loadd(7, rows_of(pair, 1), kLine);
      _tile_dpbf16ps(1, 4, 7);
      _tile_stored(1, to.at[pair][1], kLine);
    }
    _tile_zero(2);
    _tile_loadd(5, weights + (pair + 1) * 16, pitch);
    _tile_loadd(6, rows_of(pair + 1, 0), kLine);
    _tile_dpbf16ps(2, 5, 6);
    _tile_stored(2, to.at[pair + 1][0], kLine);
    if constexpr (kPanels == 2) {
      _tile_zero(3);
      _tile_loadd(7, rows_of(pair + 1, 1), kLine);
      _tile_dpbf16ps(3, 5, 7);
      _tile_stored(3, to.at[pair + 1][1], kLine);
    }
  }
  memory_fence();
}

// Trees over stretches that came before the last one.
struct Stretches {
  alignas(64) float at[kMostStretches - 1][2][kPanel * kPanel];
};

// Row `row` of the tree over all stretches, `last` of which came before this one.
inline __m512 tree_of_stretches(const Stretches& earlier, std::size_t last, std::size_t panel,
                                std::size_t row, __m512 sum) {
  if (last == 0) return sum;
  const __m512 first = _mm512_load_ps(&earlier.at[0][panel][row * kPanel]);
  if (last == 1) return _mm512_add_ps(first, sum);
  const __m512 second = _mm512_load_ps(&earlier.at[1][panel][row * kPanel]);
  const __m512 third = _mm512_load_ps(&earlier.at[2][panel][row * kPanel]);
  return _mm512_add_ps(_mm512_add_ps(first, second), _mm512_add_ps(third, sum));
}

// out[16 columns][kPanels * 16 rows] += their products.
template <std::size_t kPanels>
void add_panels(const std::uint8_t* weights, std::size_t n, const std::uint8_t* rows, float* out,
                std::size_t out_stride) {
  Partials partials;
  Stretches stretches;
  const std::size_t row_bytes = n * sizeof(std::uint16_t);
  const std::size_t last = n / kStretch - 1;
  for (std::size_t stretch = 0; stretch <= last; ++stretch) {
    const std::size_t k = stretch * kStretch;
    multiply<kPanels>(weights + k * sizeof(std::uint16_t), row_bytes,
                      rows + k * kPanel * sizeof(std::uint16_t), kPanel * row_bytes, partials);
    for (std::size_t panel = 0; panel < kPanels; ++panel) {
      for (std::size_t row = 0; row < kPanel; ++row) {
        const __m512 sum = tree(partials, panel, row);
        if (stretch != last) {
          _mm512_store_ps(&stretches.at[stretch][panel][row * kPanel], sum);
          continue;
        }
        float* at = out + row * out_stride + panel * kPanel;
        const __m512 root = tree_of_stretches(stretches, last, panel, row, sum);
        _mm512_storeu_ps(at, _mm512_add_ps(_mm512_loadu_ps(at), root));
      }
    }
  }
}

bool product(const void* packed_rows, std::size_t rows, const void* packed_weights,
             std::size_t columns, std::size_t n, float* out, std::size_t out_stride) {
  const auto& a = *static_cast<const Range*>(packed_rows);
  const auto& w = *static_cast<const Range*>(packed_weights);
  if (!product_is_exact(a, w)) return false;
  memory_fence();
  _tile_loadconfig(&kShapes);
  const std::size_t row_bytes = n * sizeof(std::uint16_t);
  for (std::size_t c = 0; c < columns; c += kPanel) {
    const std::uint8_t* weights = w.packed() + c * row_bytes;
    for (std::size_t r = 0; r < rows; r += 2 * kPanel) {
      const std::uint8_t* panel = a.packed() + r * row_bytes;
      float* to = out + c * out_stride + r;
      if (r + kPanel < rows) {
        add_panels<2>(weights, n, panel, to, out_stride);
      } else {
        add_panels<1>(weights, n, panel, to, out_stride);
      }
    }
  }
  _tile_release();
  return true;
}

#pragma GCC pop_options

constexpr MatrixUnit kAmx{pack_weights, pack_rows, product};

}  // namespace

const MatrixUnit* matrix_unit(ElementType format, std::size_t n, std::size_t blen,
                              SimdTarget target) {
  if (target != SimdTarget::Amx || format != kBf16 || blen != kBlen) return nullptr;
  const std::size_t stretches = n / kStretch;
  const bool tree_is_whole = stretches == 1 || stretches == 2 || stretches == kMostStretches;
  return n % kStretch == 0 && tree_is_whole ? &kAmx : nullptr;
}

}  // namespace plena
#else

namespace plena {

const MatrixUnit* matrix_unit(ElementType /*format*/, std::size_t /*n*/, std::size_t /*blen*/,
                              SimdTarget /*target*/) {
  return nullptr;
}

}  // namespace plena
#endif
