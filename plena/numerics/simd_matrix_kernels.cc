// Dot products in SIMD, one lane a column, so that every lane keeps the order of semantics 4.5:
// fused multiply-adds through a block, the tree over blocks, the root onto the accumulator.
//
// A panel is kRows rows times kVectors vectors of columns, held in registers. bf16 weights are
// widened on the way: of each pair of columns the even one by a shift, the odd one by a mask; the
// order of the columns is restored once, when the roots meet the accumulators.
#include <cstring>

#include "plena/numerics/float_format.h"
#include "plena/numerics/highway_targets.h"
#include "plena/numerics/scratch.h"
#include "plena/numerics/simd_kernels.h"
#include "plena/numerics/sram_formats.h"
#include "plena/numerics/streamed_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plena/numerics/simd_matrix_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plena::HWY_NAMESPACE {
#if PLENA_HWY_HAS_FMA
namespace hn = hwy::HWY_NAMESPACE;

template <std::size_t kLanes>
using Floats = hn::CappedTag<float, kLanes>;
using AllFloats = hn::ScalableTag<float>;

// Tree sums of more blocks than a register file holds go through memory; 2^32 groups are enough.
constexpr std::size_t kTreeLevels = 32;

// AVX-512 has registers for four block sums of a panel at a time, AVX2 for one or two.
constexpr bool kManyRegisters = HWY_TARGET == HWY_AVX3;

// Of the lanes even[0], odd[0], even[1], odd[1], … the first half and the second.
template <class D, class V>
HWY_INLINE V zip_lower(D d, V even, V odd) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(d) == 16) {
    const __m512i order = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return V{_mm512_permutex2var_ps(even.raw, order, odd.raw)};
  }
#endif
  const V lower = hn::InterleaveLower(d, even, odd);
  if constexpr (hn::MaxLanes(d) <= 4) return lower;
  return hn::ConcatLowerLower(d, hn::InterleaveUpper(d, even, odd), lower);
}
template <class D, class V>
HWY_INLINE V zip_upper(D d, V even, V odd) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(d) == 16) {
    const __m512i order =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    return V{_mm512_permutex2var_ps(even.raw, order, odd.raw)};
  }
#endif
  const V upper = hn::InterleaveUpper(d, even, odd);
  if constexpr (hn::MaxLanes(d) <= 4) return upper;
  return hn::ConcatUpperUpper(d, upper, hn::InterleaveLower(d, even, odd));
}

// Weights of one step k for kVectors vectors of columns, as f32.
struct F32Weights {
  using Element = float;

  template <class D, class V, std::size_t kVectors>
  static HWY_INLINE void load(D d, const float* weights, V (&out)[kVectors]) {
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) out[v] = hn::LoadU(d, weights + v * hn::Lanes(d));
  }

  // out[0 … kVectors*lanes) += roots.
  template <class D, class V, std::size_t kVectors>
  static HWY_INLINE void add_to(D d, const V (&roots)[kVectors], float* out) {
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      float* at = out + v * hn::Lanes(d);
      hn::StoreU(hn::Add(hn::LoadU(d, at), roots[v]), d, at);
    }
  }
};

struct Bf16Weights {
  using Element = std::uint16_t;

  // An even number of vectors: vectors 2p and 2p+1 hold the even and the odd columns of pair p.
  template <class D, class V, std::size_t kVectors>
  static HWY_INLINE void load(D d, const std::uint16_t* weights, V (&out)[kVectors]) {
    const hn::RebindToUnsigned<D> d32;
    if constexpr (kVectors == 1) {
      const hn::Rebind<std::uint16_t, D> d16;
      const auto wide = hn::PromoteTo(d32, hn::LoadU(d16, weights));
      out[0] = hn::BitCast(d, hn::ShiftLeft<16>(wide));
    } else {
      const hn::Repartition<std::uint16_t, D> d16;
      const auto upper = hn::Set(d32, 0xFFFF0000U);
      HWY_UNROLL(2)
      for (std::size_t pair = 0; pair < kVectors / 2; ++pair) {
        const auto both = hn::BitCast(d32, hn::LoadU(d16, weights + pair * hn::Lanes(d16)));
        out[2 * pair] = hn::BitCast(d, hn::ShiftLeft<16>(both));
        out[2 * pair + 1] = hn::BitCast(d, hn::And(both, upper));
      }
    }
  }

