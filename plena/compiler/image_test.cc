#include "plena/compiler/image.h"

#include <filesystem>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "plena/base/scratch_folder.h"
#include "plena/compiler/testing/toy_image.h"

namespace plena {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImageFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  [[nodiscard]] std::string folder() const { return (root_ / "image").string(); }
  [[nodiscard]] std::string file(const char* name) const {
    return (root_ / "image" / name).string();
  }

  // Why the folder is refused after one edit of its manifest.
  template <class Edit>
  std::string refusal_after(Edit&& edit) {
    EXPECT_TRUE(save_image(image_, folder()));
    auto json = nlohmann::json::parse(read_text(file("manifest.json")).value());
    edit(json);
    EXPECT_TRUE(write_text(file("manifest.json"), json.dump()));
    const auto image = load_image(folder());
    return image ? "accepted" : image.error().message;
  }

  ScratchFolder scratch_;
  fs::path root_ = scratch_.path() / "image";
  Image image_ = testing::toy_image({}, {{{1.5F, -2, 3, 4}}});
};

TEST_F(ImageFolder, ComesBackAsItWasSaved) {
  image_.dialect = Dialect::parse("plena+bmv").value();
  ASSERT_TRUE(save_image(image_, folder()));

  const auto image = load_image(folder());

  ASSERT_TRUE(image) << image.error().render();
  EXPECT_EQ(image->settings, image_.settings);
  EXPECT_EQ(image->dialect, image_.dialect);
  EXPECT_EQ(image->program.words, image_.program.words);
  EXPECT_EQ(image->assembly, image_.assembly);
  EXPECT_EQ(image->fp_mem, image_.fp_mem);
  EXPECT_EQ(image->int_mem, image_.int_mem);
  EXPECT_EQ(image->tokenizer, image_.tokenizer);
  ASSERT_EQ(image->hbm.size(), 2U);
  EXPECT_EQ(image->hbm[1].name, "second");
  EXPECT_EQ(image->hbm[1].address, std::uint64_t{1} << 33);
  EXPECT_THAT(image->hbm[0].bytes, ElementsAre(1, 2, 3));
  EXPECT_EQ(image->manifest.model, "toy");
  EXPECT_EQ(image->manifest.vocab, 4U);
  EXPECT_EQ(image->manifest.context, 6U);
  EXPECT_EQ(image->manifest.logits_address, 128U);
  ASSERT_EQ(image->manifest.position_inputs.size(), 1U);
  EXPECT_EQ(image->manifest.position_inputs[0].value(5), 256U);
}

TEST_F(ImageFolder, KeepsScalarsInStateFileElements) {
  image_.settings.scalar_fp = DataType::plain(kBf16);
  image_.fp_mem = {0x3F80, 0xC000};
  ASSERT_TRUE(save_image(image_, folder()));

  EXPECT_THAT(read_file(file("fp_mem.bin")).value(), ElementsAre(0x80, 0x3F, 0x00, 0xC0));
}

