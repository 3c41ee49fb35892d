// Products of weights as they lie in HBM against decoding them and taking the portable dot
// products: the same bits, on every SIMD target, for what the kernels take and for what they leave.
#include "plena/numerics/streamed_product.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plena/numerics/float_format.h"
#include "plena/numerics/hbm_codec.h"
#include "plena/numerics/matrix_kernels.h"
#include "plena/numerics/scratch.h"

namespace plena {
namespace {

constexpr std::size_t kBlen = 4;
constexpr std::size_t kRows = 48;

// Rows of weights with room between them, and a vector for them.
struct Weights {
  Weights(DataType hbm, std::size_t width) : type(hbm), n(width) {
    row_bytes = n * type.width() / 8 + 8;
    row_scales = type.is_mx() ? n / type.block + 1 : 0;
    elements.resize(kRows * row_bytes);
    scales.resize(kRows * row_scales + 1);
  }

  // Common values: scales around 2^-10, no NaN.
  void fill(std::mt19937& random) {
    for (auto& byte : elements) {
      byte = static_cast<std::uint8_t>(random());
      if (type.is_mx() && (byte & 0x7F) == 0x7F) byte = 0x3A;
    }
    for (auto& byte : scales) byte = static_cast<std::uint8_t>(110 + random() % 16);
    if (type.is_mx()) return;
    for (std::size_t i = 0; i < elements.size() / 2; ++i) {
      const float value = static_cast<float>(random() % 2001) / 1000 - 1;
      const std::uint16_t bits = f32_to_bf16(value);
      std::memcpy(&elements[2 * i], &bits, sizeof bits);
    }
  }

  [[nodiscard]] StreamedRows rows() const {
    return {elements.data(), scales.data(), row_bytes, row_scales};
  }

  // The portable kernels on decoded rows.
  [[nodiscard]] std::vector<float> reference(const std::vector<float>& a, ElementType sram,
                                             std::vector<float> out) const {
    const HbmCodec codec(type, sram, SimdTarget::Portable);
    const std::size_t size = storage_bytes(sram);
    std::vector<std::uint32_t> decoded(kRows * n);
    auto* bytes = reinterpret_cast<std::uint8_t*>(decoded.data());
    for (std::size_t r = 0; r < kRows; ++r) {
      codec.decode(&elements[r * row_bytes], scales.data() + r * row_scales, 0, n,
                   bytes + r * n * size);
    }
    portable_matrix_kernels(sram).product_transposed({1, kRows, n, kBlen}, a.data(), n, bytes, n,
                                                     out.data(), kRows);
    return out;
  }

  DataType type;
  std::size_t n;
  std::size_t row_bytes, row_scales;
  std::vector<std::uint8_t> elements, scales;
};

std::vector<float> activations(std::mt19937& random, std::size_t n) {
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> a(n);
  for (float& value : a) value = bf16_to_f32(f32_to_bf16(normal(random)));
  return a;
}

// Rows done, all of which agree with the reference; rows behind them are as they were.
std::size_t rows_that_agree(const Weights& weights, const std::vector<float>& a, ElementType sram,
                            SimdTarget target) {
  const std::vector<float> start(kRows, 0.75F);
  std::vector<float> out = start;
  const StreamedProduct product = streamed_product(weights.type, sram, weights.n, kBlen, target);
  std::vector<CacheLine> prepared(StreamedProduct::prepared_bytes(weights.n) / sizeof(CacheLine));
  product.prepare(a.data(), weights.n, prepared.data());
  const std::size_t done =
      product.product(prepared.data(), weights.n, weights.rows(), kRows, out.data());
  const auto expected = weights.reference(a, sram, start);
  for (std::size_t r = 0; r < kRows; ++r) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(out[r]),
              std::bit_cast<std::uint32_t>(r < done ? expected[r] : start[r]))
        << "row " << r << " of " << done << ", " << weights.type.name() << ", " << weights.n;
  }
  return done;
}

std::vector<SimdTarget> targets_with(DataType type) {
  std::vector<SimdTarget> targets;
  for (const SimdTarget target : supported_simd_targets()) {
    if (streamed_product(type, kBf16, 64, kBlen, target)) targets.push_back(target);
  }
  return targets;
}

class StreamedProductOf : public testing::TestWithParam<const char*> {
 protected:
  DataType type = *DataType::parse(GetParam());
};

TEST_P(StreamedProductOf, CommonWeightsComeOutAsTheirDecodedRowsDo) {
  std::mt19937 random(1);
  for (const std::size_t n : {std::size_t{64}, std::size_t{192}, std::size_t{448}}) {
    Weights weights(type, n);
    weights.fill(random);
    const auto a = activations(random, n);
    for (const SimdTarget target : targets_with(type)) {
      EXPECT_EQ(rows_that_agree(weights, a, kBf16, target), kRows);
      EXPECT_EQ(rows_that_agree(weights, a, kFp32, target), kRows);
    }
  }
}