  template <class D, class V, std::size_t kVectors>
  static HWY_INLINE void add_to(D d, const V (&roots)[kVectors], float* out) {
    if constexpr (kVectors == 1) {
      F32Weights::add_to(d, roots, out);
    } else {
      HWY_UNROLL(2)
      for (std::size_t pair = 0; pair < kVectors / 2; ++pair) {
        float* at = out + 2 * pair * hn::Lanes(d);
        const V in_order[2] = {zip_lower(d, roots[2 * pair], roots[2 * pair + 1]),
                               zip_upper(d, roots[2 * pair], roots[2 * pair + 1])};
        F32Weights::add_to(d, in_order, at);
      }
    }
  }
};

// A register tile: [kRows][kVectors].
template <class V, std::size_t kRows, std::size_t kVectors>
struct Tile {
  V at[kRows][kVectors];

  HWY_INLINE void operator+=(const Tile& right) {
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v) at[r][v] = hn::Add(at[r][v], right.at[r][v]);
    }
  }
};

// Where a panel reads from. `a` and `weights` walk along k.
template <class Element>
struct Operands {
  const float* a;
  std::size_t a_stride;
  const Element* weights;
  std::size_t weight_stride;
};

// Block sums and trees of one panel. kBlen is the block, 0 where only run time knows it.
template <class Weights, class D, std::size_t kRows, std::size_t kVectors, std::size_t kBlen>
class Panel {
 public:
  using Element = typename Weights::Element;
  using V = hn::Vec<D>;
  using PanelTile = Tile<V, kRows, kVectors>;

  static void accumulate(const ProductShape& shape, Operands<Element> from, float* out,
                         std::size_t out_stride) {
    const std::size_t blocks = shape.n / (kBlen != 0 ? kBlen : shape.blen);
    if (blocks == 1) {  // the sums in order of the dialect plena-rs
      add_roots(block(shape.blen, from), out, out_stride);
      return;
    }
    PanelTile levels[kTreeLevels];  // one partial sum a level, as BlockTree has them
    std::size_t depth = 0;
    std::size_t done = 0;
    for (; done < blocks / kGroup; ++done) {
      PanelTile part = skips_zeros(shape) && all_zero(from.a) ? zeros_for_group(from)
                                                              : subtree<kGroup>(shape.blen, from);
      for (std::size_t bit = done; (bit & 1) != 0; bit >>= 1) {
        PanelTile left = levels[--depth];
        left += part;
        part = left;
      }
      levels[depth++] = part;
    }
    // Fewer blocks than a group are the odd end of the lowest levels: a tree of their own.
    if (blocks % kGroup != 0) levels[depth++] = last_blocks(blocks % kGroup, shape.blen, from);
    PanelTile root = levels[--depth];
    while (depth > 0) {
      PanelTile left = levels[--depth];
      left += root;
      root = left;
    }
    add_roots(root, out, out_stride);
  }

 private:
  static HWY_INLINE void add_roots(const PanelTile& roots, float* out, std::size_t out_stride) {
    for (std::size_t r = 0; r < kRows; ++r) Weights::add_to(D(), roots.at[r], out + r * out_stride);
  }

  // Blocks whose tree stays in registers.
  static constexpr std::size_t kGroup = kBlen == 0              ? 1
                                        : kManyRegisters        ? 4
                                        : kRows * kVectors <= 4 ? 2
                                                                : 1;

  // A group of blocks whose activations fill whole vectors: with one row at a time it happens that
  // they are all 0, where attention isolates a head's lanes or masks positions.
  static constexpr std::size_t kGroupLength = kGroup * kBlen;
  static constexpr bool kCanSkip =
      kRows == 1 && kGroupLength != 0 && kGroupLength % hn::MaxLanes(D()) == 0;

