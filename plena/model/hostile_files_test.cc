// Files that are damaged or lie: every importer answers with an error, or a model whose tensors can
// be read (sanitizer builds see what is read outside a file).
#include <filesystem>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plena/base/scratch_folder.h"
#include "plena/base/shared_data.h"
#include "plena/model/gguf.h"
#include "plena/model/model_tokenizer.h"
#include "plena/model/open_model.h"
#include "plena/model/testing/gguf_writer.h"
#include "plena/model/tokenizer.h"

namespace plena {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

// A Llama of one layer, hidden 4, two heads.
json small_config() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"hidden_size", 4},
          {"num_attention_heads", 2},
          {"num_hidden_layers", 1},
          {"intermediate_size", 6},
          {"vocab_size", 8},
          {"max_position_embeddings", 16},
          {"tie_word_embeddings", true},
          {"rope_scaling",
           {{"rope_type", "llama3"},
            {"factor", 8},
            {"low_freq_factor", 1},
            {"high_freq_factor", 4},
            {"original_max_position_embeddings", 8}}}};
}

const std::vector<std::pair<std::string, std::vector<std::uint64_t>>>& small_tensors() {
  static const std::vector<std::pair<std::string, std::vector<std::uint64_t>>> kTensors{
      {"model.embed_tokens.weight", {8, 4}},
      {"model.norm.weight", {4}},
      {"model.layers.0.input_layernorm.weight", {4}},
      {"model.layers.0.self_attn.q_proj.weight", {4, 4}},
      {"model.layers.0.self_attn.k_proj.weight", {4, 4}},
      {"model.layers.0.self_attn.v_proj.weight", {4, 4}},
      {"model.layers.0.self_attn.o_proj.weight", {4, 4}},
      {"model.layers.0.post_attention_layernorm.weight", {4}},
      {"model.layers.0.mlp.gate_proj.weight", {6, 4}},
      {"model.layers.0.mlp.up_proj.weight", {6, 4}},
      {"model.layers.0.mlp.down_proj.weight", {4, 6}}};
  return kTensors;
}

json small_header() {
  json header = json::object();
  std::uint64_t offset = 0;
  for (const auto& [name, shape] : small_tensors()) {
    std::uint64_t bytes = 2;
    for (const std::uint64_t size : shape) bytes *= size;
    header[name] = {
        {"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  return header;
}

Bytes safetensors_file(const std::string& header) {
  Bytes file;
  for (int shift = 0; shift < 64; shift += 8) {
    file.push_back(static_cast<std::uint8_t>(std::uint64_t{header.size()} >> shift));
  }
  file.insert(file.end(), header.begin(), header.end());
  file.resize(file.size() + 512, 0x3F);
  return file;
}

class HostileFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    write("config.json", small_config().dump());
    write("model.safetensors", safetensors_file(small_header().dump()));
  }

  void write(const std::string& name, const Bytes& bytes) {
    ASSERT_TRUE(write_file(scratch_.file(name), bytes));
  }
  void write(const std::string& name, const std::string& text) {
    write(name, Bytes(text.begin(), text.end()));
  }

  std::string rejection() const {
    const auto model = open_model(scratch_.path().string());
    if (model) return "accepted";
    EXPECT_EQ(exit_status(model.error().code), 2);
    return model.error().message + "; " + model.error().hint;
  }

  std::string rejection_with_header(const std::function<void(json&)>& change) {
    json header = small_header();
    change(header);
    write("model.safetensors", safetensors_file(header.dump()));
    return rejection();
  }

  std::string rejection_with_config(const std::function<void(json&)>& change) {
    json config = small_config();
    change(config);
    write("config.json", config.dump());
    return rejection();
  }

  ScratchFolder scratch_;
};

void read_everything(const Model& model) {
  (void)model.embedding.values();
  (void)model.output.weight.values();
  for (const LayerWeights& layer : model.layers) {
    for (const Linear* map : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.ffn.gate,
                              &layer.ffn.up, &layer.ffn.down}) {
      (void)map->weight.values();
      (void)map->bias.values();
    }
  }
}

