// Every family against the logits of an independent implementation: published names and keys,
// random weights, f32 arithmetic.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/base/npy.h"
#include "plena/base/shared_data.h"
#include "plena/model/mingpt.h"
#include "plena/model/open_model.h"
#include "plena/model/testing/forward_pass.h"

namespace plena {
namespace {

using Ids = std::vector<std::uint32_t>;
using nlohmann::json;

// f32 runs of different order agree within 2e-5; the smallest mistake seen costs 3e-4.
constexpr float kTolerance = 1e-4F;

json read_json(const std::string& path) {
  return json::parse(read_text(path).value());
}

float worst_difference(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return INFINITY;
  float worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    worst = std::max(worst, std::abs(found[i] - expected[i]));
  }
  return worst;
}

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

class TinyModel : public ::testing::TestWithParam<const char*> {};

TEST_P(TinyModel, HasTheReferenceLogits) {
  PLENA_NEEDS_SHARED();
  const std::string folder = shared_data() + "/models/tiny/" + GetParam();
  const auto model = open_model(folder);
  ASSERT_TRUE(model) << model.error().render();
  const json reference = read_json(folder + "/reference.json");
  Ids ids = reference.at("input_ids").get<Ids>();
  if (reference.contains("greedy_ids")) {
    const auto greedy = reference.at("greedy_ids").get<Ids>();
    ids.insert(ids.end(), greedy.begin(), greedy.end());
  } else {
    ASSERT_TRUE(model->special.mask);
    ids.resize(ids.size() + reference.at("gen_length").get<std::size_t>(), *model->special.mask);
  }

  const auto logits = testing::forward_logits(*model, ids);

  const auto expected = read_npy(folder + "/reference_logits.npy").value().values<float>();
  EXPECT_LT(worst_difference(logits, expected), kTolerance);
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

  auto logits = testing::forward_logits(model, std::span(tokens).first(40));

  auto expected = read_npy(models + "stories260K/reference_logits.npy").value().values<float>();
  expected.resize(40 * 512);
  EXPECT_LT(worst_difference(logits, expected), kTolerance);
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
    const auto some = testing::forward_logits(*model, ids);
    logits.insert(logits.end(), some.begin(), some.end());
  }

  EXPECT_LT(worst_difference(logits, expected), kTolerance);
}

}  // namespace
}  // namespace plena
