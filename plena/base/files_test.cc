#include "plena/base/files.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "plena/base/scratch_folder.h"

namespace plena {
namespace {

namespace fs = std::filesystem;

class FileWriterTest : public testing::Test {
 protected:
  [[nodiscard]] std::size_t files_in_folder() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  ScratchFolder scratch_;
  fs::path folder_ = scratch_.path();
  fs::path path_ = folder_ / "out.bin";
};

TEST_F(FileWriterTest, AppearsOnlyWhenCommitted) {
  const Bytes bytes = {1, 2};
  auto writer = FileWriter::create(path_);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->append(bytes));
  EXPECT_FALSE(fs::exists(path_));

  ASSERT_TRUE(writer->commit());

  EXPECT_EQ(read_file(path_), bytes);
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(FileWriterTest, LeavesNothingWhenAbandoned) {
  {
    auto writer = FileWriter::create(path_);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->append(Bytes{1, 2, 3}));
  }

  EXPECT_EQ(files_in_folder(), 0U);
}

TEST_F(FileWriterTest, KeepsTheOldFileWhenAbandoned) {
  ASSERT_TRUE(write_file(path_, Bytes{9}));
  {
    auto writer = FileWriter::create(path_);
    ASSERT_TRUE(writer->append(Bytes{1, 2, 3}));
  }

  EXPECT_EQ(read_file(path_), Bytes{9});
}

TEST_F(FileWriterTest, HolesReadAsZerosBetweenAndAfterBytes) {
  auto writer = FileWriter::create(path_);
  ASSERT_TRUE(writer->append(Bytes{1}));
  ASSERT_TRUE(writer->append_zeros(2));
  ASSERT_TRUE(writer->append(Bytes{4}));
  ASSERT_TRUE(writer->append_zeros(1));
  ASSERT_TRUE(writer->commit());

  EXPECT_EQ(read_file(path_), (Bytes{1, 0, 0, 4, 0}));
}

TEST_F(FileWriterTest, AFolderThatDoesNotExistIsAnError) {
  const auto writer = FileWriter::create(folder_ / "nowhere" / "out.bin");

  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ErrorCode::Io);
}

TEST_F(FileWriterTest, WritesToADeviceDirectly) {
  EXPECT_TRUE(write_file("/dev/null", Bytes{1, 2, 3}));
}

TEST(ReadFile, AnEndlessFileIsAnError) {
  const auto bytes = read_file("/dev/zero");

  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().message, "cannot read /dev/zero: it has more than 268435456 bytes");
}

}  // namespace
}  // namespace plena
