// plena eval as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/base/scratch_folder.h"
#include "plena/cli/run_program.h"

namespace plena {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class EvalCommand : public ::testing::Test {
 protected:
  EvalCommand() { EXPECT_TRUE(write_text(text_, "Once upon a time\n<|endoftext|>\nThe end\n")); }

  ProgramRun eval(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"eval", stories_, "--text", text_});
    return run_program(arguments);
  }

  ScratchFolder scratch_;
  std::string text_ = scratch_.file("text.txt");
  std::string stories_ = std::string(PLENA_SOURCE_DIR) + "/models/stories260K/stories260K.bin";
};

TEST_F(EvalCommand, ScoresEachDocumentOnItsOwn) {
  const auto run = eval({"--json"});

  ASSERT_EQ(run.status, 0) << run.err;
  const auto row = nlohmann::json::parse(run.out).at("formats").at(0);
  EXPECT_EQ(row.at("documents"), 2);
  // Without the separator the same words are one document.
  EXPECT_TRUE(write_text(text_, "Once upon a time The end"));
  const auto whole = nlohmann::json::parse(eval({"--json"}).out).at("formats").at(0);
  EXPECT_EQ(whole.at("documents"), 1);
  EXPECT_EQ(whole.at("scored"), row.at("scored"));
}

TEST_F(EvalCommand, ComparesEveryCombinationOfFormats) {
  const auto run = eval({"--weights", "bf16,mxfp4_e2m1", "--scales", "floor,search"});

  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("weights"));
  EXPECT_THAT(run.out, HasSubstr("\nbf16        mxfp8_e4m3  -  "));
  EXPECT_THAT(run.out, HasSubstr("\nmxfp4_e2m1  mxfp8_e4m3  floor  "));
  EXPECT_THAT(run.out, HasSubstr("\nmxfp4_e2m1  mxfp8_e4m3  search  "));
  EXPECT_EQ(std::ranges::count(run.out, '\n'), 4);
  EXPECT_THAT(run.err, HasSubstr("2 documents"));
}

TEST_F(EvalCommand, ComparesBlockSizesOfTypesWithScales) {
  const auto run = eval({"--weights", "bf16,mxint4,mxint8:block64", "--block-sizes", "16,32"});

  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\nbf16            mxfp8_e4m3  -  "));
  EXPECT_THAT(run.out, HasSubstr("\nmxint4:block16  mxfp8_e4m3  floor  "));
  EXPECT_THAT(run.out, HasSubstr("\nmxint4:block32  mxfp8_e4m3  floor  "));
  EXPECT_THAT(run.out, HasSubstr("\nmxint8:block64  mxfp8_e4m3  floor  "));
  EXPECT_EQ(std::ranges::count(run.out, '\n'), 5);
}

TEST_F(EvalCommand, ScoresInBlocksAsTokenByTokenButForRounding) {
  const auto perplexity = [this](std::vector<std::string> arguments) {
    const auto run = eval(std::move(arguments));
    return nlohmann::json::parse(run.out).at("formats").at(0).at("perplexity").get<double>();
  };

  const double blocks = perplexity({"--json"});
  const double tokens = perplexity({"--json", "--block", "1"});

  EXPECT_NE(blocks, tokens);
  EXPECT_NEAR(blocks / tokens, 1, 0.05);
}

TEST_F(EvalCommand, SaysWhatRotationsTurned) {
  const auto run = eval({"--weights", "bf16,mxint4", "--rotate", "off,all"});

  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\nbf16     mxfp8_e4m3  -       off     -  "));
  EXPECT_THAT(run.out, HasSubstr("\nmxint4   mxfp8_e4m3  floor   off     -  "));
  EXPECT_THAT(run.out, HasSubstr("\nmxint4   mxfp8_e4m3  floor   all     residual, values 5/5  "));
  EXPECT_EQ(std::ranges::count(run.out, '\n'), 4);
}

TEST_F(EvalCommand, BadInputIsOneErrorAndStatusTwo) {
  const auto refusal = [this](std::vector<std::string> arguments) {
    const auto run = eval(std::move(arguments));
    EXPECT_EQ(run.status, 2);
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  EXPECT_THAT(refusal({"--window", "513"}), HasSubstr("context of 512"));
  EXPECT_THAT(refusal({"--window", "8", "--stride", "9"}), HasSubstr("leaves tokens between"));
  EXPECT_THAT(refusal({"--weights", "bf61"}), HasSubstr("bf16"));
  EXPECT_THAT(refusal({"--scales", "best"}), HasSubstr("best"));
  EXPECT_THAT(refusal({"--rotate", "some"}), HasSubstr("some"));
  EXPECT_TRUE(write_text(text_, ""));
  EXPECT_THAT(refusal({}), HasSubstr("nothing to score"));
}

}  // namespace
}  // namespace plena
