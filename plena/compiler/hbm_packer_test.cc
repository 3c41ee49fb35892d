#include "plena/compiler/hbm_packer.h"

#include <filesystem>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plena/base/scratch_folder.h"

namespace plena {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kPieceElements = 1000;

// Element i of a tensor is i; 30 pieces.
TensorPieces counting(DataType type) {
  TensorPieces tensor{.type = type};
  for (std::size_t piece = 0; piece < 30; ++piece) {
    tensor.add(kPieceElements, [piece](Quantiser& to) {
      std::vector<float> values(kPieceElements);
      std::iota(values.begin(), values.end(), static_cast<float>(piece * kPieceElements));
      to.append(values);
    });
  }
  return tensor;
}

std::vector<TensorAtPlace> tensors() {
  return {{"mx", 64, 123456, counting(DataType::mx(kE4M3, 8))},
          {"odd", std::uint64_t{5} << 32, 0, counting(DataType::plain(kE3M2))}};
}

TEST(PackHbm, GivesTheSameBitsFromMemoryAndFromDisk) {
  const ScratchFolder folder;
  const PackOptions options{.folder = folder.path().string()};
  const auto in_memory = pack_hbm(tensors(), options).value();
  const auto on_disk = pack_hbm(tensors(), options, 0).value();

  ASSERT_EQ(in_memory.size(), 3U);
  for (std::size_t i = 0; i < in_memory.size(); ++i) {
    EXPECT_EQ(in_memory[i].name, on_disk[i].name);
    EXPECT_EQ(in_memory[i].address, on_disk[i].address);
    EXPECT_EQ(in_memory[i].bytes, on_disk[i].bytes);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// As if the tensors had been quantised in one go.
TEST(PackHbm, PutsPiecesWhereTheyBelong) {
  const auto segments = pack_hbm(tensors(), {}).value();
  const auto mx = quantise(counting(DataType::mx(kE4M3, 8)));
  const auto odd = quantise(counting(DataType::plain(kE3M2)));
  EXPECT_EQ(segments[0].bytes, Contents(mx.elements));
  EXPECT_EQ(segments[1].bytes, Contents(mx.scales));
  EXPECT_EQ(segments[1].address, 123456U);
  EXPECT_EQ(segments[2].bytes, Contents(odd.elements));
}

// Pieces of 3 elements of 6 bits end amid a byte; none does in the tensor that is packed.
TEST(TensorPieces, EndWithABlockAndAByte) {
  TensorPieces tensor{.type = DataType::plain(kE3M2)};
  for (int i = 0; i < 7; ++i) {
    tensor.add(3, [i](Quantiser& to) { to.append(std::vector<float>(3, static_cast<float>(i))); });
  }
  ASSERT_EQ(tensor.pieces.size(), 2U);
  EXPECT_EQ(tensor.pieces[1].first, 12U);
  EXPECT_EQ(pack_hbm({{"odd", 0, 0, tensor}}, {}).value()[0].bytes,
            Contents(quantise(tensor).elements));
}

TEST(PackHbm, TellsHowFarItIs) {
  std::uint64_t last = 0;
  std::uint64_t of = 1;
  ASSERT_TRUE(pack_hbm(tensors(), {.progress = [&](std::uint64_t done, std::uint64_t all) {
                         EXPECT_GT(done, last);
                         last = done;
                         of = all;
                       }}));
  EXPECT_EQ(last, of);
  EXPECT_EQ(of, 30000U + 30000 / 8 + 30000 / 8 * 6);
}

TEST(PackHbm, StopsWhenItIsTold) {
  const ScratchFolder folder;
  std::atomic<bool> interrupted = false;
  const auto packed =
      pack_hbm(tensors(),
               {.folder = folder.path().string(),
                .interrupted = &interrupted,
                .progress = [&](std::uint64_t, std::uint64_t) { interrupted = true; }},
               0);
  ASSERT_FALSE(packed);
  EXPECT_EQ(packed.error().code, ErrorCode::Interrupted);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(PackHbm, SaysThatTheDiskIsFullBeforeItWorks) {
  const ScratchFolder folder;
  TensorPieces tensor{.type = DataType::plain(kFp32)};
  tensor.add(std::uint64_t{1} << 58, [](Quantiser&) { ADD_FAILURE() << "packed"; });
  const auto packed = pack_hbm({{"vast", 0, 0, tensor}}, {.folder = folder.path().string()});
  ASSERT_FALSE(packed);
  EXPECT_THAT(packed.error().message, HasSubstr("has no room"));
}

}  // namespace
}  // namespace plena