TEST_F(HostileFolder, IsReadWhenItIsWhole) {
  const auto model = open_model(scratch_.path().string());
  ASSERT_TRUE(model) << model.error().render();
  EXPECT_EQ(model->layers.size(), 1U);
  read_everything(*model);
}

TEST_F(HostileFolder, ListsTheKnownArchitectures) {
  const auto reason =
      rejection_with_config([](json& config) { config["architectures"] = {"MambaForCausalLM"}; });
  EXPECT_THAT(reason, HasSubstr("unknown architecture MambaForCausalLM"));
  EXPECT_THAT(reason, HasSubstr("LlamaForCausalLM, MistralForCausalLM"));
  EXPECT_THAT(rejection_with_config([](json& config) { config.erase("architectures"); }),
              HasSubstr("names no architecture"));
}

TEST_F(HostileFolder, NamesTheKeyThatIsWrong) {
  const auto with = [&](const char* key, const json& value) {
    return rejection_with_config([&](json& config) { config[key] = value; });
  };
  EXPECT_THAT(with("hidden_size", -4), HasSubstr("hidden_size is -4"));
  EXPECT_THAT(with("hidden_size", "4"), HasSubstr("hidden_size is \"4\""));
  EXPECT_THAT(with("hidden_size", 1e300), HasSubstr("hidden_size is 1e+300"));
  EXPECT_THAT(with("num_hidden_layers", 4000000000U), HasSubstr("num_hidden_layers is"));
  EXPECT_THAT(with("num_hidden_layers", 2), HasSubstr("no tensor model.layers.1"));
  EXPECT_THAT(with("num_attention_heads", 3), HasSubstr("the shape"));
  EXPECT_THAT(with("rms_norm_eps", "small"), HasSubstr("rms_norm_eps is \"small\""));
  EXPECT_THAT(with("rms_norm_eps", -1), HasSubstr("out of range"));
  EXPECT_THAT(with("rope_theta", 0), HasSubstr("rope_theta is 0"));
  EXPECT_THAT(with("hidden_act", "relu"), HasSubstr("hidden_act is relu"));
  EXPECT_THAT(with("eos_token_id", 99), HasSubstr("token 99 of a vocabulary of 8"));
  EXPECT_THAT(with("rope_scaling", {{"rope_type", "longrope"}}), HasSubstr("of kind longrope"));
  EXPECT_THAT(with("rope_scaling", {{"rope_type", "yarn"}, {"factor", 0}}),
              HasSubstr("factor is 0"));
}

TEST_F(HostileFolder, EndsBeforeNestingExhaustsTheStack) {
  const std::string deep(1'000'000, '[');
  write("config.json", R"({"architectures":)" + deep + "}");
  EXPECT_THAT(rejection(), HasSubstr("nested more than 100 deep"));
}

TEST_F(HostileFolder, NamesTheTensorThatIsWrong) {
  const std::string q = "model.layers.0.self_attn.q_proj.weight";
  const auto with = [&](const char* key, const json& value) {
    return rejection_with_header([&](json& header) { header[q][key] = value; });
  };
  EXPECT_THAT(with("dtype", "I16"), HasSubstr(q + " is stored as I16"));
  EXPECT_THAT(with("dtype", "F99"), HasSubstr("dtype F99"));
  EXPECT_THAT(with("shape", {2, 8}), HasSubstr("[2, 8]"));
  EXPECT_THAT(with("shape", {4, 5}), HasSubstr("not what its shape asks for"));
  EXPECT_THAT(with("shape", {1ULL << 62, 4}), HasSubstr("not what its shape asks for"));
  EXPECT_THAT(with("data_offsets", {80, 112 + (1ULL << 40)}), HasSubstr("reaches from byte"));
  EXPECT_THAT(with("data_offsets", {112, 80}), HasSubstr("reaches from byte"));
  EXPECT_THAT(with("data_offsets", {0, 32}), HasSubstr("overlap"));
  EXPECT_THAT(with("data_offsets", {-1, 31}), HasSubstr("lacks a shape"));
  EXPECT_THAT(rejection_with_header([&](json& header) { header.erase(q); }),
              HasSubstr("no tensor " + q));
}

