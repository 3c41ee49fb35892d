// plena run --timing as a user meets it. Cycles are counted by hand from the latencies of the
// published machine: integer 3, C_* 3, V_ADD 11, V_EXP 12.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/base/scratch_folder.h"
#include "plena/cli/run_program.h"

namespace plena {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Json = nlohmann::json;

// Issues at 0 and 1; each takes 3 cycles.
constexpr const char* kTwo = "S_ADDI_INT gp1, gp0, 1\nS_ADDI_INT gp2, gp0, 2\n";

// A loop in a region, transfers, arithmetic.
constexpr const char* kStream =
    ".region setup\n"
    "S_ADDI_INT gp1, gp0, 16384\n"
    "C_SET_SCALE_REG gp1\n"
    "C_SET_ADDR_REG a1, gp0, gp0\n"
    ".endregion\n"
    ".region product\n"
    "C_LOOP_START gp2, 3\n"
    "H_PREFETCH_M gp0, gp3, a1, 0, 0\n"
    "S_ADDI_INT gp3, gp3, 4096\n"
    "M_MV 0, gp0, gp0\n"
    "C_LOOP_END gp2\n"
    "M_MV_WO gp0, 64\n"
    ".endregion\n"
    "V_EXP_V gp0, gp0, 0\n";

class TimingCommandTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return scratch_.file(name); }
  std::string write(const std::string& name, std::string_view text) {
    EXPECT_TRUE(write_text(path(name), text));
    return path(name);
  }
  ProgramRun run_timed(const std::string& program, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", program, "--timing"});
    return run_program(arguments);
  }
  std::string refusal(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", write("two.asm", kTwo)});
    const auto run = run_program(arguments);
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_THAT(run.out, IsEmpty());
    return run.err;
  }

 private:
  ScratchFolder scratch_;
};

TEST_F(TimingCommandTest, EachProfileCountsItsOwnWay) {
  const auto program = write("two.asm", kTwo);
  EXPECT_THAT(run_timed(program, {"serial"}).out, HasSubstr("\n6 cycles (0.006 us at 1000 MHz"));
  EXPECT_THAT(run_timed(program, {"pipelined"}).out, HasSubstr("\n4 cycles "));
  EXPECT_THAT(run_timed(program, {"ideal"}).out, HasSubstr("\n3 cycles "));
  EXPECT_THAT(run_timed(program, {"plena-rs"}).out, HasSubstr("profile plena-rs"));
  EXPECT_THAT(run_timed(program, {"none"}).out, Not(HasSubstr("cycles")));
}

TEST_F(TimingCommandTest, AProfileOfTheUsersOwnIsAFile) {
  const auto profile = write("mine.toml",
                             "base = \"pipelined\"\n"
                             "clock_mhz = 500\n"
                             "picojoules_per_byte = 2\n"
                             "[[class]]\n"
                             "instructions = [\"S_ADDI_INT\"]\n"
                             "latency = \"BLEN + 6\"\n"
                             "interval = 5\n"
                             "picojoules = 3.0\n");
  // Issues at 0 and 5, each takes 10 cycles of 2 ns; 2 times 3 picojoules.
  const auto run = run_timed(write("two.asm", kTwo), {profile, "--stats"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr(" 15  (0.030 us at 500 MHz, profile " + profile),
                             HasSubstr("0.000  microjoules")));
  const auto json = Json::parse(run_timed(path("two.asm"), {profile, "--json"}).out);
  EXPECT_EQ(json.at("timing").at("picojoules"), 6.0);
}

TEST_F(TimingCommandTest, StatisticsSayWhereEveryCycleWent) {
  const auto run =
      run_timed(write("stream.asm", kStream), {"pipelined", "--stats", "--hbm-preset", "ideal"});
  EXPECT_EQ(run.status, 0) << run.err;
  for (const char* section :
       {"lower bounds", "where the cycles went", "units  ", "most expensive instructions",
        "most expensive loops", "regions", "the binding one", "HBM data"}) {
    EXPECT_THAT(run.out, HasSubstr(section));
  }
  EXPECT_THAT(run.out, HasSubstr("line 10    M_MV 0, gp0, gp0"));
  EXPECT_THAT(run.out, HasSubstr("3 iterations  line 7 to line 11"));
  EXPECT_THAT(run.out, HasSubstr("product"));
}

TEST_F(TimingCommandTest, StatisticsListTheTenMostExpensive) {
  std::string text;
  for (int n = 0; n < 12; ++n)
    text += "C_LOOP_START gp1, 2\nS_ADD_INT gp2, gp2, gp2\nC_LOOP_END gp1\n";
  const auto run = run_timed(write("loops.asm", text), {"pipelined", "--stats"});
  const std::size_t loops = run.out.find("most expensive loops");
  ASSERT_NE(loops, std::string::npos);
  EXPECT_EQ(std::ranges::count(run.out.substr(loops), '\n'), 1 + 10);
}