TEST_P(StreamedProductOf, AnyBytesAndActivationsAreRightOrLeft) {
  std::mt19937 random(2);
  for (unsigned turn = 0; turn < 60; ++turn) {
    Weights weights(type, 64);
    weights.fill(random);
    auto a = activations(random, weights.n);
    for (unsigned i = 0; i < turn % 4; ++i) {
      weights.elements[random() % weights.elements.size()] = static_cast<std::uint8_t>(random());
      weights.scales[random() % weights.scales.size()] = static_cast<std::uint8_t>(random());
      a[random() % a.size()] = bf16_to_f32(static_cast<std::uint16_t>(random()));
    }
    for (const SimdTarget target : targets_with(type)) {
      rows_that_agree(weights, a, kBf16, target);
      rows_that_agree(weights, a, kFp32, target);
    }
  }
}

TEST_P(StreamedProductOf, ActivationsOfF32AreTakenWhole) {
  std::mt19937 random(3);
  Weights weights(type, 64);
  weights.fill(random);
  std::vector<float> a(64);
  for (float& value : a) value = static_cast<float>(random()) * 0x1p-31F - 1;
  for (const SimdTarget target : targets_with(type)) {
    EXPECT_EQ(rows_that_agree(weights, a, kFp32, target), kRows);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, StreamedProductOf,
                         testing::Values("bf16", "mxfp8_e4m3", "mxfp8_e4m3:block16",
                                         "mxfp8_e4m3:block32"),
                         [](const auto& test) { return "Type" + std::to_string(test.index); });

class E4m3 : public testing::Test {
 protected:
  E4m3() : weights(*DataType::parse("mxfp8_e4m3"), 64), a(activations(random, 64)) {
    weights.fill(random);
  }
  void expect_done(std::size_t most) {
    for (const SimdTarget target : targets_with(weights.type)) {
      const std::size_t done = rows_that_agree(weights, a, kBf16, target);
      EXPECT_LE(done, most);
      EXPECT_GE(done + 16, most);
    }
  }

  std::mt19937 random{4};
  Weights weights;
  std::vector<float> a;
};

TEST_F(E4m3, StopsBeforeTheRowsOfANan) {
  weights.elements[20 * weights.row_bytes + 5] = 0xFF;
  expect_done(20);
}

TEST_F(E4m3, StopsBeforeTheRowsOfANanScale) {
  weights.scales[33 * weights.row_scales] = 0xFF;
  expect_done(33);
}

TEST_F(E4m3, BlocksOfZerosMayHaveScaleZero) {
  for (std::size_t block : {0, 7}) {
    std::memset(&weights.elements[9 * weights.row_bytes + block * 8], 0, 8);
    weights.scales[9 * weights.row_scales + block] = 0;
  }
  expect_done(kRows);
}

TEST_F(E4m3, ActivationsOfZeroGiveZeros) {
  a.assign(a.size(), 0.0F);
  expect_done(kRows);
}

TEST_F(E4m3, ActivationsThatAreInfiniteAreLeft) {
  a[3] = INFINITY;
  for (const SimdTarget target : targets_with(weights.type)) {
    EXPECT_EQ(rows_that_agree(weights, a, kBf16, target), 0U);
  }
}

TEST_F(E4m3, ActivationsFarApartAreRight) {
  for (const float small : {0x1p-30F, 0x1p-90F, 0x1p-109F, 0x1p-120F, 0x1p-126F, 0x1p-130F}) {
    a[7] = small;
    for (const float large : {1.0F, 0x1p20F, 0x1p60F, 0x1p100F, 0x1p120F, 0x1p127F}) {
      a[40] = large;
      for (const SimdTarget target : targets_with(weights.type)) {
        rows_that_agree(weights, a, kBf16, target);
      }
    }
  }
}

TEST(StreamedProduct, ThereIsNoneForOtherShapes) {
  const DataType mxfp8 = *DataType::parse("mxfp8_e4m3");
  for (const SimdTarget target : supported_simd_targets()) {
    EXPECT_FALSE(streamed_product(mxfp8, kBf16, 60, 4, target));
    EXPECT_FALSE(streamed_product(mxfp8, kBf16, 64, 8, target));
    EXPECT_FALSE(streamed_product(mxfp8, kFp16, 64, 4, target));
    EXPECT_FALSE(streamed_product(*DataType::parse("mxint8"), kBf16, 64, 4, target));
  }
}

}  // namespace
}  // namespace plena
