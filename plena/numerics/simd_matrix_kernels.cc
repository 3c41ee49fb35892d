// Dot products in SIMD, one lane a column, so that every lane keeps the order of semantics 4.5:
// fused multiply-adds through a block, the tree over blocks, the root onto the accumulator.
//
// A panel is kRows rows times kVectors vectors of columns, held in registers. bf16 weights are
// widened on the way: of each pair of columns the even one by a shift, the odd one by a mask; the
// order of the columns is restored once, when the roots meet the accumulators.
#include "plena/numerics/float_format.h"
#include "plena/numerics/highway_targets.h"
#include "plena/numerics/scratch.h"
#include "plena/numerics/simd_kernels.h"
#include "plena/numerics/sram_formats.h"

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
        HWY_ALIGN float ordered[2 * hn::MaxLanes(d)];
        hn::StoreInterleaved2(roots[2 * pair], roots[2 * pair + 1], d, ordered);
        const V in_order[2] = {hn::Load(d, ordered), hn::Load(d, ordered + hn::Lanes(d))};
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
      for (std::size_t k = 0; k < blen; ++k) step(from, sum);
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

// All rows of the panel, kRows at a time, then one by one.
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

// Columns that fill less than a pair of vectors: a vector at a time, then four columns (M_MM and
// M_TMM of BLEN 4), then one.
template <class Weights, std::size_t kLanes>
void narrow_panels(ProductShape shape, Operands<typename Weights::Element> from, float* out,
                   std::size_t out_stride) {
  while (shape.columns >= kLanes) {
    rows_of_panel<Weights, Floats<kLanes>, 1, kLanes == 1 ? 1 : kManyRows>(shape, from, out,
                                                                           out_stride);
    shape.columns -= kLanes;
    from.weights += kLanes;
    out += kLanes;
  }
  if constexpr (kLanes > 1) {
    narrow_panels<Weights, kLanes == 4 ? 1 : 4>(shape, from, out, out_stride);
  }
}

template <class Weights>
void product(const ProductShape& shape, const float* a, std::size_t a_stride, const void* weights,
             std::size_t weight_stride, float* out, std::size_t out_stride) {
  constexpr std::size_t kLanes = hn::MaxLanes(AllFloats());
  ProductShape left = shape;
  Operands<typename Weights::Element> from{
      a, a_stride, static_cast<const typename Weights::Element*>(weights), weight_stride};
  const auto advance = [&](std::size_t columns) {
    left.columns -= columns;
    from.weights += columns;
    out += columns;
  };
  if (left.columns == 4) {  // M_MM of BLEN 4, the most frequent product of all
    rows_of_panel<Weights, Floats<4>, 1, kManyRows>(left, from, out, out_stride);
    return;
  }
  // A single row has registers for four vectors, four rows have them for two.
  while (shape.rows < kManyRows && left.columns >= 4 * kLanes) {
    rows_of_panel<Weights, AllFloats, 4, 1>(left, from, out, out_stride);
    advance(4 * kLanes);
  }
  while (left.columns >= 2 * kLanes) {
    rows_of_panel<Weights, AllFloats, 2, kManyRows>(left, from, out, out_stride);
    advance(2 * kLanes);
  }
  if (left.columns > 0) narrow_panels<Weights, kLanes>(left, from, out, out_stride);
}

// Transposes a square of 128-bit rows: every stage interleaves row i with row i + half.
template <class T>
HWY_INLINE void transpose_square(const T* from, std::size_t from_stride, T* to,
                                 std::size_t to_stride) {
  const hn::FixedTag<T, 16 / sizeof(T)> d;
  constexpr std::size_t kSide = 16 / sizeof(T);
  hn::Vec<decltype(d)> rows[kSide];
  HWY_UNROLL(8)
  for (std::size_t i = 0; i < kSide; ++i) rows[i] = hn::LoadU(d, from + i * from_stride);
  HWY_UNROLL(3)
  for (std::size_t stage = 1; stage < kSide; stage *= 2) {
    hn::Vec<decltype(d)> mixed[kSide];
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

// to[k][c] = from[c][k] for k < n, c < columns; bits of any kind.
template <class T>
void transpose(const T* from, std::size_t from_stride, std::size_t columns, std::size_t n, T* to,
               std::size_t to_stride) {
  constexpr std::size_t kSide = 16 / sizeof(T);
  const std::size_t square_columns = columns - columns % kSide;
  const std::size_t square_n = n - n % kSide;
  for (std::size_t c = 0; c < square_columns; c += kSide) {
    for (std::size_t k = 0; k < square_n; k += kSide) {
      transpose_square(from + c * from_stride + k, from_stride, to + k * to_stride + c, to_stride);
    }
  }
  const auto copy = [&](std::size_t c, std::size_t first_k) {
    for (std::size_t k = first_k; k < n; ++k) to[k * to_stride + c] = from[c * from_stride + k];
  };
  for (std::size_t c = 0; c < square_columns; ++c) copy(c, square_n);
  for (std::size_t c = square_columns; c < columns; ++c) copy(c, 0);
}

// Columns transposed at a time: a cache line of bf16 twice over, four vectors of f32.
constexpr std::size_t kPanelColumns = 64;
struct PanelScratch {};

template <class Weights>
void product_transposed(const ProductShape& shape, const float* a, std::size_t a_stride,
                        const void* weights, std::size_t weight_stride, float* out,
                        std::size_t out_stride) {
  using Bits = hwy::MakeUnsigned<typename Weights::Element>;
  const auto* bits = static_cast<const Bits*>(weights);
  for (std::size_t c = 0; c < shape.columns; c += kPanelColumns) {
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
  switch (target) {
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
