// Every family against the logits of an independent implementation: published names and keys,
// random weights, f32 arithmetic.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plena/base/shared_data.h"
#include "plena/model/forward_pass.h"
#include "plena/model/mingpt.h"
#include "plena/model/open_model.h"
#include "plena/model/testing/tiny_model.h"

namespace plena {
namespace {

using Ids = std::vector<std::uint32_t>;
using nlohmann::json;
using testing::kLogitTolerance;
using testing::read_json;
using testing::worst_difference;

// The tensors of a recording in minGPT's JSON, by name.
std::map<std::string, std::vector<float>> read_recording(const std::string& path) {
  const json object = read_json(path);
  const auto tensors = read_mingpt_tensors(object, path).value();
  std::map<std::string, std::vector<float>> values;
  for (const auto& [name, stored] : tensors.table) {
    const std::uint64_t size = stored.bytes.size() / sizeof(float);
    values[name] = Tensor::stored(StoredType::F32, stored.bytes, 1, size).values();
  }
  return values;
}

std::uint64_t parameters(const FeedForwardWeights& ffn) {
  return ffn.gate.weight.size() + ffn.up.weight.size() + ffn.down.weight.size();
}

// Of the matrices; vectors are too few to count.
std::uint64_t parameters(const Model& model) {
  std::uint64_t sum = model.embedding.size() + (model.tied ? 0 : model.output.weight.size());
  for (const LayerWeights& layer : model.layers) {
    sum += layer.q.weight.size() + layer.k.weight.size() + layer.v.weight.size() +
           layer.o.weight.size() + layer.router.weight.size() + parameters(layer.ffn);
    for (const FeedForwardWeights& expert : layer.experts) sum += parameters(expert);
  }
  return sum;
}

class TinyModel : public ::testing::TestWithParam<const char*> {};

TEST_P(TinyModel, HasTheReferenceLogits) {
  PLENA_NEEDS_SHARED();
  const std::string folder = shared_data() + "/models/tiny/" + GetParam();
  const auto model = open_model(folder);
  ASSERT_TRUE(model) << model.error().render();
  const auto logits = forward_logits(*model, testing::reference_ids(folder));

  EXPECT_LT(worst_difference(logits, testing::reference_logits(folder)), kLogitTolerance);
}

INSTANTIATE_TEST_SUITE_P(Families, TinyModel,
                         ::testing::Values("llama-gqa", "llama3-rope", "qwen2", "qwen3",
                                           "mistral-sliding", "mixtral", "qwen3-moe", "gemma2",
                                           "gemma3", "gpt-oss", "gpt-oss-mxfp4", "llada"),
                         [](const auto& name) {
                           std::string identifier = name.param;
                           std::replace(identifier.begin(), identifier.end(), '-', '_');
                           return identifier;
                         });

TEST(HuggingFaceFolder, TellsTheSameStoryAsTheCheckpointItWasMadeOf) {
  PLENA_NEEDS_SHARED();
  const std::string models = shared_data() + "/models/";
  const auto tokens =
      read_json(models + "stories260K/reference.json").at("greedy_tokens").get<Ids>();
  const auto model = open_model(models + "stories260K-hf").value();

  auto logits = forward_logits(model, std::span(tokens).first(40));

  auto expected = testing::reference_logits(models + "stories260K");
  expected.resize(40 * 512);
  EXPECT_LT(worst_difference(logits, expected), kLogitTolerance);
}

// Sizes as the publishers state them: billions of parameters in the name.
TEST(PublishedConfigs, OpenWithoutWeightsAtTheirSize) {
  PLENA_NEEDS_SHARED();
  const std::map<std::string, double> billions{
      {"llama-3-8b", 8.03}, {"llama-3.1-8b", 8.03}, {"llama-3.1-70b", 70.6}, {"llama-3.2-1b", 1.24},
      {"qwen2_5_7b", 7.62}, {"qwen3-32b", 32.8},    {"gpt-oss-20b", 20.9},   {"llada-8b", 8.03}};
  for (const auto& [name, expected] : billions) {
    const auto path = shared_data() + "/config/model_lib/" + name + ".json";
    const auto model = open_model(path, {.random_weights = 1});
    ASSERT_TRUE(model) << model.error().render();
    EXPECT_NEAR(static_cast<double>(parameters(*model)) / 1e9, expected, expected / 200) << name;
  }
}

// The intermediate values of a run of minGPT itself on three rows of digits.
TEST(MinGpt, SortsDigitsAsItsRecordingDoes) {
  PLENA_NEEDS_SHARED();
  const std::string folder = shared_data() + "/models/gpt-nano-sort/";
  const auto model = open_model(folder + "gpt-nano-sort-model.json");
  ASSERT_TRUE(model) << model.error().render();
  const auto recording = read_recording(folder + "gpt-nano-sort-t0-partials.json");
  const auto rows = recording.at("idx");
  const auto expected = recording.at("lm_head");
  const std::size_t length = 11;

  std::vector<float> logits;
  for (std::size_t row = 0; row < rows.size() / length; ++row) {
    const Ids ids(rows.begin() + static_cast<std::ptrdiff_t>(row * length),
                  rows.begin() + static_cast<std::ptrdiff_t>((row + 1) * length));
    const auto some = forward_logits(*model, ids);
    logits.insert(logits.end(), some.begin(), some.end());
  }

  EXPECT_LT(worst_difference(logits, expected), kLogitTolerance);
}

}  // namespace
}  // namespace plena
