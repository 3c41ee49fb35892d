#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/base/scratch_folder.h"
#include "plena/base/shared_data.h"
#include "plena/cli/run_program.h"

namespace plena {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// Eight reads of one row: hand-over 1, ACT to RD 15, seven times nCCDL 4, nCL + nBL 16.
constexpr const char* kCases = R"({"cases": [
  {"id": "row", "n": 8, "trace": {"kind": "counters", "counters": [[1, 0, 32]]}, "map": "row",
   "write": {"rule": "never"}, "when": {"rule": "asap"},
   "result": {"total_cycles": 60, "read_latency": {"mean": 46}}},
  {"id": "slow", "n": 8, "trace": {"kind": "counters", "counters": [[1, 0, 32]]}, "map": "row",
   "write": {"rule": "never"}, "when": {"rule": "asap"}, "result": {"total_cycles": 70}}]})";

class DramCommand : public testing::Test {
 protected:
  DramCommand() { EXPECT_TRUE(write_text(path_, kCases)); }
  ScratchFolder scratch_;
  std::string path_ = scratch_.file("cases.json");
};

TEST_F(DramCommand, ReportsAndComparesEveryCase) {
  const auto run = run_program({"dram", path_, "--policy", "reference"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("row: passed\n  bandwidth   4.27 of 32.00 GB/s (13.3 %), 60 "
                                 "cycles\n  reads       8, latency mean 46.0, 50 % 44, 95 % 60"));
  EXPECT_THAT(run.out, HasSubstr("87.5 % hits: 7 hits, 1 misses, 0 conflicts"));
  EXPECT_THAT(run.out, HasSubstr("slow: FAILED"));
  EXPECT_THAT(run.out, EndsWith("\n1 passed, 1 failed\n"));
}

TEST_F(DramCommand, LetsTheOpenPolicyBeFaster) {
  const auto run = run_program({"dram", path_});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out, EndsWith("\n2 passed, 0 failed\n"));
}

TEST_F(DramCommand, RunsOneCaseByName) {
  const auto run = run_program({"dram", path_, "row", "--policy", "reference", "--json"});
  EXPECT_EQ(run.status, 0);
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["passed"], 1);
  ASSERT_EQ(json["cases"].size(), 1U);
  EXPECT_EQ(json["cases"][0]["result"]["total_cycles"], 60.0);
  EXPECT_EQ(json["cases"][0]["result"]["row"]["hits"], 7);
  EXPECT_EQ(json["cases"][0]["result"]["commands"]["RD"], 8);
}

TEST_F(DramCommand, AToleranceIsANumberFromZero) {
  for (const char* wrong : {"-1", "nan", "half"}) {
    const auto run = run_program({"dram", path_, "--tolerance", wrong});
    EXPECT_EQ(run.status, 2);
    EXPECT_EQ(run.err, fmt::format("error: --tolerance: '{}' is not a number of at least 0\n"
                                   "  hint: plena dram --help\n",
                                   wrong));
  }
}

TEST_F(DramCommand, BadInputIsOneErrorAndStatusTwo) {
  const auto misspelt = run_program({"dram", path_, "slwo"});
  EXPECT_EQ(misspelt.status, 2);
  EXPECT_THAT(misspelt.err, HasSubstr("there is no case 'slwo'"));
  EXPECT_THAT(misspelt.err, HasSubstr("did you mean slow?"));
  EXPECT_EQ(run_program({"dram", path_, "--policy", "closed"}).status, 2);
  EXPECT_EQ(run_program({"dram", path_, "--tolerance", "-1"}).status, 2);
  EXPECT_EQ(run_program({"dram", "no/such/file.json"}).status, 2);
  EXPECT_TRUE(write_text(path_, "{\"n\": 3}"));
  const auto broken = run_program({"dram", path_});
  EXPECT_EQ(broken.status, 2);
  EXPECT_THAT(broken.err, HasSubstr("'trace' is missing"));
}

TEST(DramCommandWithReference, MeetsACaseOfTheReferenceByName) {
  PLENA_NEEDS_SHARED();
  const auto run =
      run_program({"dram", shared_data() + "/dram/reference.json", "hbm3-6400/short/mop/mix50-seq",
                   "--policy", "reference", "--tolerance", "0.01"});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out, EndsWith("\n1 passed, 0 failed\n"));
}

}  // namespace
}  // namespace plena
