// Kernels of the numerics room: multiply-adds and elements a second, one thread, operands in L1.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "plena/numerics/float_format.h"
#include "plena/numerics/hbm_codec.h"
#include "plena/numerics/matrix_kernels.h"
#include "plena/numerics/vector_kernels.h"

namespace plena {
namespace {

constexpr std::size_t kMlen = 64;

// Ordinary values in the machine's storage of a format, aligned as an SRAM is.
class Tile {
 public:
  Tile(ElementType format, std::size_t n) : lines_(n * storage_bytes(format) / sizeof(Line) + 1) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 1);
    std::vector<float> values(n);
    for (float& x : values) x = normal(random);
    portable_vector_kernels(format).from_f32(values.data(), bytes(), n);
  }
  void* bytes() { return lines_.data(); }
  template <class T>
  T* as() {
    return static_cast<T*>(bytes());
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
};

using Product = decltype(MatrixKernels::product);

void run_product(benchmark::State& state, ElementType format, SimdTarget target,
                 Product MatrixKernels::* member, ProductShape shape, std::size_t tiles) {
  Tile a(kFp32, shape.rows * shape.n);
  Tile weights(format, tiles * kMlen * kMlen);
  Tile out(kFp32, shape.rows * kMlen);
  const Product product = matrix_kernels(format, target).*member;
  const std::size_t tile_bytes = kMlen * kMlen * storage_bytes(format);
  std::size_t tile = 0;
  for (auto _ : state) {
    product(shape, a.as<float>(), shape.n, weights.as<std::byte>() + tile * tile_bytes, kMlen,
            out.as<float>(), kMlen);
    tile = tile + 1 < tiles ? tile + 1 : 0;
    benchmark::ClobberMemory();
  }
  const double fmas = static_cast<double>(shape.rows * shape.columns * shape.n);
  state.counters["FMA/s"] = benchmark::Counter(fmas * static_cast<double>(state.iterations()),
                                               benchmark::Counter::kIsRate);
}

void run_lanes(benchmark::State& state, ElementType format, SimdTarget target,
               void (*call)(const VectorKernels&, const void*, const void*, void*)) {
  Tile a(format, kMlen), b(format, kMlen), out(format, kMlen);
  const VectorKernels& kernels = vector_kernels(format, target);
  for (auto _ : state) {
    call(kernels, a.bytes(), b.bytes(), out.bytes());
    benchmark::ClobberMemory();
  }
}

struct NamedFormat {
  const char* name;
  ElementType format;
};
constexpr NamedFormat kFormats[] = {{"bf16", kBf16}, {"fp32", kFp32}};

struct NamedShape {
  const char* name;
  Product MatrixKernels::* member;
  ProductShape shape;
  std::size_t tiles =
      1;  // of weights, one after the other; 64 of bf16 fill a quarter of a 2 MiB L2
};
constexpr NamedShape kShapes[] = {
    {"M_MV", &MatrixKernels::product, {1, kMlen, kMlen, 4}},
    {"M_MV_from_L2", &MatrixKernels::product, {1, kMlen, kMlen, 4}, 64},
    {"M_TMV", &MatrixKernels::product_transposed, {1, kMlen, kMlen, 4}},
    {"M_TMV_from_L2", &MatrixKernels::product_transposed, {1, kMlen, kMlen, 4}, 64},
    {"M_MM", &MatrixKernels::product, {4, 4, kMlen, 4}},
    {"M_MM_16_columns_blocks", &MatrixKernels::product, {4, kMlen, kMlen, 4}},
    {"M_TMM", &MatrixKernels::product_transposed, {4, 4, kMlen, 4}},
    {"M_TMM_16_columns_blocks", &MatrixKernels::product_transposed, {4, kMlen, kMlen, 4}},
    {"M_MM_blen_16", &MatrixKernels::product, {16, 16, kMlen, 16}},
    {"M_MM_blen_16_4_columns_blocks", &MatrixKernels::product, {16, kMlen, kMlen, 16}},
    {"M_BMM_head", &MatrixKernels::product, {kMlen, kMlen, 16, 4}},
    {"M_BTMM_head", &MatrixKernels::product_transposed, {kMlen, kMlen, 16, 4}},
};

struct NamedLanes {
  const char* name;
  void (*call)(const VectorKernels&, const void*, const void*, void*);
};
constexpr NamedLanes kLaneOperations[] = {
    {"add", [](const VectorKernels& k, const void* a, const void* b,
               void* out) { k.add(a, b, out, kMlen); }},
    {"multiply", [](const VectorKernels& k, const void* a, const void* b,
                    void* out) { k.multiply(a, b, out, kMlen); }},
    {"add_scalar", [](const VectorKernels& k, const void* a, const void*,
                      void* out) { k.add_scalar(a, 0.5F, out, kMlen); }},
    {"max_scalar", [](const VectorKernels& k, const void* a, const void*,
                      void* out) { k.max_scalar(a, 0.5F, out, kMlen); }},
    {"exp",
     [](const VectorKernels& k, const void* a, const void*, void* out) { k.exp(a, out, kMlen); }},
    {"reciprocal", [](const VectorKernels& k, const void* a, const void*,
                      void* out) { k.reciprocal(a, out, kMlen); }},
    {"sum", [](const VectorKernels& k, const void* a, const void*,
               void* out) { *static_cast<float*>(out) = k.sum(a, kMlen); }},
    {"maximum", [](const VectorKernels& k, const void* a, const void*,
                   void* out) { *static_cast<float*>(out) = k.maximum(a, kMlen); }},
    {"to_f32",
     [](const VectorKernels& k, const void* a, const void*, void*) {
       alignas(64) float values[kMlen];
       k.to_f32(a, values, kMlen);
       benchmark::DoNotOptimize(values);
     }},
};

void run_decode(benchmark::State& state, DataType type, ElementType sram, SimdTarget target) {
  constexpr std::size_t kCount = kMlen * kMlen;
  const HbmCodec codec(type, sram, target);
  Tile row(sram, kCount);
  std::vector<std::uint8_t> elements(kCount * type.width() / 8), scales(kCount / 8, 127);
  codec.encode(row.bytes(), kCount, elements.data(), scales.data());
  for (auto _ : state) {
    codec.decode(elements.data(), scales.data(), 0, kCount, row.bytes());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kCount));
}