  static HWY_INLINE bool skips_zeros(const ProductShape& shape) {
    return kCanSkip && shape.finite_weights;
  }
  static HWY_INLINE bool all_zero(const float* a) {
    const D d;
    bool zero = true;
    for (std::size_t k = 0; k < kGroupLength; k += hn::Lanes(d)) {
      zero = zero && hn::AllTrue(d, hn::Eq(hn::LoadU(d, a + k), hn::Zero(d)));
    }
    return zero;
  }
  static HWY_INLINE PanelTile zeros_for_group(Operands<Element>& from) {
    from.a += kGroupLength;
    from.weights += kGroupLength * from.weight_stride;
    return zeros();
  }
  static HWY_INLINE PanelTile zeros() {
    PanelTile tile;
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v) tile.at[r][v] = hn::Zero(D());
    }
    return tile;
  }

  static HWY_INLINE void step(Operands<Element>& from, PanelTile& sum) {
    const D d;
    V weights[kVectors];
    Weights::load(d, from.weights, weights);
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < kRows; ++r) {
      const V a = hn::Set(d, from.a[r * from.a_stride]);
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v) {
        sum.at[r][v] = hn::MulAdd(a, weights[v], sum.at[r][v]);
      }
    }
    ++from.a;
    from.weights += from.weight_stride;
  }

  static HWY_INLINE PanelTile block(std::size_t blen, Operands<Element>& from) {
    PanelTile sum = zeros();
    if constexpr (kBlen != 0) {
      HWY_UNROLL(4)
      for (std::size_t k = 0; k < kBlen; ++k) step(from, sum);
    } else {
      std::size_t k = 0;
      for (; k + 4 <= blen; k += 4) {
        HWY_UNROLL(4)
        for (std::size_t i = 0; i < 4; ++i) step(from, sum);
      }
      for (; k < blen; ++k) step(from, sum);
    }
    return sum;
  }

  // The tree over the next kBlocks blocks, a power of two.
  template <std::size_t kBlocks>
  static HWY_INLINE PanelTile subtree(std::size_t blen, Operands<Element>& from) {
    if constexpr (kBlocks == 1) {
      return block(blen, from);
    } else {
      PanelTile left = subtree<kBlocks / 2>(blen, from);
      left += subtree<kBlocks / 2>(blen, from);
      return left;
    }
  }

  // The tree over the last 1 … kGroup-1 blocks.
  static HWY_INLINE PanelTile last_blocks(std::size_t count, std::size_t blen,
                                          Operands<Element>& from) {
    if (count == 1) return block(blen, from);
    PanelTile left = subtree<2>(blen, from);
    if (count == 3) left += block(blen, from);
    return left;
  }
};

// Rows that share the widened weights of a step.
constexpr std::size_t kManyRows = 4;

// All rows of the panel, kRows at a time, then one by one. How many columns the shape has does not
// matter here or below: it is handed on as it came, because a copy would wait for its parts.
template <class Weights, class D, std::size_t kVectors, std::size_t kRows>
HWY_INLINE void rows_of_panel(const ProductShape& shape, Operands<typename Weights::Element> from,
                              float* out, std::size_t out_stride) {
  constexpr bool kOften = hn::MaxLanes(D()) >= 4;
  std::size_t r = 0;
  const auto run = [&]<std::size_t kCount>() {
    // Single columns are not worth code of their own for the usual block.
    if (kOften && shape.blen == 4) {
      Panel<Weights, D, kCount, kVectors, kOften ? 4 : 0>::accumulate(shape, from, out, out_stride);
    } else {
      Panel<Weights, D, kCount, kVectors, 0>::accumulate(shape, from, out, out_stride);
    }
    r += kCount;
    from.a += kCount * from.a_stride;
    out += kCount * out_stride;
  };
  if constexpr (kRows > 1) {
    while (shape.rows - r >= kRows) run.template operator()<kRows>();
  }
  while (r < shape.rows) run.template operator()<1>();
}

// Columns that fill less than a pair of vectors: a vector at a time, then eight columns, then four
// (M_MM and M_TMM of BLEN 4, two blocks or one), then one.
template <class Weights, std::size_t kLanes>
void narrow_panels(const ProductShape& shape, std::size_t columns,
                   Operands<typename Weights::Element> from, float* out, std::size_t out_stride) {
  while (columns >= kLanes) {
    rows_of_panel<Weights, Floats<kLanes>, 1, kLanes == 1 ? 1 : kManyRows>(shape, from, out,
                                                                           out_stride);
    columns -= kLanes;
    from.weights += kLanes;
    out += kLanes;
  }
  if constexpr (kLanes > 1) {
    if (columns == 0) return;
    narrow_panels<Weights, kLanes == 4 ? 1 : kLanes / 2>(shape, columns, from, out, out_stride);
  }
}

