// plena run --trace and --report as a user meets it: files that are whole whatever happens to the
// run.
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>

#include "plena/base/files.h"
#include "plena/base/scratch_folder.h"
#include "plena/cli/run_program.h"
#include "plena/observe/testing/decoded_trace.h"

namespace plena {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The body sets its own counter: it never ends.
constexpr const char* kEndless = "C_LOOP_START gp1, 2\nS_ADDI_INT gp1, gp0, 2\nC_LOOP_END gp1, 0\n";
constexpr const char* kShort = "S_ADDI_INT gp1, gp0, 64\nS_ADD_INT gp2, gp1, gp1\n";

class TimelineCommandTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return scratch_.path() / name; }
  std::string write(const std::string& name, std::string_view text) {
    EXPECT_TRUE(write_text(path(name), text));
    return path(name);
  }
  // Bytes of all files in the folder whose names begin so.
  [[nodiscard]] std::uintmax_t bytes_of(const std::string& beginning) const {
    std::uintmax_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(scratch_.path())) {
      std::error_code vanished;
      if (!entry.path().filename().string().starts_with(beginning)) continue;
      const auto size = entry.file_size(vanished);
      if (!vanished) bytes += size;
    }
    return bytes;
  }

 private:
  ScratchFolder scratch_;
};

TEST_F(TimelineCommandTest, ATraceBringsThePipelinedClockWithIt) {
  const auto program = write("short.asm", kShort);
  const auto run = run_program({"run", program, "--trace", path("t.pftrace")});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("profile pipelined"));
  const DecodedTrace trace = decode_trace(path("t.pftrace"));
  EXPECT_THAT(trace.process, HasSubstr("short.asm"));
  EXPECT_EQ(trace.on("scalar int").size(), 2U);
}

TEST_F(TimelineCommandTest, AFullDiskStopsTheRunWithAnError) {
  const auto program = write("endless.asm", kEndless);
  const auto run = run_program({"run", program, "--trace", "/dev/full"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("cannot write /dev/full"));
}

TEST_F(TimelineCommandTest, CtrlCLeavesATraceOfWhatRan) {
  const auto program = write("endless.asm", kEndless);
  const auto trace = path("t.pftrace");
  const pid_t child = ::fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    ::execl(PLENA_PROGRAM, "plena", "run", program.c_str(), "--hbm-preset", "ideal", "--timing",
            "pipelined", "--trace", trace.c_str(), nullptr);
    ::_exit(127);
  }
  for (int tries = 0; tries < 60'000 && bytes_of("t.pftrace") == 0; ++tries) ::usleep(1000);
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);

  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_GT(decode_trace(trace).on("scalar int").size(), 1000U);
}

TEST_F(TimelineCommandTest, AProfileWithoutUnitsCannotBeTraced) {
  const auto program = write("short.asm", kShort);
  const auto run = run_program({"run", program, "--timing", "ideal", "--trace", path("t.pftrace")});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("as many units as wanted"));
  EXPECT_FALSE(fs::exists(path("t.pftrace")));
}

TEST_F(TimelineCommandTest, AReportAndATraceOfOneRunAgree) {
  const auto program = write("short.asm", kShort);
  const auto run = run_program(
      {"run", program, "--report", path("r.html"), "--trace", path("t.pftrace"), "--stats"});
  EXPECT_EQ(run.status, 0) << run.err;
  const auto page = read_text(path("r.html"));
  ASSERT_TRUE(page);
  EXPECT_THAT(*page, HasSubstr("\"cycles\":6"));  // S_ADD_INT issues at 3 and takes 3
  EXPECT_THAT(*page, HasSubstr("S_ADD_INT gp2, gp1, gp1"));
  EXPECT_EQ(decode_trace(path("t.pftrace")).on("scalar int").back().from, 3U);
}

TEST_F(TimelineCommandTest, AReportThatCannotBeWrittenIsAnErrorBeforeTheRun) {
  const auto program = write("endless.asm", kEndless);
  const auto run = run_program({"run", program, "--report", path("nowhere/r.html")});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("r.html"));
}

TEST_F(TimelineCommandTest, ATrappedRunIsReportedUpToItsTrap) {
  const auto program = write("bad.asm", "S_ADDI_INT gp1, gp0, 7\nV_EXP_V gp0, gp1, 0\n");
  const auto run = run_program({"run", program, "--report", path("r.html")});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(*read_text(path("r.html")), HasSubstr("\"cycles\":3"));
}

}  // namespace
}  // namespace plena
