#include "plena/observe/memory_spec.h"

#include <gtest/gtest.h>

namespace plena {
namespace {

TEST(MemorySpec, NamesMemoryAndFile) {
  const auto spec = parse_memory_spec("vram=out/v.bin");

  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->memory, MemoryKind::Vram);
  EXPECT_EQ(spec->file, "out/v.bin");
  EXPECT_EQ(spec->first, 0U);
  EXPECT_FALSE(spec->count);
  EXPECT_FALSE(spec->is_npy());
}

TEST(MemorySpec, TakesDecimalAndHexadecimalAddressAndCount) {
  const auto spec = parse_memory_spec("hbm=h.npy@0x1_000:12");
  EXPECT_FALSE(spec) << "digits are not grouped";

  const auto hex = parse_memory_spec("hbm=h.npy@0x1000:12");
  ASSERT_TRUE(hex);
  EXPECT_EQ(hex->first, 4096U);
  EXPECT_EQ(hex->count, 12U);
  EXPECT_TRUE(hex->is_npy());

  const auto decimal = parse_memory_spec("int=i@7:0X10");
  ASSERT_TRUE(decimal);
  EXPECT_EQ(decimal->first, 7U);
  EXPECT_EQ(decimal->count, 16U);
}

TEST(MemorySpec, AnAtSignWithoutANumberBelongsToTheName) {
  EXPECT_EQ(parse_memory_spec("fp=me@home.bin")->file, "me@home.bin");
  EXPECT_EQ(parse_memory_spec("fp=run@7/fp.bin")->file, "run@7/fp.bin");
  EXPECT_EQ(parse_memory_spec("fp=run@7/fp.bin@8")->first, 8U);
  EXPECT_EQ(parse_memory_spec("fp=a=b.bin")->file, "a=b.bin");
}

TEST(MemorySpec, RefusesWhatIsNotOne) {
  for (const char* text :
       {"", "vram", "vram=", "vrom=f", "vram=f@", "vram=f@1x", "vram=f@1:", "vram=f@1:x",
        "vram=f@:3", "vram=@5", "=f", "vram=f@18446744073709551616", "vram=f@0x", "vram=f@1:2:3"}) {
    const auto spec = parse_memory_spec(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code, ErrorCode::Usage) << text;
    EXPECT_FALSE(spec.error().hint.empty()) << text;
  }
}

TEST(MemorySpec, ASourceTakesNoCount) {
  EXPECT_TRUE(parse_memory_source("vram=f@64"));
  EXPECT_FALSE(parse_memory_source("vram=f@64:2"));
}

}  // namespace
}  // namespace plena