// M_MM of BLEN 4, the most frequent product of all: lane 4c + r of the vectors is row r and column
// c, so that every step is one product of four activations and four weights.
template <class Weights>
class FourByFour {
 public:
  using Element = typename Weights::Element;

  static bool fits(const ProductShape& shape) {
    return shape.rows == 4 && shape.columns == 4 && shape.blen == 4 && shape.n % kStretch == 0;
  }

  static void accumulate(const ProductShape& shape, Operands<Element> from, float* out,
                         std::size_t out_stride) {
    const float* a = arrange(from.a, from.a_stride, shape.n);
    Sums levels[kTreeLevels];  // as BlockTree has them
    std::size_t depth = 0;
    for (std::size_t k = 0, done = 0; k < shape.n; k += kStretch, ++done) {
      Sums part = stretch(a + 4 * k, from.weights + k * from.weight_stride, from.weight_stride);
      for (std::size_t bit = done; (bit & 1) != 0; bit >>= 1) {
        Sums left = levels[--depth];
        left += part;
        part = left;
      }
      levels[depth++] = part;
    }
    Sums root = levels[--depth];
    while (depth > 0) {
      Sums left = levels[--depth];
      left += root;
      root = left;
    }
    add_to(root, out, out_stride);
  }

 private:
  using D = AllFloats;
  static constexpr std::size_t kVectors = 16 / hn::MaxLanes(D());
  using Sums = Tile<hn::Vec<D>, 1, kVectors>;
  static constexpr std::size_t kStretch = 16;  // steps, four blocks

  struct ArrangedScratch {};

