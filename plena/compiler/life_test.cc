#include "plena/compiler/life.h"

#include <gtest/gtest.h>

namespace plena {
namespace {

// A residual stream 0; a norm 1; hidden 2; logits 3.
Graph small_graph() {
  Graph graph;
  graph.values = {{"residual", Layout::Dense, 8},
                  {"normed", Layout::Dense, 8},
                  {"hidden", Layout::Dense, 16},
                  {"logits", Layout::Dense, 32}};
  graph.logits = 3;
  LayerKind kind;
  kind.operators = {
      NormOp{.from = 0, .to = 1}, FeedForwardOp{.from = 1, .to = 2},
      ProductOp{
          .from = 2, .to = 0, .matrices = {{MatrixRole::Down, Layout::Dense, 8}}, .add = true}};
  graph.kinds = {kind};
  graph.ending.operators = {
      NormOp{.from = 0, .to = 1},
      ProductOp{.from = 1, .to = 3, .matrices = {{MatrixRole::Logits, Layout::Dense, 32}}}};
  return graph;
}

TEST(StepOrder, LetsWhatOneLayerLeavesToTheNextLiveAllTheTime) {
  const Graph graph = small_graph();
  const StepOrder step_order(graph);
  EXPECT_EQ(step_order.describe(step_order.of_value(ProgramEntry::Decode, 0)),
            "decode: setup … logits");
}

TEST(StepOrder, LetsAValueLiveFromItsProductToItsLastReader) {
  const Graph graph = small_graph();
  const StepOrder step_order(graph);
  const Life hidden = step_order.of_value(ProgramEntry::Decode, 2);
  EXPECT_EQ(step_order.describe(hidden), "decode: feed_forward … down");
  EXPECT_FALSE(hidden.meets(step_order.of_value(ProgramEntry::Decode, 3)));
  EXPECT_FALSE(hidden.meets(step_order.of_value(ProgramEntry::Prompt, 2)));
  // The norm's output is read by the feed-forward layer that writes the hidden vector.
  EXPECT_TRUE(hidden.meets(step_order.of_value(ProgramEntry::Decode, 1)));
}

TEST(StepOrder, ExtendsLivesToTheirEntry) {
  const Graph graph = small_graph();
  const StepOrder step_order(graph);
  const Life hidden = step_order.of_value(ProgramEntry::Decode, 2);
  const Life alone = step_order.without_sharing(hidden);
  EXPECT_EQ(step_order.describe(alone), "decode: setup … logits");
  EXPECT_FALSE(alone.meets(step_order.all(ProgramEntry::Prompt)));
  EXPECT_TRUE(step_order.without_sharing({}).endless());
}

// Decoding's ending finishes a prompt, whose own rows are free by then.
TEST(StepOrder, KeepsLayersAndEndingOfAPromptApart) {
  const Graph graph = small_graph();
  const StepOrder step_order(graph);
  const auto of_prompt = [&](Step::Stage stage) {
    return step_order.without_sharing(step_order.where([&](const Step& step) {
      return step.entry == ProgramEntry::Prompt && step.stage == stage;
    }));
  };
  EXPECT_EQ(step_order.describe(of_prompt(Step::Stage::Embedding)), "block: setup … down");
  EXPECT_EQ(step_order.describe(of_prompt(Step::Stage::Ending)), "block: norm … logits");
}

}  // namespace
}  // namespace plena
