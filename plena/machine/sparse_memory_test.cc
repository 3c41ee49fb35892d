#include "plena/machine/sparse_memory.h"

#include <gtest/gtest.h>

namespace plena {
namespace {

constexpr std::size_t kChunk = 4096;

SparseMemory reserve(std::uint64_t bytes) {
  return std::move(*SparseMemory::reserve(bytes, kChunk));
}

TEST(SparseMemory, ReadsZeroUntilWritten) {
  const SparseMemory memory = reserve(std::uint64_t{128} << 30);

  EXPECT_EQ(memory.data()[(std::uint64_t{128} << 30) - 1], 0);
  EXPECT_EQ(memory.used_bytes(), 0U);
}

TEST(SparseMemory, MarksEveryChunkAWriteCrosses) {
  SparseMemory memory = reserve(4 * kChunk);

  memory.writable(kChunk - 1, 2);

  EXPECT_TRUE(memory.touched(0));
  EXPECT_TRUE(memory.touched(1));
  EXPECT_FALSE(memory.touched(2));
}

TEST(SparseMemory, ComparesBytesNotMarks) {
  SparseMemory written_back_to_zero = reserve(3 * kChunk);
  SparseMemory untouched = reserve(3 * kChunk);

  *written_back_to_zero.writable(kChunk, 1) = 0;
  EXPECT_EQ(written_back_to_zero, untouched);

  *written_back_to_zero.writable(kChunk, 1) = 7;
  EXPECT_FALSE(written_back_to_zero == untouched);
}

TEST(SparseMemory, CloneHoldsTheSameBytes) {
  SparseMemory memory = reserve(3 * kChunk + 5);
  *memory.writable(3 * kChunk + 4, 1) = 9;

  const SparseMemory copy = std::move(*memory.clone());

  EXPECT_EQ(copy, memory);
  EXPECT_EQ(copy.used_bytes(), 3 * kChunk + 5);
}

}  // namespace
}  // namespace plena