  // [k][4 rows]: within a stretch the steps 0, 4, 8, 12, then 1, 5, 9, 13 and so on.
  static const float* arrange(const float* a, std::size_t stride, std::size_t n) {
    const D d;
    const hn::Repartition<double, D> d64;
    auto* to = static_cast<float*>(thread_scratch<ArrangedScratch>(4 * n * sizeof(float)));
    constexpr std::size_t kLanes = hn::MaxLanes(D());
    for (std::size_t k = 0; k < n; k += kLanes) {
      const auto row = [&](std::size_t r) HWY_ATTR { return hn::LoadU(d, a + r * stride + k); };
      const auto r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
      const auto put = [&](auto upper, auto lower, std::size_t first) HWY_ATTR {
        const auto x = hn::BitCast(d64, lower), y = hn::BitCast(d64, upper);
        const std::size_t at = k / kStretch * kStretch * 4 + k % kStretch;
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, x, y)), d, to + at + first * kStretch);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, x, y)), d,
                   to + at + (first + 1) * kStretch);
      };
      put(hn::InterleaveLower(d, r2, r3), hn::InterleaveLower(d, r0, r1), 0);
      put(hn::InterleaveUpper(d, r2, r3), hn::InterleaveUpper(d, r0, r1), 2);
    }
    return to;
  }

  // Each of four weights in the four lanes of its column; lookups in their bytes.
  struct Places {
    alignas(64) std::uint8_t bytes[kVectors][hn::MaxLanes(D()) * 4];
  };
  static constexpr Places kPlaces = [] {
    Places places{};
    constexpr std::size_t kSize = sizeof(Element);
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t column = i / 16, byte = i % 4;
      const std::size_t skipped = 4 - kSize;  // bf16 is the upper half of an f32
      places.bytes[i / sizeof places.bytes[0]][i % sizeof places.bytes[0]] =
          static_cast<std::uint8_t>(byte < skipped ? 0x80 : column * kSize + byte - skipped);
    }
    return places;
  }();

  static HWY_INLINE hn::Vec<D> spread(const Element* weights, std::size_t vector) {
    const hn::Repartition<std::uint8_t, D> d8;
    const auto places = hn::Load(d8, kPlaces.bytes[vector]);
    if constexpr (sizeof(Element) == 4) {
      const auto four = hn::BitCast(d8, hn::LoadDup128(D(), weights));
      return hn::BitCast(D(), hn::TableLookupBytes(four, places));
    } else {
      const hn::Repartition<std::uint64_t, D> d64;
      std::uint64_t four = 0;
      std::memcpy(&four, weights, sizeof four);
      return hn::BitCast(D(), hn::TableLookupBytes(hn::BitCast(d8, hn::Set(d64, four)), places));
    }
  }

  static HWY_INLINE Sums stretch(const float* a, const Element* weights, std::size_t stride) {
    const auto block = [&](std::size_t b) HWY_ATTR {
      Sums sum;
      HWY_UNROLL(2)
      for (std::size_t v = 0; v < kVectors; ++v) sum.at[0][v] = hn::Zero(D());
      HWY_UNROLL(4)
      for (std::size_t i = 0; i < 4; ++i) {
        const auto rows = hn::LoadDup128(D(), a + i * kStretch + 4 * b);
        HWY_UNROLL(2)
        for (std::size_t v = 0; v < kVectors; ++v) {
          const auto columns = spread(weights + (4 * b + i) * stride, v);
          sum.at[0][v] = hn::MulAdd(rows, columns, sum.at[0][v]);
        }
      }
      return sum;
    };
    Sums left = block(0);
    left += block(1);
    Sums right = block(2);
    right += block(3);
    left += right;
    return left;
  }

  static void add_to(const Sums& roots, float* out, std::size_t out_stride) {
    HWY_ALIGN float lanes[16];  // [column][row]
    for (std::size_t v = 0; v < kVectors; ++v) {
      hn::Store(roots.at[0][v], D(), lanes + v * hn::MaxLanes(D()));
    }
    const hn::FixedTag<float, 4> d;
    const auto column = [&](std::size_t c) HWY_ATTR { return hn::Load(d, lanes + 4 * c); };
    hn::Vec<decltype(d)> c0 = column(0), c1 = column(1), c2 = column(2), c3 = column(3);
    const hn::Repartition<double, decltype(d)> d64;
    const auto wide = [&](auto v) HWY_ATTR { return hn::BitCast(d64, v); };
    const auto lower01 = wide(hn::InterleaveLower(d, c0, c1));
    const auto upper01 = wide(hn::InterleaveUpper(d, c0, c1));
    const auto lower23 = wide(hn::InterleaveLower(d, c2, c3));
    const auto upper23 = wide(hn::InterleaveUpper(d, c2, c3));
    const auto add_row = [&](std::size_t r, auto sums) HWY_ATTR {
      float* at = out + r * out_stride;
      hn::StoreU(hn::Add(hn::LoadU(d, at), hn::BitCast(d, sums)), d, at);
    };
    add_row(0, hn::InterleaveLower(d64, lower01, lower23));
    add_row(1, hn::InterleaveUpper(d64, lower01, lower23));
    add_row(2, hn::InterleaveLower(d64, upper01, upper23));
    add_row(3, hn::InterleaveUpper(d64, upper01, upper23));
  }
};

template <class Weights>
void product(const ProductShape& shape, const float* a, std::size_t a_stride, const void* weights,
             std::size_t weight_stride, float* out, std::size_t out_stride) {
  constexpr std::size_t kLanes = hn::MaxLanes(AllFloats());
  std::size_t columns = shape.columns;  // that are left
  Operands<typename Weights::Element> from{
      a, a_stride, static_cast<const typename Weights::Element*>(weights), weight_stride};
  const auto advance = [&](std::size_t done) {
    columns -= done;
    from.weights += done;
    out += done;
  };
  if (FourByFour<Weights>::fits(shape)) {
    return FourByFour<Weights>::accumulate(shape, from, out, out_stride);
  }
  // A single row has registers for four vectors, four rows have them for two.
  while (shape.rows < kManyRows && columns >= 4 * kLanes) {
    rows_of_panel<Weights, AllFloats, 4, 1>(shape, from, out, out_stride);
    advance(4 * kLanes);
  }
  while (columns >= 2 * kLanes) {
    rows_of_panel<Weights, AllFloats, 2, kManyRows>(shape, from, out, out_stride);
    advance(2 * kLanes);
  }
  if (columns > 0) narrow_panels<Weights, kLanes>(shape, columns, from, out, out_stride);
}

