#include "plena/base/npy.h"

#include <cmath>
#include <filesystem>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plena/base/scratch_folder.h"
#include "plena/base/shared_data.h"

namespace plena {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A version 1 file as numpy writes it: preamble, header, elements.
Bytes version1(std::string_view header, std::string_view elements) {
  Bytes file = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<std::uint8_t>(header.size()), 0};
  file.insert(file.end(), header.begin(), header.end());
  file.insert(file.end(), elements.begin(), elements.end());
  return file;
}

std::string rejection(const Bytes& file) {
  const auto array = parse_npy(file, "a.npy");
  return array ? "accepted" : array.error().message;
}

TEST(Npy, ReadsAMatrixOfFloats) {
  const auto array =
      parse_npy(version1("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }\n",
                         std::string_view("\0\0\x80\x3f\0\0\0\xc0", 8)),
                "a.npy");

  ASSERT_TRUE(array) << array.error().message;
  EXPECT_THAT(array->shape, ElementsAre(1, 2));
  EXPECT_THAT(array->values<float>(), ElementsAre(1.0F, -2.0F));
}

TEST(Npy, ConvertsEveryTypeToF64) {
  const auto first = [](std::string_view descr, std::string_view element) {
    const std::string header =
        fmt::format("{{\"shape\":(),\"fortran_order\":True,\"descr\":\"{}\"}}", descr);
    const auto array = parse_npy(version1(header, element), "a.npy");
    return array ? array->to_f64().at(0) : NAN;
  };

  EXPECT_EQ(first("<f2", {"\x00\x3c", 2}), 1.0);
  EXPECT_EQ(first("<f2", {"\x01\x80", 2}), -0x1p-24);
  EXPECT_EQ(first("<f2", {"\xff\x7b", 2}), 65504.0);
  EXPECT_EQ(first("<f2", {"\x00\x7c", 2}), HUGE_VAL);
  EXPECT_EQ(first("<f8", {"\0\0\0\0\0\0\xf0\x3f", 8}), 1.0);
  EXPECT_EQ(first("|u1", "\xff"), 255.0);
  EXPECT_EQ(first("|i1", "\xff"), -1.0);
  EXPECT_EQ(first("<u2", "\xfe\xff"), 65534.0);
  EXPECT_EQ(first("<u4", "\xff\xff\xff\xff"), 4294967295.0);
  EXPECT_EQ(first("<i4", "\xfe\xff\xff\xff"), -2.0);
  EXPECT_EQ(first("<i8", "\xfd\xff\xff\xff\xff\xff\xff\xff"), -3.0);
}

TEST(Npy, WritesTheBytesNumpyWrites) {
  const std::vector<std::uint64_t> shape{3};
  const std::vector<std::uint8_t> elements{7, 8, 9};

  const Bytes file = npy_file(NpyType::of<std::uint8_t>(), shape, elements);

  // numpy.save of np.array([7, 8, 9], np.uint8): 128 bytes of header, then the elements.
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }";
  header.resize(117, ' ');
  EXPECT_EQ(file, version1(header + '\n', "\x07\x08\x09"));
}

TEST(Npy, ReadsBackWhatItWrote) {
  const std::vector<std::uint64_t> shape{2, 0, 3};
  const ScratchFolder scratch;
  const std::string path = scratch.file("empty.npy");

  ASSERT_TRUE(write_npy<std::int64_t>(path, shape, {}));
  const auto array = read_npy(path);

  ASSERT_TRUE(array) << array.error().message;
  EXPECT_EQ(array->type, NpyType::of<std::int64_t>());
  EXPECT_EQ(array->shape, shape);
}

TEST(Npy, ReadsAFileNumpyWrote) {
  PLENA_NEEDS_SHARED();
  const auto array = read_npy(shared_data() + "/models/stories260K/reference_logits.npy");

  ASSERT_TRUE(array) << array.error().message;
  EXPECT_THAT(array->shape, ElementsAre(200, 512));
  EXPECT_EQ(array->type, NpyType::of<float>());
}

TEST(Npy, SaysWhyItRefusesAFile) {
  const auto header = [](std::string_view text) { return rejection(version1(text, "")); };

  EXPECT_THAT(rejection({}), HasSubstr("does not start with"));
  EXPECT_THAT(rejection({'P', 'K', 3, 4, 0, 0, 0, 0, 0, 0, 0}), HasSubstr("does not start with"));
  EXPECT_THAT(rejection({0x93, 'N', 'U', 'M', 'P', 'Y', 9, 0, 0, 0}), HasSubstr("version 9"));
  EXPECT_THAT(rejection({0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 9, 0}),
              HasSubstr("inside its header"));
  EXPECT_THAT(header("[]"), HasSubstr("not a dictionary"));
  EXPECT_THAT(header("{'descr': '<f4'}"), HasSubstr("lacks"));
  EXPECT_THAT(header("{'descr': '>f4'}"), HasSubstr("\">f4\""));
  EXPECT_THAT(header("{'descr': '|O'}"), HasSubstr("\"|O\""));
  EXPECT_THAT(header("{'descr': [('a', '<f4')]}"), HasSubstr("plain type"));
  EXPECT_THAT(header("{'shape': (-1,)}"), HasSubstr("shape"));
  EXPECT_THAT(header("{'shape': (99999999999999999999,)}"), HasSubstr("shape"));
  EXPECT_THAT(header("{'shape': (1,"), HasSubstr("shape"));
  EXPECT_THAT(header("{'fortran_order': 1}"), HasSubstr("neither"));
  EXPECT_THAT(header("{'colour': 1}"), HasSubstr("colour"));
  EXPECT_THAT(header("{'descr': '<f4', 'fortran_order': True, 'shape': (0, 2)}"),
              HasSubstr("Fortran"));
  EXPECT_THAT(header("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}"),
              HasSubstr("needs 12 bytes of elements, it holds 0"));
  EXPECT_THAT(header("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"),
              HasSubstr("more than 2^64"));
}

TEST(Npy, SurvivesMutatedFiles) {
  const std::vector<std::uint64_t> shape{2, 2};
  const Bytes good = npy_file(NpyType::of<std::uint16_t>(), shape, Bytes(8));
  std::mt19937 random(20240);

  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(parse_npy(std::span(good).first(length), "a.npy"));
  }
  for (int round = 0; round < 20'000; ++round) {
    Bytes file = good;
    for (int flips = 0; flips < 3; ++flips) {
      file[random() % file.size()] = static_cast<std::uint8_t>(random());
    }
    const auto array = parse_npy(file, "a.npy");
    if (!array) continue;
    EXPECT_EQ(array->to_f64().size() * array->type.bytes, array->bytes.size());
  }
}

}  // namespace
}  // namespace plena
