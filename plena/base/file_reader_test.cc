#include "plena/base/file_reader.h"

#include <cstdio>

#include <gtest/gtest.h>

#include "plena/base/files.h"
#include "plena/base/scratch_folder.h"

namespace plena {
namespace {

TEST(FileReader, GivesAWholeFileInPieces) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("pieces.bin");
  std::string written;
  for (int i = 0; i < 100'000; ++i) written += std::to_string(i);
  ASSERT_TRUE(write_text(path, written));

  auto reader = FileReader::open(path);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->size(), written.size());
  std::string read;
  for (auto piece = reader->next(); piece && !piece->empty(); piece = reader->next()) {
    EXPECT_LT(piece->size(), written.size());
    read += *piece;
  }
  EXPECT_EQ(read, written);
}

TEST(FileReader, SaysWhichFileItCannotRead) {
  const auto missing = FileReader::open("/no/such/file");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/no/such/file"), std::string::npos);
  auto folder = FileReader::open("/");
  ASSERT_TRUE(folder);
  EXPECT_FALSE(folder->next());
}

}  // namespace
}  // namespace plena