// 128 bits from each of `from`, from + apart, … as the blocks of a vector.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const hn::TFromD<D>* from, std::size_t apart) {
  using T = hn::TFromD<D>;
  const hn::FixedTag<T, 16 / sizeof(T)> block;
  if constexpr (hn::MaxLanes(d) == hn::MaxLanes(block)) {
    return hn::LoadU(block, from);
  } else {
#if HWY_TARGET == HWY_AVX3
    // Inserting from memory leaves the port of the shuffles alone.
    const auto at = [&](std::size_t i) HWY_ATTR { return hn::LoadU(block, from + i * apart).raw; };
    __m512i blocks = _mm512_castsi128_si512(at(0));
    blocks = _mm512_inserti32x4(blocks, at(1), 1);
    blocks = _mm512_inserti32x4(blocks, at(2), 2);
    return hn::Vec<D>{_mm512_inserti32x4(blocks, at(3), 3)};
#else
    return hn::Combine(d, hn::LoadU(block, from + apart), hn::LoadU(block, from));
#endif
  }
}

// Transposes the squares of as many 128-bit blocks as a vector has: rows c … c + kSide - 1 of each
// square are kSide apart. Every stage interleaves row i with row i + half.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void transpose_squares(D d, const T* from, std::size_t from_stride, T* to,
                                  std::size_t to_stride) {
  constexpr std::size_t kSide = 16 / sizeof(T);
  hn::Vec<D> rows[kSide];
  HWY_UNROLL(8)
  for (std::size_t i = 0; i < kSide; ++i) {
    rows[i] = load_blocks(d, from + i * from_stride, kSide * from_stride);
  }
  HWY_UNROLL(3)
  for (std::size_t stage = 1; stage < kSide; stage *= 2) {
    hn::Vec<D> mixed[kSide];
    HWY_UNROLL(4)
    for (std::size_t i = 0; i < kSide / 2; ++i) {
      mixed[2 * i] = hn::InterleaveLower(d, rows[i], rows[i + kSide / 2]);
      mixed[2 * i + 1] = hn::InterleaveUpper(d, rows[i], rows[i + kSide / 2]);
    }
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < kSide; ++i) rows[i] = mixed[i];
  }
  HWY_UNROLL(8)
  for (std::size_t i = 0; i < kSide; ++i) hn::StoreU(rows[i], d, to + i * to_stride);
}

// Whole vectors of columns, then whole blocks; returns how many columns it has done.
template <class D, class T = hn::TFromD<D>>
std::size_t transpose_columns(D d, const T* from, std::size_t from_stride, std::size_t first,
                              std::size_t columns, std::size_t n, T* to, std::size_t to_stride) {
  constexpr std::size_t kSide = 16 / sizeof(T);
  std::size_t c = first;
  for (; c + hn::MaxLanes(d) <= columns; c += hn::MaxLanes(d)) {
    for (std::size_t k = 0; k + kSide <= n; k += kSide) {
      transpose_squares(d, from + c * from_stride + k, from_stride, to + k * to_stride + c,
                        to_stride);
    }
  }
  return c;
}

// Four rows of 16 bits: what M_TMM of BLEN 4 takes of a tile.
HWY_INLINE void transpose_four(const std::uint16_t* from, std::size_t from_stride, std::size_t n,
                               std::uint16_t* to) {
  const hn::FixedTag<std::uint16_t, 8> d;
  const hn::FixedTag<std::uint32_t, 4> d32;
  const auto pairs = [&](auto lower, auto upper, std::uint16_t* at) HWY_ATTR {
    const auto a = hn::BitCast(d32, lower), b = hn::BitCast(d32, upper);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d32, a, b)), d, at);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d32, a, b)), d, at + 8);
  };
  for (std::size_t k = 0; k + 8 <= n; k += 8) {
    const auto row = [&](std::size_t c)
                         HWY_ATTR { return hn::LoadU(d, from + c * from_stride + k); };
    const auto r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
    pairs(hn::InterleaveLower(d, r0, r1), hn::InterleaveLower(d, r2, r3), to + k * 4);
    pairs(hn::InterleaveUpper(d, r0, r1), hn::InterleaveUpper(d, r2, r3), to + k * 4 + 16);
  }
}

