// GGUF models against reference logits: the files of stories260K, and the small models of other
// families written as GGUF with the names and conventions of llama.cpp's converter.
#include "plena/model/gguf.h"

#include <cstdlib>
#include <map>

#include <gmock/gmock.h>

#include "plena/base/scratch_folder.h"
#include "plena/base/shared_data.h"
#include "plena/model/forward_pass.h"
#include "plena/model/open_model.h"
#include "plena/model/testing/gguf_writer.h"
#include "plena/model/testing/tiny_model.h"

namespace plena {
namespace {

using Ids = std::vector<std::uint32_t>;
using nlohmann::json;
using testing::kLogitTolerance;
using testing::worst_difference;

constexpr std::uint32_t kYarnContext = 4096;  // of the small gpt-oss

// Rows of each head from halves to neighbouring pairs, as the converter does for llama.
std::vector<float> interleave_halves(const Tensor& matrix, std::uint32_t head_dim) {
  std::vector<float> rows;
  std::vector<float> row(matrix.columns());
  for (std::uint32_t r = 0; r < matrix.rows(); ++r) {
    const std::uint32_t in_head = r % head_dim;
    matrix.read_row(r - in_head + in_head / 2 + in_head % 2 * head_dim / 2, row);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

class GgufConversion {
 public:
  GgufConversion(const Model& model, std::string architecture)
      : model_(model), sizes_(model.config), architecture_(std::move(architecture)) {}

  Bytes file() {
    write_sizes();
    writer_.tensor("token_embd.weight", {sizes_.vocab, sizes_.hidden}, model_.embedding.values());
    if (model_.positions) {
      writer_.tensor("position_embd.weight", {sizes_.context, sizes_.hidden},
                     model_.positions.values());
    }
    norm("output_norm", model_.final_norm);
    if (!model_.tied) linear("output", model_.output);
    for (std::size_t i = 0; i < model_.layers.size(); ++i) write_layer(i);
    return writer_.file();
  }

 private:
  [[nodiscard]] std::string key(const char* name) const { return architecture_ + "." + name; }

  void write_sizes() {
    writer_.text("general.architecture", architecture_);
    writer_.u32(key("embedding_length"), sizes_.hidden);
    writer_.u32(key("block_count"), static_cast<std::uint32_t>(sizes_.layers.size()));
    writer_.u32(key("context_length"), sizes_.context);
    writer_.u32(key("feed_forward_length"), sizes_.ffn);
    writer_.u32(key("attention.head_count"), sizes_.heads);
    writer_.u32(key("attention.head_count_kv"), sizes_.kv_heads);
    writer_.u32(key("attention.key_length"), sizes_.head_dim);
    writer_.u32(key("attention.value_length"), sizes_.head_dim);
    writer_.f32(key(sizes_.norm == NormKind::Layer ? "attention.layer_norm_epsilon"
                                                   : "attention.layer_norm_rms_epsilon"),
                sizes_.norm_epsilon);
    if (!sizes_.rotary.empty()) writer_.f32(key("rope.freq_base"), theta(0));
    if (sizes_.score_cap != 0) writer_.f32(key("attn_logit_softcapping"), sizes_.score_cap);
    if (sizes_.logit_cap != 0) writer_.f32(key("final_logit_softcapping"), sizes_.logit_cap);
    if (sizes_.layers[0].window != 0) write_windows();
    if (architecture_ == "gpt-oss") write_yarn();
    if (sizes_.experts.count != 0) {
      writer_.u32(key("expert_count"), sizes_.experts.count);
      writer_.u32(key("expert_used_count"), sizes_.experts.chosen);
      writer_.u32(key("expert_feed_forward_length"), sizes_.experts.hidden);
    }
  }

  void write_windows() {
    writer_.u32(key("attention.sliding_window"), sizes_.layers[0].window);
    std::uint32_t period = 1;
    while (sizes_.layers[period - 1].window != 0) ++period;
    if (architecture_ == "gemma3") {
      writer_.u32(key("attention.sliding_window_pattern"), period);
      writer_.f32(key("rope.freq_base_swa"), theta(1));
    }
  }

  // As config.json of the small model has it.
  void write_yarn() {
    writer_.text(key("rope.scaling.type"), "yarn");
    writer_.f32(key("rope.scaling.factor"), 32);
    writer_.u32(key("rope.scaling.original_context_length"), kYarnContext);
  }

  // From the second frequency, theta^(-2 / head_dim); YaRN leaves it to the first, and gpt-oss's
  // is 150000.
  [[nodiscard]] float theta(std::size_t table) const {
    if (architecture_ == "gpt-oss") return 150000;
    return static_cast<float>(
        std::pow(sizes_.rotary[table].inverse_frequency[1], sizes_.head_dim / -2.0));
  }

  void norm(const std::string& name, const Norm& norm) {
    if (norm) writer_.tensor(name + ".weight", {norm.weight.columns()}, norm.weight.values());
    if (norm.bias) writer_.tensor(name + ".bias", {norm.bias.columns()}, norm.bias.values());
  }

  void linear(const std::string& name, const Linear& map, bool rotary = false) {
    const bool permuted = rotary && architecture_ == "llama";
    writer_.tensor(name + ".weight", {map.weight.rows(), map.weight.columns()},
                   permuted ? interleave_halves(map.weight, sizes_.head_dim) : map.weight.values());
    if (map.bias) writer_.tensor(name + ".bias", {map.bias.columns()}, map.bias.values());
  }

  void write_layer(std::size_t index) {
    const LayerWeights& layer = model_.layers[index];
    const std::string prefix = fmt::format("blk.{}.", index);
    norm(prefix + "attn_norm", layer.attention_norm);
    if (architecture_ == "gpt2") {
      fused(prefix + "attn_qkv", {&layer.q, &layer.k, &layer.v});
    } else {
      linear(prefix + "attn_q", layer.q, true);
      linear(prefix + "attn_k", layer.k, true);
      linear(prefix + "attn_v", layer.v);
    }
    linear(prefix + "attn_output", layer.o);
    norm(prefix + "attn_q_norm", layer.q_norm);
    norm(prefix + "attn_k_norm", layer.k_norm);
    if (layer.sinks) {
      writer_.tensor(prefix + "attn_sinks.weight", {sizes_.heads}, layer.sinks.values());
    }
    norm(prefix + "post_attention_norm",
         architecture_ == "gpt-oss" ? layer.ffn_norm : layer.post_attention_norm);
    if (architecture_ != "gpt-oss") norm(prefix + "ffn_norm", layer.ffn_norm);
    norm(prefix + "post_ffw_norm", layer.post_ffn_norm);
    if (!sizes_.layers[index].experts) {
      if (sizes_.gated) linear(prefix + "ffn_gate", layer.ffn.gate);
      linear(prefix + "ffn_up", layer.ffn.up);
      linear(prefix + "ffn_down", layer.ffn.down);
      return;
    }
    linear(prefix + "ffn_gate_inp", layer.router);
    stack(prefix + "ffn_gate_exps", layer, &FeedForwardWeights::gate);
    stack(prefix + "ffn_up_exps", layer, &FeedForwardWeights::up);
    stack(prefix + "ffn_down_exps", layer, &FeedForwardWeights::down);
  }

  void stack(const std::string& name, const LayerWeights& layer,
             Linear FeedForwardWeights::* part) {
    std::vector<float> weights;
    std::vector<float> biases;
    for (const FeedForwardWeights& expert : layer.experts) {
      append(weights, (expert.*part).weight);
      append(biases, (expert.*part).bias);
    }
    const Tensor& first = (layer.experts[0].*part).weight;
    writer_.tensor(name + ".weight", {layer.experts.size(), first.rows(), first.columns()},
                   weights);
    if (!biases.empty()) {
      writer_.tensor(name + ".bias", {layer.experts.size(), first.rows()}, biases);
    }
  }

  void fused(const std::string& name, std::initializer_list<const Linear*> parts) {
    std::vector<float> weights;
    std::vector<float> biases;
    for (const Linear* part : parts) {
      append(weights, part->weight);
      append(biases, part->bias);
    }
    writer_.tensor(name + ".weight", {weights.size() / sizes_.hidden, sizes_.hidden}, weights);
    writer_.tensor(name + ".bias", {biases.size()}, biases);
  }

  static void append(std::vector<float>& values, const Tensor& tensor) {
    if (!tensor) return;
    const auto more = tensor.values();
    values.insert(values.end(), more.begin(), more.end());
  }

  const Model& model_;
  const ModelConfig& sizes_;
  std::string architecture_;
  testing::GgufWriter writer_;
};

struct Case {
  const char* folder;
  const char* architecture;
};

class TinyGguf : public ::testing::TestWithParam<Case> {};

TEST_P(TinyGguf, HasTheReferenceLogits) {
  PLENA_NEEDS_SHARED();
  const std::string folder = shared_data() + "/models/tiny/" + GetParam().folder;
  const ScratchFolder scratch;
  const std::string path = scratch.file("model.gguf");
  const auto original = open_model(folder).value();
  ASSERT_TRUE(write_file(path, GgufConversion(original, GetParam().architecture).file()));

  const auto model = open_model(path);

  ASSERT_TRUE(model) << model.error().render();
  const auto logits = forward_logits(*model, testing::reference_ids(folder));
  EXPECT_LT(worst_difference(logits, testing::reference_logits(folder)), kLogitTolerance);
}

INSTANTIATE_TEST_SUITE_P(Families, TinyGguf,
                         ::testing::Values(Case{"llama-gqa", "llama"}, Case{"qwen2", "qwen2"},
                                           Case{"qwen3", "qwen3"}, Case{"mixtral", "llama"},
                                           Case{"qwen3-moe", "qwen3moe"}),
                         [](const auto& name) {
                           std::string identifier = name.param.folder;
                           std::replace(identifier.begin(), identifier.end(), '-', '_');
                           return identifier;
                         });

// What a file cannot say follows from the family: its model is the original with that changed.
class ConvertedGguf : public ::testing::Test {
 protected:
  static void expect_same_logits(const Model& original, const std::string& architecture) {
    const ScratchFolder scratch;
    const std::string path = scratch.file("model.gguf");
    ASSERT_TRUE(write_file(path, GgufConversion(original, architecture).file()));
    const auto model = open_model(path);
    ASSERT_TRUE(model) << model.error().render();
    EXPECT_EQ(model->config.gated, original.config.gated);
    Ids ids(std::min(original.config.context, 24U));
    for (std::uint32_t i = 0; i < ids.size(); ++i) ids[i] = i * 37 % original.config.vocab;
    EXPECT_LT(worst_difference(forward_logits(*model, ids), forward_logits(original, ids)),
              kLogitTolerance);
  }
  static Model tiny(const std::string& folder) {
    return open_model(shared_data() + "/models/tiny/" + folder).value();
  }
};

TEST_F(ConvertedGguf, Gemma2ScalesScoresByItsHeads) {
  PLENA_NEEDS_SHARED();
  Model model = tiny("gemma2");
  model.config.score_scale = 1 / std::sqrt(static_cast<float>(model.config.head_dim));
  expect_same_logits(model, "gemma2");
}

TEST_F(ConvertedGguf, Gemma3HasTwoRotaryTables) {
  PLENA_NEEDS_SHARED();
  Model model = tiny("gemma3");
  model.config.score_scale = 1 / std::sqrt(static_cast<float>(model.config.head_dim));
  expect_same_logits(model, "gemma3");
}

TEST_F(ConvertedGguf, GemmaHasNeitherWindowsNorCapsNorNormsBehindBranches) {
  PLENA_NEEDS_SHARED();
  Model model = tiny("gemma2");
  model.config.score_scale = 1 / std::sqrt(static_cast<float>(model.config.head_dim));
  model.config.score_cap = model.config.logit_cap = 0;
  for (LayerConfig& layer : model.config.layers) layer.window = 0;
  for (LayerWeights& layer : model.layers) layer.post_attention_norm = layer.post_ffn_norm = {};
  expect_same_logits(model, "gemma");
}

TEST_F(ConvertedGguf, GptOssClampsAtSeven) {
  PLENA_NEEDS_SHARED();
  Model model = tiny("gpt-oss");
  model.config.swiglu_limit = 7;
  expect_same_logits(model, "gpt-oss");
}

TEST_F(ConvertedGguf, Gpt2KeepsQueriesKeysAndValuesInOneMatrix) {
  PLENA_NEEDS_SHARED();
  Model model =
      open_model(shared_data() + "/models/gpt-nano-sort/gpt-nano-sort-model.json").value();
  model.config.activation = Activation::TanhGelu;
  expect_same_logits(model, "gpt2");
}

TEST(GgufModel, TellsTheStoryOfTheReferenceFromHalves) {
  PLENA_NEEDS_SHARED();
  const std::string models = shared_data() + "/models/";
  auto tokens =
      testing::read_json(models + "stories260K/reference.json").at("greedy_tokens").get<Ids>();
  tokens.resize(40);
  const auto model = open_model(models + "stories260K-gguf/stories260K-F16.gguf");
  ASSERT_TRUE(model) << model.error().render();

  const auto logits = forward_logits(*model, tokens);

  // Halves of weights are 2^-12 off; llama.cpp's logits on this file differ by up to 0.033.
  auto expected = testing::reference_logits(models + "stories260K");
  expected.resize(logits.size());
  EXPECT_LT(worst_difference(logits, expected), 0.033F);
}

TEST(GgufModel, ReadsBlocksOfEightBits) {
  PLENA_NEEDS_SHARED();
  const std::string models = shared_data() + "/models/";
  const auto exact = open_model(models + "stories260K/stories260K.bin").value();
  const auto model = open_model(models + "stories260K-gguf/stories260K-Q8_0.gguf");
  ASSERT_TRUE(model) << model.error().render();
  EXPECT_EQ(model->layers[0].q.weight.type(), StoredType::Q8_0);
  const auto found = model->layers[0].q.weight.values();
  const auto expected = exact.layers[0].q.weight.values();
  const float largest = *std::max_element(expected.begin(), expected.end());
  EXPECT_LT(worst_difference(found, expected), largest / 127);
}

// The published file is large and comes from elsewhere: PLENA_SMOLLM2_GGUF names it.
TEST(GgufModel, AnswersAsSmolLm2Does) {
  PLENA_NEEDS_SHARED();
  const char* path = std::getenv("PLENA_SMOLLM2_GGUF");
  if (path == nullptr) GTEST_SKIP() << "PLENA_SMOLLM2_GGUF names no file";
  const auto model = open_model(path);
  ASSERT_TRUE(model) << model.error().render();
  const auto reference = testing::read_json(shared_data() + "/models/smollm2-135m/reference.json");
  const json& prompt = reference.at("prompts").at(0);
  const json& exact = prompt.at("dequantised_f32");
  Ids ids = prompt.at("prompt_ids").get<Ids>();
  const std::size_t first = ids.size() - 1;
  const Ids answer = exact.at("tokens").get<Ids>();
  ids.insert(ids.end(), answer.begin(), answer.begin() + 3);

  const auto logits = forward_logits(*model, ids);

  for (std::size_t step = 0; step < 4; ++step) {
    for (const json& top : exact.at("top5").at(step)) {
      const float found =
          logits[(first + step) * model->config.vocab + top.at(0).get<std::size_t>()];
      EXPECT_NEAR(found, top.at(1).get<float>(), 1e-3F);
    }
  }
}

}  // namespace
}  // namespace plena
