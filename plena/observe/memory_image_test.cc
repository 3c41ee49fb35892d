// Bit patterns below are worked out by hand: bf16 1.0 = 0x3F80, -2.0 = 0xC000, 1.5 = 0x3FC0.
#include "plena/observe/memory_image.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "plena/observe/observe_fixture.h"

namespace plena {
namespace {

using testing::HasSubstr;

class MemoryImageTest : public ObserveTest {
 protected:
  Bytes read(MemoryKind memory, std::uint64_t first, std::uint64_t count) {
    return *machine_.read_elements(memory, first, count);
  }
  Status load(MemoryKind memory, const std::string& file, std::uint64_t first = 0) {
    return load_memory(machine_, {memory, file, first, std::nullopt});
  }
  Status dump(MemoryKind memory, const std::string& file, std::uint64_t first = 0,
              std::optional<std::uint64_t> count = std::nullopt) {
    return dump_memory(machine_, {memory, file, first, count});
  }
};

TEST_F(MemoryImageTest, LoadsRawElementsAtTheirAddress) {
  ASSERT_TRUE(load(MemoryKind::Vram, write_raw("v.bin", {0x80, 0x3F, 0x00, 0xC0}), 16));

  EXPECT_EQ(read(MemoryKind::Vram, 15, 4), (Bytes{0, 0, 0x80, 0x3F, 0x00, 0xC0, 0, 0}));
}

TEST_F(MemoryImageTest, UnderRsMemoriesAnFpImageIsBinary16) {
  Machine machine = std::move(*Machine::create(small_settings(), Dialect::plena_rs()));
  // 1.0, 2^-24 (the smallest subnormal) and 65504 in binary16; the last rounds up to 65536 in bf16.
  const auto file = write_raw("fp.bin", {0x00, 0x3C, 0x01, 0x00, 0xFF, 0x7B});

  ASSERT_TRUE(load_memory(machine, {.memory = MemoryKind::FpMem, .file = file, .first = 1}));

  EXPECT_EQ(*machine.read_elements(MemoryKind::FpMem, 1, 3),
            (Bytes{0x80, 0x3F, 0x80, 0x33, 0x80, 0x47}));
}

TEST_F(MemoryImageTest, RoundsArrayValuesOnceToTheMemorysFormat) {
  // 1 + 2^-8 lies half way between two bf16 values, a hair more lies above: rounding to f32 first
  // would lose that hair and round down to even.
  const double just_above_half = 1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40);
  const auto file = write_array<double>("v.npy", {3}, {1.0, -2.0, just_above_half});

  ASSERT_TRUE(load(MemoryKind::FpMem, file, 2));

  EXPECT_EQ(read(MemoryKind::FpMem, 2, 3), (Bytes{0x80, 0x3F, 0x00, 0xC0, 0x81, 0x3F}));
}

TEST_F(MemoryImageTest, KeepsNanAndInfinityOfArrays) {
  const auto file = write_array<float>(
      "v.npy", {2},
      {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()});
  ASSERT_TRUE(load(MemoryKind::FpMem, file));

  EXPECT_EQ(read(MemoryKind::FpMem, 0, 2), (Bytes{0xC0, 0x7F, 0x80, 0xFF}));
}

TEST_F(MemoryImageTest, LoadsIntegersAsTwosComplement) {
  ASSERT_TRUE(load(MemoryKind::IntMem, write_array<std::int64_t>("i.npy", {2}, {-1, 4294967295})));

  EXPECT_EQ(read(MemoryKind::IntMem, 0, 2), Bytes(8, 0xFF));
}

TEST_F(MemoryImageTest, RefusesIntegersThatDoNotFit) {
  const auto status =
      load(MemoryKind::IntMem, write_array<std::int64_t>("i.npy", {2}, {0, 1LL << 32}));

  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("4294967296 at index 1"));
  EXPECT_EQ(exit_status(status.error().code), 2);
}

TEST_F(MemoryImageTest, RefusesArraysOfTheWrongKind) {
  const auto floats = write_array<float>("f.npy", {1}, {1.0F});
  const auto words = write_array<std::uint16_t>("w.npy", {1}, {1});

  EXPECT_THAT(load(MemoryKind::IntMem, floats).error().message, HasSubstr("takes integers"));
  EXPECT_THAT(load(MemoryKind::Hbm, floats).error().message, HasSubstr("takes bytes"));
  EXPECT_THAT(load(MemoryKind::Hbm, words).error().message, HasSubstr("takes bytes"));
}

TEST_F(MemoryImageTest, RefusesWhatDoesNotFitAndChangesNothing) {
  const auto file = write_raw("v.bin", {1, 1, 1, 1});

  for (const std::uint64_t first : {std::uint64_t{63}, std::uint64_t{65}, ~std::uint64_t{0}}) {
    const auto status = load(MemoryKind::FpMem, file, first);
    ASSERT_FALSE(status) << first;
    EXPECT_THAT(status.error().message, HasSubstr("do not fit into FP_MEM, which has 64"));
  }
  EXPECT_EQ(read(MemoryKind::FpMem, 0, 64), Bytes(128, 0));
}

