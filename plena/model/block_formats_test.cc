// Blocks of GGUF types against the values the gguf Python package decodes.
#include "plena/model/block_formats.h"

#include <cmath>
#include <cstring>
#include <sstream>

#include <gmock/gmock.h>

#include "plena/base/files.h"

namespace plena {
namespace {

Bytes from_hex(const std::string& hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

StoredType type_named(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(StoredType::Normal); ++i) {
    if (name_of(StoredType(i)) == name) return StoredType(i);
  }
  ADD_FAILURE() << "no type " << name;
  return StoredType::F32;
}

TEST(BlockFormats, DecodeAsTheGgufPackageDoes) {
  std::istringstream lines(
      read_text(std::string(PLENA_SOURCE_DIR) + "/plena/model/testdata/gguf_blocks.tsv").value());
  std::string line;
  int types = 0;
  while (std::getline(lines, line)) {
    if (line.starts_with('#')) continue;
    std::istringstream columns(line);
    std::string name;
    std::string block_hex;
    std::string values_hex;
    columns >> name >> block_hex >> values_hex;
    const StoredType type = type_named(name);
    const Bytes block = from_hex(block_hex);
    ASSERT_EQ(block.size(), block_bytes(type)) << name;
    const Bytes value_bytes = from_hex(values_hex);
    std::vector<float> expected(block_elements(type));
    ASSERT_EQ(value_bytes.size(), expected.size() * sizeof(float)) << name;
    std::memcpy(expected.data(), value_bytes.data(), value_bytes.size());

    EXPECT_EQ(Tensor::stored(type, block, 1, expected.size()).values(), expected) << name;
    ++types;
  }
  EXPECT_EQ(types, 11);
}

TEST(BlockFormats, AreReadFromTheMiddleOfABlock) {
  Bytes blocks(2 * 34);
  blocks[1] = 0x3C;  // scales of 1 and 2
  blocks[34 + 1] = 0x40;
  for (std::uint8_t i = 0; i < 32; ++i) blocks[2 + i] = blocks[36 + i] = i;
  std::vector<float> out(4);
  Tensor::stored(StoredType::Q8_0, blocks, 1, 64).read(0, 30, out);
  EXPECT_THAT(out, ::testing::ElementsAre(30, 31, 0, 2));
}

TEST(BlockFormats, KnowHalvesWithoutAFiniteValue) {
  EXPECT_EQ(half_to_float(0xFC00), -INFINITY);
  EXPECT_TRUE(std::isnan(half_to_float(0x7E00)));
  EXPECT_EQ(half_to_float(0x03FF), 1023 * 0x1p-24F);
}

}  // namespace
}  // namespace plena
