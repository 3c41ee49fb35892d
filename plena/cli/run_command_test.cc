// plena run as a user meets it. Expected values are arithmetic on paper: bf16 1.5 = 0x3FC0,
// 3 = 0x4040, 2.25 = 0x4010.
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/base/npy.h"
#include "plena/base/scratch_folder.h"
#include "plena/base/shared_data.h"
#include "plena/cli/run_program.h"
#include "plena/compiler/image.h"

namespace plena {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// Doubles row 0 of Vector SRAM into row 1.
constexpr const char* kDouble =
    "; doubles a row\n"
    "        S_ADDI_INT gp1, gp0, VLEN\n"
    "        V_ADD_VV   gp1, gp0, gp0, 0\n";

// Reads Vector SRAM at an address that is no multiple of VLEN, on line 3.
constexpr const char* kMisaligned =
    "S_ADDI_INT gp1, gp0, 7\n"
    "S_ST_INT gp1, gp0, 3\n"
    "    V_EXP_V gp0, gp1, 0   ; wrong\n";

class RunCommandTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  std::string write(const std::string& name, std::string_view text) {
    EXPECT_TRUE(write_text(path(name), text));
    return path(name);
  }
  std::string write_floats(const std::string& name, const std::vector<float>& values) {
    const std::vector<std::uint64_t> shape = {values.size()};
    EXPECT_TRUE(write_npy<float>(path(name), shape, values));
    return path(name);
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

 private:
  ScratchFolder scratch_;
  fs::path folder_ = scratch_.path();
};

void expect_usage_error(const ProgramRun& run, const std::string& message) {
  EXPECT_EQ(run.status, 2) << run.err;
  EXPECT_THAT(run.err, HasSubstr(message));
  EXPECT_THAT(run.out, IsEmpty());
}

TEST_F(RunCommandTest, LoadsRunsDumpsAndCompares) {
  const auto program = write("double.asm", kDouble);
  const auto input = write_floats("in.npy", {1.5F, -2.0F});
  const auto expected = write_floats("out.npy", {3.0F, -4.0F});

  const auto run =
      run_program({"run", program, "--load", "vram=" + input, "--dump",
                   "vram=" + path("dump.bin") + "@64:2", "--expect", "vram=" + expected + "@64"});

  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("2 elements match"), HasSubstr("halted after 2 ")));
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_EQ(read_file(path("dump.bin")), (Bytes{0x40, 0x40, 0x80, 0xC0}));
}

TEST_F(RunCommandTest, ADifferenceIsNamedAndFails) {
  const auto program = write("double.asm", kDouble);
  const auto input = write_floats("in.npy", {1.5F});
  const auto expected = write_floats("out.npy", {2.5F});
  const std::vector<std::string> arguments = {
      "run", program, "--load", "vram=" + input, "--expect", "vram=" + expected + "@64"};

  const auto run = run_program(arguments);
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("1 of 1 elements differ; worst at 64 (row 1, lane 0): expected "
                                 "2.5, got 3 (0x4040)"));

  auto tolerant = arguments;
  tolerant.insert(tolerant.end(), {"--rtol", "0.2"});
  EXPECT_EQ(run_program(tolerant).status, 0);
}

TEST_F(RunCommandTest, RunsWords) {
  // S_ADDI_INT gp1, gp0, 5: opcode 0x22, rd at bit 6, imm at bit 14.
  const auto program = write("p.mem", "0x00014062\n");

  const auto run = run_program({"run", program, "--log"});

  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("gp1 = 0x00000005 (5)"));
}

TEST_F(RunCommandTest, ATrapSaysWhereWhatAndWhyAndStillDumps) {
  const auto program = write("bad.asm", kMisaligned);

  const auto run = run_program({"run", program, "--dump", "int=" + path("i.bin") + "@3:1"});

  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, StartsWith(program + ":3:5: error: "));
  EXPECT_THAT(run.err, AllOf(HasSubstr("misaligned_address"), HasSubstr("pc 2"),
                             HasSubstr("V_EXP_V gp0, gp1"), HasSubstr("= 7"),
                             HasSubstr("\n      V_EXP_V gp0, gp1, 0   ; wrong\n"
                                       "      ^~~~~~~~~~~~~~~~~~~\n"),
                             HasSubstr("multiple of")));
  EXPECT_THAT(run.out, HasSubstr("trapped at pc 2 after 2 instructions"));
  EXPECT_EQ(read_file(path("i.bin")), (Bytes{7, 0, 0, 0}));
}

TEST_F(RunCommandTest, ABreakpointIsATrap) {
  const auto run = run_program({"run", write("b.asm", "C_BREAK\n")});

  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("breakpoint"));
}

TEST_F(RunCommandTest, AnIllegalWordTrapsBeforeAnythingRuns) {
  const auto run = run_program({"run", write("p.mem", "0x00014062 0xFFFFFFFF")});

  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("illegal_instruction"), HasSubstr("pc 1")));
  EXPECT_THAT(run.out, HasSubstr("after 0 instructions"));
}