void run_encode(benchmark::State& state, DataType type, ElementType sram, SimdTarget target) {
  constexpr std::size_t kCount = kMlen * kMlen;
  const HbmCodec codec(type, sram, target);
  Tile row(sram, kCount);
  std::vector<std::uint8_t> elements(kCount * type.width() / 8), scales(kCount / 8);
  for (auto _ : state) {
    codec.encode(row.bytes(), kCount, elements.data(), scales.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kCount));
}

struct NamedType {
  const char* name;
  DataType type;
};
constexpr NamedType kHbmTypes[] = {
    {"mxfp8_e4m3", DataType::mx(kE4M3, 8)},
    {"mxfp8_e5m2", DataType::mx(kE5M2, 8)},
    {"mxfp8_e4m3_block32", DataType::mx(kE4M3, 32)},
    {"mxfp6_e3m2", DataType::mx(kE3M2, 8)},
    {"mxfp6_e2m3", DataType::mx(kE2M3, 8)},
    {"mxfp4_e2m1", DataType::mx(kE2M1, 8)},
    {"mxint8", DataType::mx(ElementType::integer(8), 8)},
    {"mxint4", DataType::mx(ElementType::integer(4), 8)},
    {"bf16", DataType::plain(kBf16)},
    {"fp16", DataType::plain(kFp16)},
    {"fp32", DataType::plain(kFp32)},
};

// `numerics/<target>/<what>/<format>` for every target of this CPU.
void register_target(SimdTarget target) {
  const std::string prefix = "numerics/" + std::string(simd_target_name(target)) + "/";
  for (const NamedFormat& format : kFormats) {
    const std::string suffix = std::string("/") + format.name;
    for (const NamedShape& shape : kShapes) {
      benchmark::RegisterBenchmark((prefix + shape.name + suffix).c_str(), run_product,
                                   format.format, target, shape.member, shape.shape, shape.tiles);
    }
    for (const NamedLanes& lanes : kLaneOperations) {
      benchmark::RegisterBenchmark((prefix + lanes.name + suffix).c_str(), run_lanes, format.format,
                                   target, lanes.call);
    }
    for (const NamedType& type : kHbmTypes) {
      const std::string name = std::string(type.name) + suffix;
      benchmark::RegisterBenchmark((prefix + "decode_" + name).c_str(), run_decode, type.type,
                                   format.format, target);
      benchmark::RegisterBenchmark((prefix + "encode_" + name).c_str(), run_encode, type.type,
                                   format.format, target);
    }
  }
}

const bool kRegistered = [] {
  for (const SimdTarget target : supported_simd_targets()) register_target(target);
  return true;
}();

}  // namespace
}  // namespace plena