TEST_F(HostileFolder, ReadsShardsFromItsOwnFolderAlone) {
  fs::rename(scratch_.file("model.safetensors"), scratch_.file("a.safetensors"));
  json index = {{"weight_map", json::object()}};
  for (const auto& [name, shape] : small_tensors()) index["weight_map"][name] = "a.safetensors";
  write("model.safetensors.index.json", index.dump());
  EXPECT_EQ(rejection(), "accepted");

  index["weight_map"]["model.norm.weight"] = "../a.safetensors";
  write("model.safetensors.index.json", index.dump());
  EXPECT_THAT(rejection(), HasSubstr("lies in no file of the folder"));

  index["weight_map"]["model.norm.weight"] = "b.safetensors";
  write("model.safetensors.index.json", index.dump());
  write("b.safetensors", safetensors_file(small_header().dump()));
  EXPECT_THAT(rejection(), HasSubstr("is in two files"));
}

TEST_F(HostileFolder, SurvivesTruncationAndMutation) {
  const Bytes good = safetensors_file(small_header().dump());
  std::mt19937 random(21);
  for (int round = 0; round < 300; ++round) {
    Bytes file = good;
    if (round % 3 == 0) {
      file.resize(random() % file.size());
    } else {
      const std::size_t range = round % 3 == 1 ? 16 : file.size() - 512;
      for (int change = 0; change < 2; ++change) {
        file[random() % range] = static_cast<std::uint8_t>(random());
      }
    }
    write("model.safetensors", file);
    if (const auto model = open_model(scratch_.path().string())) read_everything(*model);
  }
}

TEST_F(HostileFolder, MakesWeightsUpFromItsConfigAlone) {
  fs::remove(scratch_.file("model.safetensors"));
  EXPECT_THAT(rejection(), HasSubstr("holds no weights"));
  const auto model = open_model(scratch_.file("config.json"), {.random_weights = 1});
  ASSERT_TRUE(model) << model.error().render();
  read_everything(*model);
  EXPECT_EQ(model->layers[0].attention_norm.weight.values(), std::vector<float>(4, 1.0F));
}

Bytes small_gguf() {
  testing::GgufWriter writer;
  writer.text("general.architecture", "llama");
  writer.u32("llama.embedding_length", 4);
  writer.u32("llama.block_count", 1);
  writer.u32("llama.context_length", 16);
  writer.u32("llama.feed_forward_length", 6);
  writer.u32("llama.attention.head_count", 2);
  writer.f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  writer.text("tokenizer.ggml.model", "llama");
  const std::vector<std::string> tokens{"<unk>", "<s>", "</s>", "\u2581",
                                        "a",     "b",   "ab",   "\u2581ab"};
  writer.texts("tokenizer.ggml.tokens", tokens);
  writer.f32s("tokenizer.ggml.scores", std::vector<float>{0, 0, 0, -4, -3, -3, -2, -1});
  writer.i32s("tokenizer.ggml.token_type", std::vector<std::int32_t>{2, 3, 3, 1, 1, 1, 1, 1});
  writer.u32("tokenizer.ggml.bos_token_id", 1);
  writer.u32("tokenizer.ggml.eos_token_id", 2);
  const std::vector<float> values(64, 0.5F);
  const auto tensor = [&](const char* name, std::vector<std::uint64_t> shape) {
    const std::uint64_t size = shape.size() == 1 ? shape[0] : shape[0] * shape[1];
    writer.tensor(name, shape, std::span(values).first(size));
  };
  tensor("token_embd.weight", {8, 4});
  tensor("output_norm.weight", {4});
  tensor("blk.0.attn_norm.weight", {4});
  for (const char* name : {"q", "k", "v", "output"}) {
    tensor(fmt::format("blk.0.attn_{}.weight", name).c_str(), {4, 4});
  }
  tensor("blk.0.ffn_norm.weight", {4});
  tensor("blk.0.ffn_gate.weight", {6, 4});
  tensor("blk.0.ffn_up.weight", {6, 4});
  tensor("blk.0.ffn_down.weight", {4, 6});
  return writer.file();
}