TEST_F(RunCommandTest, TheInstructionBudgetStopsAnEndlessLoop) {
  // The body sets its own counter: it never ends.
  const auto program =
      write("endless.asm", "C_LOOP_START gp1, 2\nS_ADDI_INT gp1, gp0, 2\nC_LOOP_END gp1, 0\n");

  const auto run = run_program({"run", program, "--max-instructions", "100"});

  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("instruction_budget"));
  EXPECT_THAT(run.out, HasSubstr("after 100 instructions"));
}

TEST_F(RunCommandTest, CtrlCStopsCleanlyAndDumpsNothing) {
  const auto program =
      write("endless.asm", "C_LOOP_START gp1, 2\nS_ADDI_INT gp1, gp0, 2\nC_LOOP_END gp1, 0\n");
  const std::string dump = "int=" + path("i.bin");
  const std::string log = "--log=" + path("log.txt");

  const pid_t child = ::fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    ::execl(PLENA_PROGRAM, "plena", "run", program.c_str(), "--dump", dump.c_str(), log.c_str(),
            nullptr);
    ::_exit(127);
  }
  const auto is_running = [&] {
    std::error_code absent;
    const auto size = fs::file_size(path("log.txt"), absent);
    return !absent && size > 0;
  };
  for (int tries = 0; tries < 60'000 && !is_running(); ++tries) ::usleep(1000);
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);

  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(files(), 2U) << "only the program and the log";
}

TEST_F(RunCommandTest, StatisticsCountTheRun) {
  const auto program = write("double.asm", kDouble);

  const auto run = run_program({"run", program, "--stats", "--json"});

  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["stopped"], "halted");
  EXPECT_EQ(json["retired"], 2);
  EXPECT_EQ(json["statistics"]["by_mnemonic"]["V_ADD_VV"], 1);
  EXPECT_EQ(json["statistics"]["vector_lanes"], 64);
  EXPECT_THAT(run_program({"run", program, "--stats"}).out, HasSubstr("V_ADD_VV"));
}

TEST_F(RunCommandTest, JsonCarriesTheTrapAndTheComparison) {
  const auto program = write("bad.asm", kMisaligned);
  const auto expected = write("i.bin", std::string("\x08\0\0\0", 4));

  const auto run = run_program({"run", program, "--json", "--expect", "int=" + expected + "@3"});

  EXPECT_EQ(run.status, 1);
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["stopped"], "trapped");
  EXPECT_EQ(json["trap"]["cause"], "misaligned_address");
  EXPECT_EQ(json["trap"]["pc"], 2);
  EXPECT_EQ(json["trap"]["line"], 3);
  EXPECT_THAT(json["trap"]["instruction"], StartsWith("V_EXP_V gp0, gp1"));
  EXPECT_EQ(json["expectations"][0]["mismatches"], 1);
  EXPECT_EQ(json["expectations"][0]["worst"]["got"], "7 (0x00000007)");
}

TEST_F(RunCommandTest, TheLogGoesToAFileWhenNamed) {
  const auto program = write("double.asm", kDouble);

  const auto run = run_program({"run", program, "--log=" + path("log.txt")});

  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  const auto log = read_text(path("log.txt"));
  ASSERT_TRUE(log);
  EXPECT_THAT(*log, AllOf(HasSubstr("double.asm:3"), HasSubstr("vram[64] = 0 0 0")));
}

TEST_F(RunCommandTest, SettingsChangeTheMachine) {
  const auto program = write("double.asm", kDouble);
  const auto input = write_floats("in.npy", {1.5F});

  const auto run =
      run_program({"run", program, "--set", "VLEN=128", "--set", "VECTOR_SRAM_TYPE=fp32", "--load",
                   "vram=" + input, "--dump", "vram=" + path("out.bin") + "@128:1"});

  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(read_file(path("out.bin")), (Bytes{0, 0, 0x40, 0x40}));
}

TEST_F(RunCommandTest, AnImageBringsItsMachineAndMemories) {
  Image image;
  image.settings.hbm_size = std::uint64_t{1} << 20;
  image.assembly = "S_LD_INT gp1, gp0, 2\nS_ST_INT gp1, gp0, 0\n";
  image.program.words = {encode({.op = Op::S_LD_INT, .rd = 1, .imm = 2}),
                         encode({.op = Op::S_ST_INT, .rd = 1})};
  image.int_mem = {0, 0, 42};
  image.hbm = {{"weights", 16, {7, 8}}};
  image.manifest = {.model = "by hand", .vocab = 1, .context = 1};
  ASSERT_TRUE(save_image(image, path("image")));

  const auto run = run_program({"run", path("image"), "--dump", "int=" + path("i.bin") + "@0:1",
                                "--dump", "hbm=" + path("h.bin") + "@15:3"});

  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(read_file(path("i.bin")), (Bytes{42, 0, 0, 0}));
  EXPECT_EQ(read_file(path("h.bin")), (Bytes{0, 7, 8}));
  expect_usage_error(run_program({"run", path("image"), "--set", "VLEN=128"}), "of its own");
}