// to[k][c] = from[c][k] for k < n, c < columns; bits of any kind.
template <class T>
void transpose(const T* from, std::size_t from_stride, std::size_t columns, std::size_t n, T* to,
               std::size_t to_stride) {
  constexpr std::size_t kSide = 16 / sizeof(T);
  const std::size_t square_n = n - n % kSide;
  std::size_t c = 0;
  if (sizeof(T) == 2 && columns == 4 && to_stride == 4) {
    if constexpr (sizeof(T) == 2) transpose_four(from, from_stride, n, to);
    c = 4;
  } else {
    const hn::FixedTag<T, kSide> block;
    c = transpose_columns(hn::ScalableTag<T>(), from, from_stride, c, columns, n, to, to_stride);
    c = transpose_columns(block, from, from_stride, c, columns, n, to, to_stride);
  }
  const auto copy = [&](std::size_t column, std::size_t first_k) {
    for (std::size_t k = first_k; k < n; ++k) {
      to[k * to_stride + column] = from[column * from_stride + k];
    }
  };
  for (std::size_t done = 0; done < c; ++done) copy(done, square_n);
  for (; c < columns; ++c) copy(c, 0);
}

// Columns transposed at a time: a cache line of bf16 twice over, four vectors of f32.
constexpr std::size_t kPanelColumns = 64;
struct PanelScratch {};

struct ArrangedScratch {};

// One row of activations: the weights as they lie, without a transposed copy that nobody else would
// read. Returns how many columns it has done.
std::size_t columns_as_they_lie(const ProductShape& shape, const float* a,
                                const std::uint16_t* weights, std::size_t weight_stride,
                                float* out) {
  constexpr SimdTarget kTarget = HWY_TARGET == HWY_AVX2 ? SimdTarget::Avx2 : SimdTarget::Avx512;
  const StreamedProduct streamed = streamed_product(DataType::plain(kBf16), kBf16, shape.n,
                                                    shape.blen, kTarget, TilePlace::Sram);
  // Blocks of zeros, which a transposed copy lets skip, save more.
  if (!streamed || shape.rows != 1 || shape.finite_weights) return 0;
  void* arranged = thread_scratch<ArrangedScratch>(StreamedProduct::prepared_bytes(shape.n));
  streamed.prepare(a, shape.n, arranged);
  const StreamedRows rows{.elements = reinterpret_cast<const std::uint8_t*>(weights),
                          .element_pitch = weight_stride * sizeof *weights};
  return streamed.product(arranged, shape.n, rows, shape.columns, out);
}

template <class Weights>
void product_transposed(const ProductShape& shape, const float* a, std::size_t a_stride,
                        const void* weights, std::size_t weight_stride, float* out,
                        std::size_t out_stride) {
  using Bits = hwy::MakeUnsigned<typename Weights::Element>;
  const auto* bits = static_cast<const Bits*>(weights);
  std::size_t done = 0;
  if constexpr (sizeof(Bits) == sizeof(std::uint16_t))
    done = columns_as_they_lie(shape, a, bits, weight_stride, out);
  for (std::size_t c = done; c < shape.columns; c += kPanelColumns) {
    ProductShape part = shape;
    part.columns = HWY_MIN(kPanelColumns, shape.columns - c);
    auto* panel =
        static_cast<Bits*>(thread_scratch<PanelScratch>(shape.n * part.columns * sizeof(Bits)));
    transpose(bits + c * weight_stride, weight_stride, part.columns, shape.n, panel, part.columns);
    product<Weights>(part, a, a_stride, panel, part.columns, out + c, out_stride);
  }
}

template <class Bits>
void transpose_tile(const void* from, void* to, std::size_t side) {
  transpose(static_cast<const Bits*>(from), side, side, side, static_cast<Bits*>(to), side);
}

constexpr MatrixKernels kF32Products{product<F32Weights>, product_transposed<F32Weights>,
                                     transpose_tile<std::uint32_t>};
