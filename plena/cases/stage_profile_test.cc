// Stages from comments, and the report of a run.
#include "plena/cases/stage_profile.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plena/cases/emulator_run.h"

namespace plena {
namespace {

using testing::ElementsAre;

// The stage of an instruction after these comment lines.
Stage stage_after(const std::vector<std::string>& comments) {
  std::string text;
  for (const auto& comment : comments) text += "; " + comment + "\n";
  return stage_labels(text + "S_ADDI_INT gp1, gp0, 0\n").front().stage;
}

TEST(StageLabels, OneForEveryLineThatBeginsWithAMnemonic) {
  const auto labels =
      stage_labels("; text\nS_ADDI_INT gp1, gp0, 0 ; GPT-OSS router\n\n  C_BREAK\n");

  EXPECT_THAT(labels, ElementsAre(StageLabel{}, StageLabel{}));
}

TEST(StageLabels, CommentsBeginStagesWhateverTheirCase) {
  EXPECT_EQ(stage_after({"GPT-OSS Router token 3"}), Stage::RouterTopk);
  EXPECT_EQ(stage_after({"gather pair 1"}), Stage::Gather);
  EXPECT_EQ(stage_after({"Dynamic HBM weight prefetch"}), Stage::ExpertWeightAddress);
  EXPECT_EQ(stage_after({"SubBlock [0][1]: HBM offset = 64"}), Stage::ExpertWeightPrefetch);
  EXPECT_EQ(stage_after({"VRAM Sub Projection: X[0][:] @ W[:][0]"}), Stage::ExpertProjection);
  EXPECT_EQ(stage_after({"VRAM Block Add: a = a + b"}), Stage::ExpertProjection);
  EXPECT_EQ(stage_after({"dynamic expert bias add"}), Stage::ExpertBias);
  EXPECT_EQ(stage_after({"Tile row min FP"}), Stage::ExpertActivation);
  EXPECT_EQ(stage_after({"GPT-OSS VRAM scatter-add"}), Stage::ScatterCombine);
}

TEST(StageLabels, AStageLastsUntilTheNextBegins) {
  EXPECT_EQ(stage_after({"gather pair 1", "something else"}), Stage::Gather);
}

TEST(StageLabels, SomeCommentsDependOnTheStageThatGoesOn) {
  EXPECT_EQ(stage_after({"true-zero VRAM rows"}), Stage::AccumulatorInit);
  EXPECT_EQ(stage_after({"materialize route weight", "true-zero VRAM rows"}),
            Stage::ExpertRouteWeight);
  EXPECT_EQ(stage_after({"VRAM Fill Zero"}), Stage::Other);
  EXPECT_EQ(stage_after({"tile row max fp", "VRAM Matrix Add"}), Stage::ExpertActivation);
}

TEST(StageLabels, AnAllocationBelongsToWhatItsNameSays) {
  EXPECT_EQ(stage_after({"Allocate VRAM Matrix step6_pair0_gather: x"}), Stage::Gather);
  EXPECT_EQ(stage_after({"Allocate VRAM Matrix step6_pair0_route: x"}), Stage::ExpertRouteWeight);
  EXPECT_EQ(stage_after({"Allocate VRAM Matrix step6_pair0_sigmoid"}), Stage::ExpertActivation);
  EXPECT_EQ(stage_after({"Allocate VRAM Matrix step6_pair0_up"}), Stage::ExpertProjection);
}

TEST(StageLabels, APairLastsUntilTheNextOrARouterOrNewAccumulators) {
  const auto labels = stage_labels(
      "; gather pair=12\nA\n; VRAM Block Add\nA\n; step6_pair3_up\nA\n; router token\nA\n");

  EXPECT_THAT(labels,
              ElementsAre(StageLabel{Stage::Gather, 12}, StageLabel{Stage::ExpertProjection, 12},
                          StageLabel{Stage::ExpertProjection, 3},
                          StageLabel{Stage::RouterTopk, std::nullopt}));
}

TEST(StageProfile, AddsUpInstructionsTimeAndTraffic) {
  Settings settings;
  settings.latency["SCALAR_INT_BASIC_CYCLES"] = 3;
  const Machine machine = std::move(*Machine::create(settings));
  StageProfile profile(stage_labels("; gather pair=2\nA\n; router token\nA\n"), settings);
  const Instruction add{.op = Op::S_ADDI_INT};
  const Instruction store{.op = Op::H_STORE_V};

  profile.about_to_run(machine, 0, store);
  profile.moved_row({.write = true, .element_address = 60, .element_bytes = 8});
  profile.retired(machine, 0, store);
  for (int k = 0; k < 3; ++k) profile.retired(machine, 1, add);

  const auto report = nlohmann::json::parse(profile.json());
  EXPECT_EQ(report.at("schema_version"), 1);
  EXPECT_EQ(report.at("label_count"), 2);
  EXPECT_EQ(report.at("total_instructions_executed"), 4);
  EXPECT_DOUBLE_EQ(report.at("total_profiled_seconds"), 9e-9);
  EXPECT_EQ(report.at("total_hbm_bytes_written"), 128);
  const auto& gather = report.at("stages").at("gather");
  EXPECT_EQ(gather.at("instructions"), 1);
  EXPECT_EQ(gather.at("instruction_fraction"), 0.25);
  EXPECT_EQ(gather.at("hbm_bytes_read"), 128);  // a block is read before it is changed
  EXPECT_EQ(report.at("stages").at("router_topk").at("time_fraction"), 1.0);
  EXPECT_EQ(report.at("stages").size(), kStageCount);
  EXPECT_EQ(report.at("pairs").size(), 1U);
  EXPECT_EQ(report.at("pairs").at("2").at("stages").at("gather").at("instructions"), 1);
}

TEST(StageProfile, CountsTheTimeOfTransfers) {
  Settings settings;
  settings.latency["SCALAR_INT_BASIC_CYCLES"] = 3;
  const Machine machine = std::move(*Machine::create(settings));
  const auto forty_later = [](const Machine&, const Instruction&, std::uint64_t now) {
    return now + 40;
  };
  StageProfile profile(stage_labels("; gather pair=2\nA\n; router token\nA\n"), settings,
                       forty_later);

  profile.retired(machine, 0, {.op = Op::H_PREFETCH_V});
  profile.retired(machine, 1, {.op = Op::S_ADDI_INT});
  profile.retired(machine, 0, {.op = Op::H_PREFETCH_V});

  const auto report = nlohmann::json::parse(profile.json());
  EXPECT_DOUBLE_EQ(report.at("total_profiled_seconds"), 83e-9);
  EXPECT_DOUBLE_EQ(report.at("stages").at("gather").at("seconds"), 80e-9);
  EXPECT_DOUBLE_EQ(report.at("stages").at("router_topk").at("seconds"), 3e-9);
}

TEST(StageProfile, NamesStagesInTheirOrder) {
  const Settings settings;
  const std::string text = StageProfile({}, settings).json();

  std::size_t last = 0;
  for (std::size_t k = 0; k < kStageCount; ++k) {
    const std::size_t at = text.find(fmt::format("\"{}\"", stage_name(static_cast<Stage>(k))));
    EXPECT_GT(at, last);
    last = at;
  }
}

}  // namespace
}  // namespace plena
