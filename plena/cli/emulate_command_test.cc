// plena emulate and plena port as a user meets them.
#include <filesystem>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/base/scratch_folder.h"
#include "plena/cli/run_program.h"

namespace plena {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kSettings =
    "[TRANSACTIONAL.CONFIG]\n"
    "MLEN = { value = 64 }\nBLEN = { value = 4 }\nHLEN = { value = 16 }\nVLEN = { value = 64 }\n"
    "MATRIX_SRAM_SIZE = { value = 128 }\nVECTOR_SRAM_SIZE = { value = 32 }\n"
    "HBM_SIZE = { value = 65536 }\nHBM_M_Prefetch_Amount = { value = 64 }\n"
    "HBM_V_Prefetch_Amount = { value = 4 }\nHBM_V_Writeback_Amount = { value = 4 }\n"
    "[TRANSACTIONAL.LATENCY]\n"
    "SCALAR_INT_BASIC_CYCLES = { dc_lib_en = 3, dc_lib_dis = 5 }\n";

// S_ADDI_INT gp1, gp0, 7; S_ST_INT gp1, gp0, 2
constexpr const char* kProgram = "0x0001C062 0x00008067\n";

// The emulator leaves its files in the current folder.
class EmulateCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    fs::current_path(scratch_.path());
    write("settings.toml", kSettings);
    write("a.mem", kProgram);
    write("empty.bin", "");
  }
  void TearDown() override { fs::current_path(before_); }

  static void write(const std::string& name, std::string_view text) {
    EXPECT_TRUE(write_text(name, text));
  }
  static ProgramRun emulate(const std::string& program,
                            const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"emulate",   "--opcode",   program,
                                          "--hbm",     "empty.bin",  "--fpsram",
                                          "empty.bin", "--settings", "settings.toml"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_program(arguments);
  }

 private:
  ScratchFolder scratch_;
  fs::path before_;
};

TEST_F(EmulateCommandTest, LeavesTheEmulatorsDumpsAndClosingLines) {
  const ProgramRun run = emulate("a.mem");

  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out,
            "Simulation completed. Latency 6 ns\n"
            "HBM Statistics - Bytes read: 0 | Bytes written: 0\n");
  EXPECT_EQ(fs::file_size("vram_dump.bin"), 32U * 64 * 2);
  EXPECT_EQ(fs::file_size("mram_dump.bin"), 128U * 64 * 2);
  EXPECT_EQ(fs::file_size("fpsram_dump.bin"), 2048U);
  EXPECT_EQ(fs::file_size("intsram_dump.bin"), 4096U);
  EXPECT_FALSE(fs::exists("hbm_dump.bin"));
  EXPECT_EQ((*read_file("intsram_dump.bin"))[8], 7);
}

TEST_F(EmulateCommandTest, DebugDumpsHbmOfTheSizeThatIsAskedFor) {
  EXPECT_EQ(emulate("a.mem", {"--log-level", "debug", "--hbm-size", "1M"}).status, 0);

  EXPECT_EQ(fs::file_size("hbm_dump.bin"), 1U << 20);
}

TEST_F(EmulateCommandTest, ATrapIsStatusOneAndLeavesNoDumps) {
  write("bad.mem", "0x0000003F\n");

  const ProgramRun run = emulate("bad.mem");

  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("trap illegal_instruction at pc 0"));
  EXPECT_FALSE(fs::exists("vram_dump.bin"));
}

TEST_F(EmulateCommandTest, AnImageThatDoesNotFitIsStatusTwo) {
  write("long.bin", std::string(2 * 1025, 'x'));

  const ProgramRun run = emulate("a.mem", {"--fpsram", "long.bin"});

  EXPECT_EQ(run.status, 2);
}

TEST_F(EmulateCommandTest, TheClosingLinesGoToALogFileAsWell) {
  const ProgramRun run = emulate("a.mem", {"--log-file", "run.log"});

  EXPECT_EQ(*read_text("run.log"), run.out);
}

TEST_F(EmulateCommandTest, WritesTheStageProfile) {
  write("a.asm",
        "; GPT-OSS router\nS_ADDI_INT gp1, gp0, 7\n; gather pair=4\nS_ST_INT gp1, gp0, 2\n");

  ASSERT_EQ(emulate("a.mem", {"--stage-profile-asm", "a.asm"}).status, 0);

  const auto profile = nlohmann::json::parse(*read_text("stage_profile.json"));
  EXPECT_EQ(profile.at("stages").at("router_topk").at("instructions"), 1);
  EXPECT_EQ(profile.at("pairs").at("4").at("instructions"), 1);
}

TEST_F(EmulateCommandTest, WarnsOnlyWhenAsked) {
  write("mask.mem", "0x00004013\n");  // V_EXP_V gp0, gp0 with 1 in the rs2 field

  EXPECT_THAT(emulate("mask.mem").err, testing::Not(HasSubstr("lost-mask")));
  EXPECT_THAT(
      emulate("mask.mem", {"--warn-dialect"}).err,
      HasSubstr(
          "V_EXP_V gp0, gp0, 0: the mask stands in the rs2 field and is ignored (lost-mask)"));
}

TEST_F(EmulateCommandTest, PortsAProgramAndSaysWhatItDid) {
  write("sub.asm", "S_ADDI_INT gp1, gp0, 64\nV_SUB_VV gp0, gp0, gp1, 0\n");

  const ProgramRun run =
      run_program({"port", "sub.asm", "--settings", "settings.toml", "-o", "ported.mem"});

  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("rs-sub-order    pc 1: V_SUB_VV gp0, gp0, gp1, 0"));
  EXPECT_THAT(run_program({"disasm", "ported.mem"}).out, HasSubstr("V_SUB_VV gp0, gp1, gp0, 0"));
}

TEST_F(EmulateCommandTest, WhatCannotBePortedIsStatusOne) {
  write("store.asm", "H_STORE_V gp0, gp0, a0, 0, 0\n");

  const ProgramRun run =
      run_program({"port", "store.asm", "--settings", "settings.toml", "--json"});

  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(nlohmann::json::parse(run.out).at("equivalent"), false);
}

}  // namespace
}  // namespace plena