TEST_F(ImageFolder, ReplacesAnImageAndNothingElse) {
  ASSERT_TRUE(save_image(image_, folder()));
  image_.manifest.model = "newer";
  ASSERT_TRUE(save_image(image_, folder() + "/"));
  EXPECT_EQ(load_image(folder())->manifest.model, "newer");

  fs::create_directories(root_ / "papers");
  ASSERT_TRUE(write_text((root_ / "papers" / "thesis.txt").string(), "ten years"));
  EXPECT_THAT(save_image(image_, (root_ / "papers").string()).error().message,
              HasSubstr("not an image"));
  EXPECT_TRUE(fs::exists(root_ / "papers" / "thesis.txt"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 2);
}

TEST_F(ImageFolder, NamesTheFileThatIsMissing) {
  EXPECT_THAT(load_image(folder()).error().message, HasSubstr("not an image folder"));
  for (const char* name : {"program.mem", "program.asm", "settings.toml", "hbm.bin", "fp_mem.bin",
                           "int_mem.bin", "tokenizer.bin"}) {
    ASSERT_TRUE(save_image(image_, folder()));
    fs::remove(file(name));
    EXPECT_THAT(load_image(folder()).error().message, HasSubstr(name));
  }
}

TEST_F(ImageFolder, RefusesAManifestThatMakesNoSense) {
  using Json = nlohmann::json;
  EXPECT_THAT(refusal_after([](Json& j) { j["format"] = "plena image 9"; }),
              HasSubstr("plena image 9"));
  EXPECT_THAT(refusal_after([](Json& j) { j["vocab"] = -4; }), HasSubstr("vocab"));
  EXPECT_THAT(refusal_after([](Json& j) { j["context"] = 1ULL << 40; }), HasSubstr("context"));
  EXPECT_THAT(refusal_after([](Json& j) { j.erase("outputs"); }), HasSubstr("outputs"));
  EXPECT_THAT(refusal_after([](Json& j) { j["inputs"] = 3; }), HasSubstr("manifest.json"));
  EXPECT_THAT(refusal_after([](Json& j) { j["isa"] = "x86"; }), HasSubstr("x86"));
  EXPECT_THAT(refusal_after([](Json& j) { j["hbm"][0]["bytes"] = 5000; }), HasSubstr("longer"));
  EXPECT_THAT(refusal_after([](Json& j) { j["hbm"][0]["offset"] = ~0ULL; }), HasSubstr("longer"));
  EXPECT_THAT(refusal_after([](Json& j) { j["hbm"][0].erase("offset"); }), HasSubstr("offset"));
  EXPECT_THAT(refusal_after([](Json& j) { j["hbm"].erase(1); }), HasSubstr("shorter"));
  EXPECT_THAT(refusal_after([](Json& j) { j["hbm"][1]["address"] = 1ULL << 60; }),
              HasSubstr("leave HBM"));
  EXPECT_THAT(refusal_after([](Json& j) { j["outputs"]["logits"]["vram"] = ~0ULL; }),
              HasSubstr("leave Vector SRAM"));
}

TEST_F(ImageFolder, RefusesOddBytesAndBrokenText) {
  ASSERT_TRUE(save_image(image_, folder()));
  ASSERT_TRUE(write_text(file("int_mem.bin"), "abcde"));
  EXPECT_THAT(load_image(folder()).error().message, HasSubstr("int_mem.bin has 5 bytes"));

  ASSERT_TRUE(save_image(image_, folder()));
  ASSERT_TRUE(write_text(file("manifest.json"), "{\"format\": "));
  EXPECT_THAT(load_image(folder()).error().message, HasSubstr("manifest.json"));
}

TEST_F(ImageFolder, RefusesAnHbmThatWasCutOff) {
  ASSERT_TRUE(save_image(image_, folder()));
  fs::resize_file(file("hbm.bin"), fs::file_size(file("hbm.bin")) - 1);
  EXPECT_THAT(load_image(folder()).error().message, HasSubstr("may be incomplete"));
  fs::resize_file(file("hbm.bin"), 0);
  EXPECT_THAT(load_image(folder()).error().message, HasSubstr("may be incomplete"));
}

TEST_F(ImageFolder, RefusesAProgramWhoseTextSaysSomethingElse) {
  ASSERT_TRUE(save_image(image_, folder()));
  ASSERT_TRUE(write_text(file("program.asm"), image_.assembly + "C_BREAK\n"));
  EXPECT_THAT(load_image(folder()).error().message, HasSubstr("not the text of program.mem"));

  ASSERT_TRUE(write_text(file("program.asm"), "nonsense\n"));
  EXPECT_EQ(load_image(folder()).error().code, ErrorCode::Syntax);
}

TEST_F(ImageFolder, KnowsTheLineOfEveryWord) {
  ASSERT_TRUE(save_image(image_, folder()));

  const auto image = load_image(folder()).value();

  EXPECT_EQ(image.program.source_name, file("program.asm"));
  EXPECT_THAT(image.program.lines, ElementsAre(2, 3, 4, 5, 6, 7, 8));
}

TEST_F(ImageFolder, SurvivesMutatedManifests) {
  ASSERT_TRUE(save_image(image_, folder()));
  const std::string good = read_text(file("manifest.json")).value();
  std::mt19937 random(13);
  for (int round = 0; round < 500; ++round) {
    std::string text = good;
    text[random() % text.size()] = static_cast<char>(random() % 128);
    ASSERT_TRUE(write_text(file("manifest.json"), text));
    const auto image = load_image(folder());
    EXPECT_TRUE(!image || check_image(*image));
  }
}

TEST_F(ImageFolder, PreloadPutsEverySegmentInPlace) {
  auto machine = Machine::create(image_.settings).value();

  ASSERT_TRUE(preload(image_, machine));

  EXPECT_THAT(machine.read_elements(MemoryKind::Hbm, 64, 4).value(), ElementsAre(1, 2, 3, 0));
  EXPECT_EQ(machine.fp_mem[4 * 64], std::bit_cast<std::uint32_t>(1.5F));
  EXPECT_EQ(machine.int_mem[2], 64U);
}

// Bytes of a segment that begins and ends amid pages, mapped from hbm.bin.
TEST_F(ImageFolder, MapsWhatItHoldsAndKeepsItAsItIs) {
  Bytes bytes(3 * 4096);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i % 251 + 1);
  image_.hbm.push_back({"third", (std::uint64_t{5} << 32) + 100, bytes});
  ASSERT_TRUE(save_image(image_, folder()));
  auto machine = Machine::create(image_.settings).value();
  {
    const auto image = load_image(folder()).value();
    ASSERT_TRUE(preload(image, machine));
  }

  const std::uint64_t address = image_.hbm[2].address;
  EXPECT_EQ(machine.read_elements(MemoryKind::Hbm, address, bytes.size()).value(), bytes);
  EXPECT_THAT(machine.read_elements(MemoryKind::Hbm, address - 1, 2).value(), ElementsAre(0, 1));
  EXPECT_EQ(machine.read_elements(MemoryKind::Hbm, address + bytes.size(), 1).value()[0], 0);
  EXPECT_THAT(machine.read_elements(MemoryKind::Hbm, 64, 4).value(), ElementsAre(1, 2, 3, 0));
  const Bytes before = read_file(file("hbm.bin")).value();
  ASSERT_TRUE(machine.write_elements(MemoryKind::Hbm, address, Bytes(bytes.size())));
  EXPECT_EQ(read_file(file("hbm.bin")).value(), before);
}

TEST_F(ImageFolder, DoesNotFitAMachineWithLessHbm) {
  Settings smaller = image_.settings;
  smaller.hbm_size = 1 << 20;
  auto machine = Machine::create(smaller).value();
  EXPECT_THAT(preload(image_, machine).error().message, HasSubstr("other settings"));
}

}  // namespace
}  // namespace plena