constexpr MatrixKernels kBf16Products{product<Bf16Weights>, product_transposed<Bf16Weights>,
                                      transpose_tile<std::uint16_t>};
#endif  // PLENA_HWY_HAS_FMA
}  // namespace plena::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plena {

namespace {

struct NativeProducts {
  const MatrixKernels* f32 = nullptr;
  const MatrixKernels* bf16 = nullptr;
};

constexpr NativeProducts native_products(SimdTarget target) {
  switch (common_target(target)) {
#if HWY_TARGETS & HWY_AVX2
    case SimdTarget::Avx2:
      return {&N_AVX2::kF32Products, &N_AVX2::kBf16Products};
#endif
#if HWY_TARGETS & HWY_AVX3
    case SimdTarget::Avx512:
      return {&N_AVX3::kF32Products, &N_AVX3::kBf16Products};
#endif
    default:
      return {};
  }
}

// Only asked for where the target has kernels: simd_matrix_kernels() sees to it.
constexpr auto native_f32_product(SimdTarget target) {
  const MatrixKernels* f32 = native_products(target).f32;
  return f32 != nullptr ? f32->product : nullptr;
}

constexpr auto native_transpose(SimdTarget target, ElementType format) {
  const NativeProducts native = native_products(target);
  const MatrixKernels* same_size = storage_bytes(format) == 2 ? native.bf16 : native.f32;
  return same_size != nullptr ? same_size->transpose : nullptr;
}

struct DecodedScratch {};

// Tiles of any other format: a panel is decoded to f32, then multiplied as f32.
template <ElementType kFormat, SimdTarget kTarget>
void decoded_product(const ProductShape& shape, const float* a, std::size_t a_stride,
                     const void* weights, std::size_t weight_stride, float* out,
                     std::size_t out_stride) {
  auto* panel =
      static_cast<float*>(thread_scratch<DecodedScratch>(shape.n * shape.columns * sizeof(float)));
  for (std::size_t k = 0; k < shape.n; ++k) {
    for (std::size_t c = 0; c < shape.columns; ++c) {
      panel[k * shape.columns + c] = row_value(kFormat, weights, k * weight_stride + c);
    }
  }
  native_f32_product(kTarget)(shape, a, a_stride, panel, shape.columns, out, out_stride);
}

template <ElementType kFormat, SimdTarget kTarget>
void decoded_product_transposed(const ProductShape& shape, const float* a, std::size_t a_stride,
                                const void* weights, std::size_t weight_stride, float* out,
                                std::size_t out_stride) {
  auto* panel =
      static_cast<float*>(thread_scratch<DecodedScratch>(shape.n * shape.columns * sizeof(float)));
  for (std::size_t c = 0; c < shape.columns; ++c) {
    for (std::size_t k = 0; k < shape.n; ++k) {
      panel[k * shape.columns + c] = row_value(kFormat, weights, c * weight_stride + k);
    }
  }
  native_f32_product(kTarget)(shape, a, a_stride, panel, shape.columns, out, out_stride);
}

template <SimdTarget kTarget>
struct OnTarget {
  template <ElementType kFormat>
  struct Decoded {
    static constexpr MatrixKernels kernels{decoded_product<kFormat, kTarget>,
                                           decoded_product_transposed<kFormat, kTarget>,
                                           native_transpose(kTarget, kFormat)};
  };
};

template <SimdTarget kTarget>
const MatrixKernels* decoded_products(ElementType format) {
  static constexpr auto kKernels =
      for_every_sram_format<MatrixKernels, OnTarget<kTarget>::template Decoded>();
  return &kKernels[sram_format_index(format)];
}

}  // namespace

const MatrixKernels* simd_matrix_kernels(SimdTarget target, ElementType format) {
  const NativeProducts native = native_products(target);
  if (native.f32 == nullptr) return nullptr;
  if (format == kFp32) return native.f32;
  if (format == kBf16) return native.bf16;
  return target == SimdTarget::Avx2 ? decoded_products<SimdTarget::Avx2>(format)
                                    : decoded_products<SimdTarget::Avx512>(format);
}

}  // namespace plena
#endif  // HWY_ONCE
