// HBM elements: the shared MX vectors, packing at any bit offset, plain types and the corners of
// semantics 5 that the vectors leave out.
#include "plena/numerics/hbm_codec.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/base/shared_data.h"
#include "plena/numerics/float_format.h"

namespace plena {
namespace {

std::vector<std::uint32_t> hex_list(const nlohmann::json& text) {
  std::istringstream words(text.get<std::string>());
  std::vector<std::uint32_t> out;
  for (std::string word; words >> word;) {
    out.push_back(static_cast<std::uint32_t>(std::stoul(word, nullptr, 16)));
  }
  return out;
}

// Packs by writing bit after bit, as semantics 5.4 says.
Bytes packed(const std::vector<std::uint32_t>& codes, std::uint32_t width, std::size_t offset = 0) {
  Bytes bytes((offset + codes.size() * width + 7) / 8);
  for (std::size_t bit = 0; bit < codes.size() * width; ++bit) {
    const std::uint32_t value = codes[bit / width] >> (bit % width) & 1;
    const std::size_t at = offset + bit;
    bytes[at / 8] = static_cast<std::uint8_t>(bytes[at / 8] | value << (at % 8));
  }
  return bytes;
}

std::vector<std::uint32_t> decoded(const HbmCodec& codec, ElementType sram, const Bytes& elements,
                                   const Bytes& scales, std::uint64_t first, std::size_t n) {
  std::vector<std::uint16_t> narrow(n);
  std::vector<std::uint32_t> wide(n);
  if (storage_bytes(sram) == 4) {
    codec.decode(elements.data(), scales.data(), first, n, wide.data());
    return wide;
  }
  codec.decode(elements.data(), scales.data(), first, n, narrow.data());
  return {narrow.begin(), narrow.end()};
}

struct Encoded {
  Bytes elements;
  Bytes scales;
};

Encoded encoded(DataType type, ElementType sram, const std::vector<std::uint32_t>& row,
                SimdTarget simd = simd_target()) {
  const HbmCodec codec(type, sram, simd);
  Encoded out{Bytes(row.size() * type.width() / 8, 0xAA),
              Bytes(type.is_mx() ? row.size() / type.block : 0, 0xAA)};
  const std::vector<std::uint16_t> narrow(row.begin(), row.end());
  const void* bits = storage_bytes(sram) == 4 ? static_cast<const void*>(row.data())
                                              : static_cast<const void*>(narrow.data());
  codec.encode(bits, row.size(), out.elements.data(), out.scales.data());
  return out;
}

struct NamedElement {
  const char* name;
  ElementType type;
};

class MxVectors : public ::testing::TestWithParam<NamedElement> {
 protected:
  static nlohmann::json vectors() {
    const auto text = read_text(shared_data() + "/vectors/mx_" + GetParam().name + ".json");
    return text ? nlohmann::json::parse(*text) : nlohmann::json{};
  }
  // All codes of the element as blocks of 8, padded with code 0.
  static std::vector<std::uint32_t> all_codes() {
    std::vector<std::uint32_t> codes(1U << GetParam().type.width());
    for (std::uint32_t code = 0; code < codes.size(); ++code) codes[code] = code;
    return codes;
  }
};

TEST_P(MxVectors, ElementValuesAndEmaxAreThoseOfTheFormat) {
  PLENA_NEEDS_SHARED();
  const nlohmann::json file = vectors();
  EXPECT_EQ(element_emax(GetParam().type), file.at("emax").get<int>());
  const auto expected = hex_list(file.at("elements"));
  ASSERT_EQ(expected.size(), 1U << GetParam().type.width());
  for (std::uint32_t code = 0; code < expected.size(); ++code) {
    const double value = element_value(GetParam().type, code, true);
    ASSERT_EQ(encode_fp(kFp32, value), expected[code]) << code;
  }
}

TEST_P(MxVectors, DecodesEveryCodeWithEveryListedScale) {
  PLENA_NEEDS_SHARED();
  const ElementType element = GetParam().type;
  const nlohmann::json file = vectors();
  for (const auto& entry : file.at("decode")) {
    const Bytes elements = packed(all_codes(), element.width());
    const Bytes scales(all_codes().size() / 8, entry.at("scale").get<std::uint8_t>());
    for (const auto& [key, sram] : {std::pair{"f32", kFp32}, std::pair{"bf16", kBf16}}) {
      for (const SimdTarget simd : supported_simd_targets()) {
        const HbmCodec codec(DataType::mx(element, 8), sram, simd);
        ASSERT_EQ(decoded(codec, sram, elements, scales, 0, all_codes().size()),
                  hex_list(entry.at(key)))
            << "scale " << entry.at("scale") << " to " << key << ", " << simd_target_name(simd);
      }
    }
  }
}

TEST_P(MxVectors, QuantisesEveryListedBlock) {
  PLENA_NEEDS_SHARED();
  const ElementType element = GetParam().type;
  const nlohmann::json file = vectors();
  for (const auto& entry : file.at("quantise")) {
    const auto row = hex_list(entry.at("in"));
    const DataType type = DataType::mx(element, static_cast<std::uint32_t>(row.size()));
    const Bytes elements = packed(hex_list(entry.at("codes")), element.width());
    const Bytes scales{entry.at("scale").get<std::uint8_t>()};
    std::vector<std::uint32_t> upper;  // the same values as bf16
    for (const std::uint32_t bits : row) upper.push_back(bits >> 16);
    for (const SimdTarget simd : supported_simd_targets()) {
      SCOPED_TRACE(entry.at("name").dump() + ", " + std::string(simd_target_name(simd)));
      const Encoded from_f32 = encoded(type, kFp32, row, simd);
      ASSERT_EQ(from_f32.scales, scales);
      ASSERT_EQ(from_f32.elements, elements);
      if (entry.contains("f32")) continue;
      const Encoded from_bf16 = encoded(type, kBf16, upper, simd);
      ASSERT_EQ(from_bf16.scales, scales);
      ASSERT_EQ(from_bf16.elements, elements);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, MxVectors,
                         ::testing::Values(NamedElement{"E4M3", kE4M3}, NamedElement{"E5M2", kE5M2},
                                           NamedElement{"E3M2", kE3M2}, NamedElement{"E2M3", kE2M3},
                                           NamedElement{"E2M1", kE2M1},
                                           NamedElement{"INT8", ElementType::integer(8)},
                                           NamedElement{"INT4", ElementType::integer(4)}),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(HbmCodec, LoadsFromAnyElementOfATensorWhateverItsWidth) {
  const ElementType elements[] = {kE2M1,
                                  kE3M2,
                                  ElementType::integer(5),
                                  kE4M3,
                                  ElementType::fp(5, 6),
                                  ElementType::integer(16)};
  constexpr std::size_t kCount = 96;
  constexpr std::uint32_t kBlock = 6;
  for (const ElementType element : elements) {
    std::vector<std::uint32_t> codes(kCount);
    for (std::uint32_t e = 0; e < kCount; ++e) {
      codes[e] = e * 2654435761U >> 7 & ((1U << element.width()) - 1);
    }
    Bytes scales(kCount / kBlock);
    for (std::size_t b = 0; b < scales.size(); ++b) scales[b] = static_cast<std::uint8_t>(120 + b);
    const Bytes all = packed(codes, element.width());
    const HbmCodec codec(DataType::mx(element, kBlock), kFp32);
    for (std::size_t first = 0; first < 40; ++first) {
      const std::size_t n = kCount - first - first % 7;
      const std::size_t last_byte = ((first + n) * element.width() + 7) / 8;
      // Exactly the bytes that hold the elements, so that a sanitizer sees any other access.
      const Bytes window(all.begin() + first * element.width() / 8, all.begin() + last_byte);
      const Bytes window_scales(scales.begin() + first / kBlock,
                                scales.begin() + (first + n - 1) / kBlock + 1);
      const auto values = decoded(codec, kFp32, window, window_scales, first, n);
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t e = first + i;
        const double exact =
            element_value(element, codes[e], true) * std::exp2(scales[e / kBlock] - 127);
        ASSERT_EQ(values[i], encode_fp(kFp32, exact)) << "width " << element.width() << " at " << e;
      }
    }
  }
}

TEST(HbmCodec, PositionsBeyond32BitsKeepTheirBlockAndBitOffset) {
  const HbmCodec codec(DataType::mx(kE2M1, 8), kBf16);
  const std::uint64_t first = (std::uint64_t{1} << 62) + 7;  // last of its block, upper nibble
  EXPECT_EQ(decoded(codec, kBf16, {0x20, 0x04}, {128, 127}, first, 2),
            (std::vector<std::uint32_t>{0x4000, 0x4000}));  // 1 * 2, 2 * 1
}

TEST(HbmCodec, RoundsTheExactProductOnceIntoTheSramType) {
  // E4M3 1.125 (0x39) times 2^-127 is an f32 subnormal and a tie of bf16's last bit or not.
  const HbmCodec to_bf16(DataType::mx(kE4M3, 8), kBf16);
  EXPECT_EQ(decoded(to_bf16, kBf16, {0x39, 0x38, 0xB8}, {0}, 0, 3),
            (std::vector<std::uint32_t>{0x0048, 0x0040, 0x8040}));
  // 2^-9 * 2^-127 = 2^-136: below half of bf16's smallest subnormal 2^-133; in f32 it is exact.
  EXPECT_EQ(decoded(to_bf16, kBf16, {0x01, 0x81}, {0}, 0, 2),
            (std::vector<std::uint32_t>{0x0000, 0x8000}));
  const HbmCodec to_f32(DataType::mx(kE4M3, 8), kFp32);
  EXPECT_EQ(decoded(to_f32, kFp32, {0x01}, {0}, 0, 1), (std::vector<std::uint32_t>{0x00002000}));
  // 448 * 2^127 is beyond both; 1.75 * 2^127 is not.
  EXPECT_EQ(decoded(to_f32, kFp32, {0xFE, 0x3E}, {254}, 0, 2),
            (std::vector<std::uint32_t>{0xFF800000, 0x7F600000}));
  EXPECT_EQ(decoded(to_f32, kFp32, {0x38, 0x7F}, {255}, 0, 2),
            (std::vector<std::uint32_t>{0x7FC00000, 0x7FC00000}));
}

std::vector<std::uint32_t> f32_bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(HbmCodec, PlainIntegersAreWholeNumbersThatSaturate) {
  const auto row = f32_bits({0.5F, 1.5F, -2.5F, 127.4F, 300, -300, kInf, kNan});
  const Encoded out = encoded(DataType::plain(ElementType::integer(8)), kFp32, row);
  EXPECT_EQ(out.elements, (Bytes{0, 2, 0xFE, 127, 127, 0x80, 127, 0}));
  const HbmCodec codec(DataType::plain(ElementType::integer(8)), kFp32);
  EXPECT_EQ(decoded(codec, kFp32, {0x80, 0xFF, 5}, {}, 0, 3), f32_bits({-128, -1, 5}));
  const HbmCodec wide(DataType::plain(ElementType::integer(32)), kFp32);
  EXPECT_EQ(decoded(wide, kFp32, {0, 0, 0, 0x80, 0xFF, 0xFF, 0xFF, 0x7F}, {}, 0, 2),
            f32_bits({-0x1p31F, 0x1p31F}));
}

TEST(HbmCodec, PlainFormatsOverflowToWhatTheyHave) {
  const auto row = f32_bits({1000, -1000, kInf, -kInf, kNan, -0.0F, 448, 465});
  const auto plain = [&](ElementType element) {
    return encoded(DataType::plain(element), kFp32, row).elements;
  };
  EXPECT_EQ(plain(kE4M3), (Bytes{0x7E, 0xFE, 0x7E, 0xFE, 0x7F, 0x80, 0x7E, 0x7E}));
  EXPECT_EQ(plain(kE2M1), (Bytes{0xF7, 0xF7, 0x80, 0x77}));
  EXPECT_EQ(plain(ElementType::fp(4, 2)),  // IEEE-like: largest 224, 7 bits an element
            packed({0x3C, 0x7C, 0x3C, 0x7C, 0x3E, 0x40, 0x3C, 0x3C}, 7));
  EXPECT_EQ(plain(kFp32), packed({0x447A0000, 0xC47A0000, 0x7F800000, 0xFF800000, 0x7FC00000,
                                  0x80000000, 0x43E00000, 0x43E88000},
                                 32));
}

TEST(HbmCodec, PlainFp32PassesThroughExactlyButForNanPayloads) {
  const HbmCodec codec(DataType::plain(kFp32), kFp32);
  const std::vector<std::uint32_t> bits{0x00000001, 0x80000000, 0x7F7FFFFF, 0xFF800001, 0x3F800001};
  const std::vector<std::uint32_t> expected{0x00000001, 0x80000000, 0x7F7FFFFF, 0x7FC00000,
                                            0x3F800001};
  EXPECT_EQ(decoded(codec, kFp32, packed(bits, 32), {}, 0, bits.size()), expected);
}

TEST(HbmCodec, UnsignedElementsHoldNoNegativeValues) {
  const DataType type = DataType::mx(ElementType::fp(4, 4, false), 4);
  const Encoded out = encoded(type, kFp32, f32_bits({1, -1, 0.5F, -0.0F}));
  // Bias 7, largest exponent 7: 1 is scaled by 2^7.
  EXPECT_EQ(out.scales, (Bytes{120}));
  EXPECT_EQ(out.elements, (Bytes{0xE0, 0, 0xD0, 0}));
  const HbmCodec codec(type, kFp32);
  EXPECT_EQ(decoded(codec, kFp32, out.elements, out.scales, 0, 4), f32_bits({1, 0, 0.5F, 0}));
}

}  // namespace
}  // namespace plena
