#include "plena/base/contents.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plena/base/scratch_folder.h"

namespace plena {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Bytes 2 … 4 of a finished file are 7, 8, 9.
MappedFile finished(Result<UnnamedFile> file) {
  EXPECT_TRUE(file->write_at(2, Bytes{7, 8, 9}));
  return (*std::move(file)).map().value();
}

TEST(Contents, AreTheSameFromMemoryAndFromAFile) {
  const ScratchFolder folder;
  const auto file =
      std::make_shared<const MappedFile>(finished(UnnamedFile::create(folder.path().string(), 6)));
  const Contents part(file, 1, 4);
  EXPECT_THAT(part, ElementsAre(0, 7, 8, 9));
  EXPECT_EQ(part, (Contents{0, 7, 8, 9}));
  EXPECT_EQ(part.file(), file);
  EXPECT_EQ(part.file_offset(), 1U);
  EXPECT_TRUE(Contents().empty());
}

TEST(UnnamedFile, LeavesNothingInItsFolder) {
  const ScratchFolder folder;
  const MappedFile file = finished(UnnamedFile::create(folder.path().string(), 5));
  EXPECT_EQ(file.bytes().size(), 5U);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(UnnamedFile, StaysUnderTheNameItIsGiven) {
  const ScratchFolder folder;
  const std::string path = folder.file("kept");
  {
    const MappedFile file = finished(UnnamedFile::create(folder.path().string(), 5));
    if (!give_name(file, path)) GTEST_SKIP() << "no files without a name here";
    EXPECT_FALSE(give_name(file, folder.file("second"))) << "it has one";
  }
  EXPECT_THAT(read_file(path).value(), ElementsAre(0, 0, 7, 8, 9));
}

TEST(UnnamedFile, OfMemoryCannotGetAName) {
  const ScratchFolder folder;
  const MappedFile file = finished(UnnamedFile::in_memory(5));
  EXPECT_THAT(
      Contents(std::make_shared<const MappedFile>(finished(UnnamedFile::in_memory(5))), 0, 5),
      ElementsAre(0, 0, 7, 8, 9));
  EXPECT_FALSE(give_name(file, folder.file("kept")));
}

// No file system has room for half of all addresses.
TEST(UnnamedFile, SaysAtOnceThatThereIsNoRoom) {
  const ScratchFolder folder;
  const auto file = UnnamedFile::create(folder.path().string(), std::uint64_t{1} << 62);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::Io);
  EXPECT_THAT(file.error().message, HasSubstr(folder.path().string()));
}

}  // namespace
}  // namespace plena
