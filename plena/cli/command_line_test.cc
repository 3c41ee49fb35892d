#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>

#include "plena/base/scratch_folder.h"
#include "plena/cli/run_program.h"
#include "plena/isa/reference.h"

namespace plena {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(CommandLine, WithoutACommandShowsHelpAndFails) {
  const auto run = run_program({});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, HasSubstr("isa"));
}

TEST(CommandLine, HelpAndVersionSucceedEverywhere) {
  EXPECT_EQ(run_program({"--help"}).status, 0);
  EXPECT_THAT(run_program({"--version"}).out, StartsWith("plena "));
  const auto help = run_program({"isa", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("--markdown"));
  EXPECT_THAT(run_program({"isa", "--version"}).out, StartsWith("plena "));
}

TEST(CommandLine, AMistypedCommandSuggestsTheNearOne) {
  const auto run = run_program({"iss"});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err, "error: unknown command 'iss'\n  hint: did you mean isa?\n");
}

TEST(CommandLine, AMistypedOptionSuggestsTheNearOne) {
  const auto run = run_program({"isa", "--markdwon"});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err, "error: unknown option '--markdwon'\n  hint: did you mean --markdown?\n");
}

TEST(CommandLine, AMistypedMnemonicSuggestsTheNearOne) {
  const auto run = run_program({"isa", "V_ADD_V"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("did you mean V_ADD_VV?"));
}

TEST(CommandLine, AnArgumentTooManyIsNamed) {
  const auto run = run_program({"isa", "M_MM", "M_MV"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("'M_MV'"));
}

TEST(CommandLine, AnUnknownSimdTargetIsAnErrorThatListsTheKnownOnes) {
  ::setenv("PLENA_SIMD", "avx1024", 1);
  const auto run = run_program({"isa", "M_MM"});
  ::unsetenv("PLENA_SIMD");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("'avx1024' (PLENA_SIMD)"));
  EXPECT_THAT(run.err, HasSubstr("it has portable"));
}

TEST(CommandLine, ColorIsOnlyWhatWasAskedFor) {
  EXPECT_THAT(run_program({"--color", "always", "iss"}).err, HasSubstr("\x1b["));
  EXPECT_EQ(run_program({"--color", "always", "iss"}).status, 2);
  EXPECT_EQ(run_program({"--color", "pink", "isa"}).status, 2);
}

TEST(CommandLine, ADeviceThatIsFullIsAnError) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  const auto run = run_program({"isa", "--markdown"}, {}, "/dev/full");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("cannot write to standard output"));
}

TEST(CommandLine, AReaderThatGoesAwayIsNoError) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const std::string pipe_path = "/dev/fd/" + std::to_string(ends[1]);
  const auto run = run_program({"isa", "--markdown"}, {}, pipe_path.c_str());
  ::close(ends[1]);
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.err, "");
}

// Waits until whoever reads a pipe has taken all of it.
bool drained(int descriptor) {
  for (int tries = 0; tries < 1000; ++tries) {
    int waiting = 0;
    if (::ioctl(descriptor, FIONREAD, &waiting) == 0 && waiting == 0) return true;
    ::usleep(10'000);
  }
  return false;
}

TEST(CommandLine, CtrlCStopsCleanlyAndLeavesNoFile) {
  const ScratchFolder scratch;
  const std::string output = scratch.file("interrupted.mem");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "C_BREAK\n", 8), 8);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[0], STDIN_FILENO);
    ::execl(PLENA_PROGRAM, PLENA_PROGRAM, "asm", "/dev/stdin", "-o", output.c_str(), nullptr);
    ::_exit(127);
  }
  ASSERT_TRUE(drained(ends[0]));
  ::usleep(200'000);  // until it waits for more
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(ends[0]);
  ::close(ends[1]);

  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_NE(::access(output.c_str(), F_OK), 0);
}

TEST(IsaCommand, PrintsTheReference) {
  EXPECT_EQ(run_program({"isa", "--markdown"}).out, markdown_reference());
  EXPECT_THAT(run_program({"isa", "v_topk"}).out, HasSubstr("--isa plena+moe"));
}

TEST(IsaCommand, JsonHasOneObjectAnInstruction) {
  const auto all = nlohmann::json::parse(run_program({"isa", "--json"}).out);
  EXPECT_EQ(all.size(), instruction_table().size());
  const auto one = nlohmann::json::parse(run_program({"--json", "isa", "M_MM"}).out);
  EXPECT_EQ(one["opcode"], 1);
  EXPECT_EQ(one["operands"].size(), 3U);
}

}  // namespace
}  // namespace plena