TEST(HostileGguf, IsReadWhenItIsWhole) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("m.gguf");
  ASSERT_TRUE(write_file(path, small_gguf()));
  const auto model = open_model(path);
  ASSERT_TRUE(model) << model.error().render();
  read_everything(*model);

  const auto tokenizer = Tokenizer::parse(find_tokenizer(path, *model).value(), 8, path).value();
  EXPECT_THAT(tokenizer.encode("ab b</s>"), ::testing::ElementsAre(1, 7, 3, 5, 2));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab b")), "ab b");
  EXPECT_THAT(tokenizer.special().ends, ::testing::ElementsAre(2));
}

TEST(HostileGguf, SaysWhereItEnds) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("m.gguf");
  const Bytes good = small_gguf();
  for (std::size_t length = 4; length < good.size(); length += 7) {
    ASSERT_TRUE(write_file(path, std::span(good).first(length)));
    const auto model = open_model(path);
    ASSERT_FALSE(model) << length;
    EXPECT_EQ(exit_status(model.error().code), 2);
  }
}

TEST(HostileGguf, SurvivesMutation) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("m.gguf");
  const Bytes good = small_gguf();
  std::mt19937 random(22);
  for (int round = 0; round < 600; ++round) {
    Bytes file = good;
    for (int change = 0; change < 2; ++change) {
      file[random() % (file.size() - 700)] = static_cast<std::uint8_t>(random());
    }
    ASSERT_TRUE(write_file(path, file));
    const auto model = open_model(path);
    if (!model) continue;
    read_everything(*model);
    const auto bytes = find_tokenizer(path, *model);
    if (!bytes || bytes->empty()) continue;
    const auto tokenizer = Tokenizer::parse(*bytes, model->config.vocab, path);
    if (!tokenizer) continue;
    for (const auto id : tokenizer->encode("ab ba")) EXPECT_LT(id, model->config.vocab);
  }
}

TEST(HostileGguf, NamesTheVersionAndTheArchitecture) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("m.gguf");
  Bytes file = small_gguf();
  file[4] = 2;
  ASSERT_TRUE(write_file(path, file));
  EXPECT_THAT(open_model(path).error().message, HasSubstr("GGUF version 2"));

  testing::GgufWriter writer;
  writer.text("general.architecture", "mamba");
  ASSERT_TRUE(write_file(path, writer.file()));
  EXPECT_THAT(open_model(path).error().render(), HasSubstr("known ones: llama, qwen2"));
}

TEST(HostileMinGpt, SurvivesMutation) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("m.json");
  const std::string good =
      R"({"config":{"model_type":"gpt-nano","n_layer":1,"n_head":1,"n_embd":2,"vocab_size":2,)"
      R"("block_size":2},"lm_head.weight":{"shape":[2,2],"dtype":"torch.float32",)"
      R"("data":"AACAPwAAAEAAAEBAAACAQA=="}})";
  std::mt19937 random(23);
  for (int round = 0; round < 300; ++round) {
    std::string text = good;
    if (round != 0) text[random() % text.size()] = static_cast<char>(random());
    ASSERT_TRUE(write_text(path, text));
    EXPECT_FALSE(open_model(path));
  }
}

}  // namespace
}  // namespace plena
