// The case archives and the conformance bundles, whole, with the kernels of every SIMD target and
// several numbers of threads; and that a wrong expectation is noticed.
#include "plena/cases/case.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plena/base/files.h"
#include "plena/base/shared_data.h"
#include "plena/cases/bundle.h"
#include "plena/cases/collect.h"
#include "plena/cases/unpacked_archive.h"
#include "plena/sim/workers.h"

namespace plena {
namespace {

// Everything below runs with the kernels of one target, each case with 1, 2, 3 and 8 threads that
// share all they can, however small it is: no case has a product that they share by themselves.
class EveryTarget : public testing::TestWithParam<SimdTarget> {
 protected:
  void expect_all_pass(const std::string& root, std::size_t count) {
    const auto folders = collect_cases({root});
    ASSERT_TRUE(folders) << folders.error().render();
    EXPECT_EQ(folders->size(), count);
    for (const std::string& folder : *folders) {
      if (is_bundle_folder(folder)) {
        expect_pass(folder, load_bundle(folder), run_bundle);
      } else {
        expect_pass(folder, load_case(folder), run_case);
      }
    }
  }

 private:
  template <class Test, class Run>
  void expect_pass(const std::string& folder, const Result<Test>& test, Run run) {
    ASSERT_TRUE(test) << folder << ": " << test.error().render();
    for (Workers* workers : {&one_, &two_, &three_, &eight_}) {
      const auto lines = run(*test, {.simd = GetParam(), .workers = workers});
      ASSERT_TRUE(lines) << folder << ": " << lines.error().render();
      EXPECT_TRUE(lines->empty()) << folder << " with " << workers->threads()
                                  << " thread(s): " << lines->front();
    }
  }

  Workers one_{1, 0}, two_{2, 0}, three_{3, 0}, eight_{8, 0};
};

// The counts are those of the archives: a folder that is overlooked would be a silent pass.
TEST_P(EveryTarget, PassesTheDirectedCases) {
  PLENA_NEEDS_SHARED();
  const UnpackedArchive archive(shared_data() + "/vectors/isa/directed.tar.zst");
  ASSERT_TRUE(archive.ok());
  expect_all_pass(archive.folder(), 454);
}

TEST_P(EveryTarget, PassesTheRandomCases) {
  PLENA_NEEDS_SHARED();
  const UnpackedArchive archive(shared_data() + "/vectors/isa/random.tar.zst");
  ASSERT_TRUE(archive.ok());
  expect_all_pass(archive.folder(), 300);
}

TEST_P(EveryTarget, LeavesTheEmulatorsMemoriesAfterItsMicroPrograms) {
  PLENA_NEEDS_SHARED();
  expect_all_pass(shared_data() + "/conformance/micro", 97);
}

TEST_P(EveryTarget, LeavesTheEmulatorsMemoriesAfterItsCompiledKernels) {
  PLENA_NEEDS_SHARED();
  expect_all_pass(shared_data() + "/conformance/kernels", 48);
}

INSTANTIATE_TEST_SUITE_P(Cases, EveryTarget, testing::ValuesIn(supported_simd_targets()),
                         [](const auto& instance) {
                           return std::string(simd_target_name(instance.param));
                         });

TEST(Bundles, AWrongDumpAndAWrongCountAreNoticed) {
  PLENA_NEEDS_SHARED();
  auto bundle = load_bundle(shared_data() + "/conformance/kernels/de_h_store");
  ASSERT_TRUE(bundle) << bundle.error().render();
  bundle->hbm_read += 64;
  bundle->dumps.front().bytes.front() ^= 0x40;

  const auto lines = run_bundle(*bundle);

  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->size(), 2U);
}

// The first error of a bundle with one text of its bundle.json replaced by another.
std::string error_with(const std::string& text, const std::string& replacement) {
  namespace fs = std::filesystem;
  const std::string kernel = shared_data() + "/conformance/kernels/aten_linear_64_4_s64";
  const fs::path folder = fs::path(testing::TempDir()) / "broken_bundle";
  fs::remove_all(folder);
  fs::copy(kernel, folder);
  std::string json = *read_text(kernel + "/bundle.json");
  const std::size_t at = json.find(text);
  EXPECT_NE(at, std::string::npos) << text;
  json.replace(at, text.size(), replacement);
  EXPECT_TRUE(write_text((folder / "bundle.json").string(), json));
  const auto bundle = load_bundle(folder.string());
  fs::remove_all(folder);
  return bundle ? "" : bundle.error().message;
}

TEST(Bundles, NumbersThatDescribeNoTensorAreErrors) {
  PLENA_NEEDS_SHARED();
  using testing::HasSubstr;
  EXPECT_EQ(error_with("\"cols\"", "\"cols\""), "");
  EXPECT_THAT(error_with("\"block_cols\": 64", "\"block_cols\": 0"), HasSubstr("of 0 columns"));
  EXPECT_THAT(error_with("\"rows\": 64", "\"rows\": 99999999999"), HasSubstr("99999999999 x 128"));
  EXPECT_THAT(error_with("\"cols\": 128", "\"cols\": -128"),
              HasSubstr("cols is not a whole number"));
  EXPECT_THAT(error_with("\"27648\"", "\"-5\""), HasSubstr("not a whole number"));
}

// S_ADDI_INT gp1, gp0, 7: one register differs from what a wrong case expects.
Case one_instruction() {
  Case test;
  test.name = "one instruction";
  test.settings.vector_sram_size = 16;
  test.words = {0x0001C062};
  test.assembly = "S_ADDI_INT gp1, gp0, 7";
  test.registers = {.gp = std::vector<std::uint32_t>(16),
                    .f = std::vector<std::uint32_t>(8),
                    .a = std::vector<std::uint64_t>(8),
                    .retired = 1};
  test.registers.gp[1] = 7;
  return test;
}

TEST(RunCase, PassesWhatIsRight) {
  EXPECT_TRUE(run_case(one_instruction())->empty());
}

TEST(RunCase, NoticesAWrongRegister) {
  Case test = one_instruction();
  test.registers.gp[1] = 8;
  EXPECT_EQ(*run_case(test), std::vector<std::string>{"gp1: expected 0x8, got 0x7"});
}

TEST(RunCase, NoticesAWrongMemory) {
  Case test = one_instruction();
  test.final.push_back({MemoryKind::Vram, 3, {0x80, 0x3F}});
  EXPECT_EQ(*run_case(test),
            std::vector<std::string>{
                "Vector SRAM: 1 element(s) differ, the first at 3: expected 0x3F80, got 0x0"});
}

TEST(RunCase, NoticesAWrongEnd) {
  Case test = one_instruction();
  test.expected_trap = "array_shape";
  EXPECT_EQ(*run_case(test),
            std::vector<std::string>{"expected trap array_shape at pc 0, got halt"});
}

TEST(RunCase, NoticesAssemblyThatMeansSomethingElse) {
  Case test = one_instruction();
  test.assembly = "S_ADDI_INT gp1, gp0, 6";
  EXPECT_EQ(*run_case(test),
            std::vector<std::string>{"program.asm does not assemble to program.mem"});
}

}  // namespace
}  // namespace plena