TEST_F(MemoryImageTest, RefusesHalfAnElement) {
  EXPECT_THAT(load(MemoryKind::Vram, write_raw("v.bin", {1, 2, 3})).error().message,
              HasSubstr("3 bytes are not whole elements"));
}

TEST_F(MemoryImageTest, RowsOfTheSramStartOnARow) {
  const auto rows = write_array<float>("rows.npy", {2, 16}, std::vector<float>(32, 1.0F));
  const auto flat = write_array<float>("flat.npy", {32}, std::vector<float>(32, 1.0F));

  EXPECT_TRUE(load(MemoryKind::Vram, rows, 32));
  EXPECT_THAT(load(MemoryKind::Vram, rows, 8).error().message, HasSubstr("inside a row"));
  EXPECT_TRUE(load(MemoryKind::Vram, flat, 8));
}

TEST_F(MemoryImageTest, DumpsRawWhatWasLoaded) {
  const Bytes bytes = {0x80, 0x3F, 0x00, 0xC0};
  ASSERT_TRUE(machine_.write_elements(MemoryKind::Vram, 30, bytes));

  ASSERT_TRUE(dump(MemoryKind::Vram, path("v.bin"), 30, 2));

  EXPECT_EQ(read_file(path("v.bin")), bytes);
}

TEST_F(MemoryImageTest, WithoutACountDumpsWholeRowsUpToTheLastThatIsNotZero) {
  ASSERT_TRUE(machine_.write_elements(MemoryKind::Vram, 18, Bytes{0xC0, 0x3F}));

  ASSERT_TRUE(dump(MemoryKind::Vram, path("v.npy")));

  const auto array = *read_npy(path("v.npy"));
  EXPECT_EQ(array.shape, (std::vector<std::uint64_t>{2, 16}));
  std::vector<float> expected(32, 0.0F);
  expected[18] = 1.5F;
  EXPECT_EQ(array.values<float>(), expected);
}

TEST_F(MemoryImageTest, WithoutACountDumpsTheSmallMemoriesWhole) {
  machine_.int_mem[1] = 7;

  ASSERT_TRUE(dump(MemoryKind::IntMem, path("i.npy")));

  std::vector<std::uint32_t> expected(32, 0);
  expected[1] = 7;
  EXPECT_EQ(read_npy(path("i.npy"))->values<std::uint32_t>(), expected);
}

TEST_F(MemoryImageTest, ADumpOfNothingIsEmpty) {
  ASSERT_TRUE(dump(MemoryKind::Hbm, path("h.bin")));
  ASSERT_TRUE(dump(MemoryKind::Hbm, path("late.bin"), 1U << 20));

  EXPECT_EQ(read_file(path("h.bin")), Bytes{});
  EXPECT_EQ(read_file(path("late.bin")), Bytes{});
}

TEST_F(MemoryImageTest, UntouchedMemoryBecomesAHole) {
  Settings settings = small_settings();
  settings.hbm_size = std::uint64_t{4} << 30;
  machine_ = std::move(*Machine::create(settings));
  const std::uint64_t last = settings.hbm_size - 1;
  ASSERT_TRUE(machine_.write_elements(MemoryKind::Hbm, last, Bytes{9}));

  ASSERT_TRUE(dump(MemoryKind::Hbm, path("h.bin")));

  struct stat status{};
  ASSERT_EQ(::stat(path("h.bin").c_str(), &status), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), settings.hbm_size);
  EXPECT_LT(status.st_blocks * 512, 8 << 20);
  const auto file = MappedFile::open(path("h.bin"));
  EXPECT_EQ(file->bytes()[last], 9);
  EXPECT_EQ(file->bytes()[last - 1], 0);
}

TEST_F(MemoryImageTest, RefusesADumpThatLeavesTheMemory) {
  EXPECT_FALSE(dump(MemoryKind::IntMem, path("i.bin"), 30, 3));
  EXPECT_FALSE(dump(MemoryKind::IntMem, path("i.bin"), 33));
  EXPECT_FALSE(dump(MemoryKind::Hbm, path("i.bin"), 1, ~std::uint64_t{0}));
  EXPECT_FALSE(std::filesystem::exists(path("i.bin")));
}

TEST_F(MemoryImageTest, AnInterruptedDumpLeavesNothing) {
  ASSERT_TRUE(machine_.write_elements(MemoryKind::Hbm, 0, Bytes{9}));
  const std::atomic<bool> interrupted = true;

  const auto status =
      dump_memory(machine_, {MemoryKind::Hbm, path("h.bin"), 0, std::nullopt}, &interrupted);

  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::Interrupted);
  EXPECT_FALSE(std::filesystem::exists(path("h.bin")));
}

TEST_F(MemoryImageTest, NarrowFormatsTakeOneByteAnElement) {
  Settings settings = small_settings();
  settings.vector_sram_type = DataType::plain(kE4M3);
  machine_ = std::move(*Machine::create(settings));

  ASSERT_TRUE(load(MemoryKind::Vram, write_array<float>("v.npy", {2}, {1.0F, -2.0F})));
  ASSERT_TRUE(dump(MemoryKind::Vram, path("v.bin"), 0, 2));

  EXPECT_EQ(read_file(path("v.bin")), (Bytes{0x38, 0xC0}));
}

}  // namespace
}  // namespace plena