TEST_F(RunCommandTest, EveryErrorOfTheAssemblyIsShown) {
  const auto run = run_program({"run", write("e.asm", "V_ADD\nS_ADDI_INT gp16, gp0, 1\n")});

  expect_usage_error(run, "e.asm:1:1: error: ");
  EXPECT_THAT(run.err, HasSubstr("e.asm:2:12: error: "));
}

TEST_F(RunCommandTest, BadProgramsAreOneClearError) {
  expect_usage_error(run_program({"run", path("none.asm")}), "cannot open");
  expect_usage_error(run_program({"run", path("none.mem")}), "cannot open");
  expect_usage_error(run_program({"run", path("")}), "no image");
  expect_usage_error(run_program({"run", write("p.asm", std::string("\x7f"
                                                                    "ELF\0",
                                                                    5))}),
                     "p.asm:1");
  expect_usage_error(run_program({"run", write("p.mem", "0x1G")}), "p.mem");
  expect_usage_error(run_program({"run"}), "PROGRAM");
}

TEST_F(RunCommandTest, BadMemoryRequestsAreOneClearError) {
  const auto program = write("double.asm", kDouble);
  const auto bytes = write("b.bin", "abcd");
  const auto floats = write_floats("f.npy", {1.0F});
  const auto with = [&](const std::string& option, const std::string& value) {
    return run_program({"run", program, option, value});
  };

  expect_usage_error(with("--load", "vrom=" + bytes), "there is no memory 'vrom'");
  expect_usage_error(with("--load", bytes), "no MEM=");
  expect_usage_error(with("--load", "vram=" + bytes + "@x:1"), "cannot open");
  expect_usage_error(with("--load", "vram=" + bytes + "@1z"), "is not an address");
  expect_usage_error(with("--load", "vram=" + bytes + "@0:2"), "a count is for dumps only");
  expect_usage_error(with("--load", "vram=" + path("none.bin")), "cannot open");
  expect_usage_error(with("--load", "vram=" + path("")), "directory");
  expect_usage_error(with("--load", "fp=" + bytes + "@4095"), "do not fit into FP_MEM");
  expect_usage_error(with("--load", "int=" + floats), "takes integers");
  expect_usage_error(with("--load", "vram=" + write("x.npy", "no")), "is not an .npy file");
  expect_usage_error(with("--load", "int=" + write("odd.bin", "abc")), "not whole elements");
  expect_usage_error(with("--expect", "vram=" + path("none.bin")), "cannot open");
  expect_usage_error(with("--expect", "vram=" + write("empty.bin", "")), "no elements");
  expect_usage_error(with("--dump", "int=" + path("d.bin") + "@1024:1"), "do not fit");
  expect_usage_error(with("--dump", "int=" + path("no/d.bin")), "cannot create");
  expect_usage_error(with("--atol", "-1"), "--atol");
  expect_usage_error(with("--rtol", "nan"), "--rtol");
  expect_usage_error(with("--max-instructions", "0"), "--max-instructions");
  expect_usage_error(with("--max-instructions", "many"), "--max-instructions");
  expect_usage_error(with("--log=" + path("no/log"), "--stats"), "cannot open");
  expect_usage_error(with("--set", "VLEN=3"), "VLEN");
  expect_usage_error(with("--isa", "plenty"), "plenty");
  expect_usage_error(with("--dmup", "x"), "did you mean --dump?");
}

TEST_F(RunCommandTest, AFailedDumpLeavesNothing) {
  const auto program = write("double.asm", kDouble);

  const auto run = run_program({"run", program, "--dump", "int=/dev/full"});

  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("cannot write /dev/full"));
}

TEST_F(RunCommandTest, QuietSaysOnlyWhatWentWrong) {
  const auto run = run_program({"run", write("double.asm", kDouble), "--quiet"});

  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out, IsEmpty());
}

// A compiled kernel of the public stack against the reference output of its own test.
TEST_F(RunCommandTest, ComparesAPlenaRsKernelWithItsGoldenTensor) {
  PLENA_NEEDS_SHARED();
  const std::string kernel = shared_data() + "/conformance/kernels/aten_rms_norm_64/";
  const auto run =
      run_program({"run", "--isa", "plena-rs", kernel + "program.mem", "--settings",
                   kernel + "plena_settings.toml", "--mode", "transactional", "--load",
                   "hbm=" + kernel + "hbm.bin", "--load", "fp=" + kernel + "fp_sram.bin",
                   "--expect", "vram=" + kernel + "golden.npy", "--atol", "0.2", "--rtol", "0.2"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("golden.npy: 4096 elements match"));
}

}  // namespace
}  // namespace plena