TEST_F(TimingCommandTest, JsonSumsToTheTotal) {
  const auto run = run_timed(write("stream.asm", kStream), {"pipelined", "--json"});
  EXPECT_EQ(run.status, 0) << run.err;
  const Json timing = Json::parse(run.out).at("timing");
  const auto cycles = timing.at("cycles").get<std::uint64_t>();

  std::uint64_t instructions = 0;
  for (const auto& instruction : timing.at("instructions"))
    instructions += instruction.at("cycles").get<std::uint64_t>();
  EXPECT_EQ(instructions, cycles);
  std::uint64_t causes = 0;
  for (const auto& cause : timing.at("causes")) causes += cause.get<std::uint64_t>();
  EXPECT_EQ(causes, cycles);
  // Everything but the last instruction is in a region.
  std::uint64_t regions = timing.at("instructions").back().at("cycles").get<std::uint64_t>();
  for (const auto& region : timing.at("regions"))
    regions += region.at("cycles").get<std::uint64_t>();
  EXPECT_EQ(regions, cycles);

  EXPECT_EQ(timing.at("loops").at(0).at("iterations"), 3);
  EXPECT_EQ(timing.at("roofline").at("multiply_adds"), 3 * 64 * 64);
  EXPECT_EQ(timing.at("roofline").at("bounds_cycles").at("array"), 3 * 16);
  // 64 rows of 64 elements and 8 scales: 2 + 1 bursts each.
  EXPECT_EQ(timing.at("hbm").at("bytes_read"), 3 * 64 * 3 * 32);
  EXPECT_EQ(timing.at("hbm").at("memory"), "hbm2-2000");
}

TEST_F(TimingCommandTest, TheMemoryIsAChoice) {
  const auto program = write("stream.asm", kStream);
  const auto cycles = [&](const char* preset) {
    const auto run = run_timed(program, {"pipelined", "--json", "--hbm-preset", preset});
    EXPECT_EQ(run.status, 0) << run.err;
    return Json::parse(run.out).at("timing").at("cycles").get<std::uint64_t>();
  };
  const auto ideal = cycles("ideal");
  for (const char* preset : {"hbm2-1600", "hbm2-2000", "hbm2-2400", "hbm3-6400"})
    EXPECT_GT(cycles(preset), ideal) << preset;
}

TEST_F(TimingCommandTest, AClockNeverChangesAValue) {
  const auto program = write("double.asm", "S_ADDI_INT gp1, gp0, VLEN\nV_EXP_V gp1, gp0, 0\n");
  EXPECT_EQ(run_program({"run", program, "--dump", "vram=" + path("none.bin")}).status, 0);
  for (const char* profile : {"serial", "pipelined", "ideal"}) {
    EXPECT_EQ(run_timed(program, {profile, "--dump", "vram=" + path("timed.bin")}).status, 0);
    EXPECT_EQ(read_file(path("timed.bin")).value(), read_file(path("none.bin")).value()) << profile;
  }
}

TEST_F(TimingCommandTest, ATrapsCyclesAreThoseUpToIt) {
  const auto program = write("trap.asm", std::string(kTwo) + "V_EXP_V gp1, gp1, 0\n");
  const auto run = run_timed(program, {"pipelined"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("trapped at pc 2 after 2 instructions\n4 cycles "));
}

TEST_F(TimingCommandTest, BadRequestsAreOneErrorAndStatusTwo) {
  EXPECT_THAT(refusal({"--timing", "pipelned"}), HasSubstr("did you mean pipelined?"));
  EXPECT_THAT(refusal({"--timing", "fast"}), HasSubstr("serial, pipelined, ideal, plena-rs"));
  EXPECT_THAT(refusal({"--timing", path("missing.toml")}), HasSubstr("missing.toml"));
  EXPECT_THAT(refusal({"--timing", "pipelined", "--hbm-preset", "hbm9"}), HasSubstr("hbm3-6400"));
  EXPECT_THAT(refusal({"--hbm-preset", "ideal"}), HasSubstr("add --timing pipelined"));
  EXPECT_THAT(refusal({"--timing", "plena-rs", "--hbm-preset", "ideal"}),
              HasSubstr("a memory of its own"));
  const auto profile = write("bad.toml",
                             "base = \"pipelined\"\n[[class]]\ninstructions = [\"S_ADDI_INT\"]\n"
                             "latency = \"BLEN - 9\"\n");
  EXPECT_THAT(refusal({"--timing", profile}), HasSubstr(profile + ":4:"));
}

TEST_F(TimingCommandTest, HelpNamesProfilesAndPresets) {
  const auto help = run_program({"run", "--help"}).out;
  EXPECT_THAT(help, AllOf(HasSubstr("serial, pipelined, ideal, plena-rs or a profile file"),
                          HasSubstr("hbm2-1600, hbm2-2000, hbm2-2400, hbm3-6400 or ideal")));
}

}  // namespace
}  // namespace plena
