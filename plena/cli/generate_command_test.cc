// plena generate and plena compile as a user types them, on the models of the repository.
#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/npy.h"
#include "plena/base/scratch_folder.h"
#include "plena/base/shared_data.h"
#include "plena/cli/run_program.h"

namespace plena {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

std::string model(const std::string& name) {
  return std::string(PLENA_SOURCE_DIR) + "/models/" + name;
}

class GenerateCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (root_ / name).string(); }

  std::string write(const std::string& name, std::string_view text) const {
    EXPECT_TRUE(write_text(path(name), text));
    return path(name);
  }

  // A refusal: nothing on stdout, exit status 2, one error.
  static std::string refusal(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "generate");
    const auto run = run_program(arguments);
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("error: "));
    return run.err;
  }

  ScratchFolder scratch_;
  fs::path root_ = scratch_.path() / "model";
  std::string stories_ = model("stories260K/stories260K.bin");
};

TEST_F(GenerateCommand, TellsAStoryAndSumsUpOnStderr) {
  const auto run = run_program(
      {"generate", stories_, "--prompt", "Once upon", "--tokens", "3", "--temperature", "0"});

  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out, "Once upon a time,\n");
  EXPECT_THAT(run.err, HasSubstr("tokens/s"));
  EXPECT_EQ(run_program({"generate", stories_, "--tokens", "1", "--quiet"}).err, "");
}

// The same text as without a clock; cycles of the steps add up to the total.
TEST_F(GenerateCommand, TellsWhatTheMachineTakes) {
  const std::vector<std::string> arguments = {"generate", stories_,    "--prompt",      "Once upon",
                                              "--tokens", "3",         "--temperature", "0",
                                              "--timing", "pipelined", "--hbm-preset",  "ideal"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), arguments.begin(), arguments.end());
    return run_program(more);
  };

  const auto run = with({});
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out, "Once upon a time,\n");
  EXPECT_THAT(run.err, HasSubstr("first token after "));
  EXPECT_THAT(run.err, HasSubstr(" bytes of HBM a token"));
  EXPECT_THAT(with({"--stats"}).err, HasSubstr("most expensive instructions"));

  const auto json = Json::parse(with({"--json"}).out);
  const auto& machine = json.at("machine");
  EXPECT_EQ(machine.at("steps"), json.at("steps"));
  EXPECT_EQ(machine.at("cycles"), json.at("timing").at("cycles"));
  const double tokens = machine.at("tokens_after_the_first");
  EXPECT_DOUBLE_EQ(machine.at("first_token_cycles").get<double>() +
                       tokens * machine.at("cycles_per_token").get<double>(),
                   machine.at("cycles").get<double>());
  EXPECT_NEAR(machine.at("tokens_per_second").get<double>(),
              1e9 / machine.at("cycles_per_token").get<double>(), 1e-6);
  EXPECT_FALSE(machine.contains("picojoules_per_step"));
}

TEST_F(GenerateCommand, EnergyNeedsAProfileThatSaysWhatThingsCost) {
  const auto profile = write("costly.toml", "base = \"pipelined\"\npicojoules_per_byte = 4\n");
  const auto json = Json::parse(
      run_program({"generate", stories_, "--tokens", "2", "--timing", profile, "--json"}).out);

  const double bytes = json.at("timing").at("hbm").at("bytes_read").get<double>() +
                       json.at("timing").at("hbm").at("bytes_written").get<double>();
  EXPECT_DOUBLE_EQ(json.at("machine").at("picojoules_per_step").get<double>(),
                   4 * bytes / json.at("steps").get<double>());
}

TEST_F(GenerateCommand, StatisticsAndPresetsNeedAClock) {
  EXPECT_THAT(refusal({stories_, "--stats"}), HasSubstr("--timing pipelined"));
  EXPECT_THAT(refusal({stories_, "--hbm-preset", "ideal"}), HasSubstr("--timing pipelined"));
  EXPECT_THAT(refusal({stories_, "--timing", "pipelned"}), HasSubstr("pipelned"));
}

TEST_F(GenerateCommand, TheSeedDecidesTheText) {
  const auto text = [this](const char* seed) {
    return run_program({"generate", stories_, "--tokens", "12", "--temperature", "2", "--top-p",
                        "1", "--seed", seed, "--ids"})
        .out;
  };
  EXPECT_EQ(text("5"), text("5"));
  EXPECT_NE(text("5"), text("6"));
}

TEST_F(GenerateCommand, JsonHasIdsTextAndSpeed) {
  const auto run = run_program(
      {"generate", model("stories260K"), "--tokens", "3", "--temperature", "0", "--json"});

  const auto json = Json::parse(run.out);
  EXPECT_EQ(json.at("ids"), Json({1, 403, 407}));
  EXPECT_EQ(json.at("sampled_ids"), Json({403, 407, 261}));
  EXPECT_EQ(json.at("text"), "Once upon a");
  EXPECT_EQ(json.at("end"), "token_limit");
  EXPECT_GT(json.at("host_tokens_per_second").get<double>(), 0);
}

TEST_F(GenerateCommand, FeedsIdsAndSavesTheirLogits) {
  const auto ids = write("ids.json", R"({"greedy_tokens": [1, 403, 407, 261, 378]})");
  const auto run = run_program(
      {"generate", stories_, "--feed", ids, "--tokens", "4", "--json", "--logits", path("l.npy")});

  const auto json = Json::parse(run.out);
  const auto logits = read_npy(path("l.npy")).value();
  EXPECT_EQ(json.at("ids"), Json({1, 403, 407, 261}));
  EXPECT_EQ(json.at("scored"), 3);
  EXPECT_THAT(logits.shape, ElementsAre(4, 512));
  // The perplexity again, from the logits that were saved.
  double nll = 0;
  const auto values = logits.values<float>();
  const std::size_t targets[] = {403, 407, 261};
  for (std::size_t row = 0; row < 3; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < 512; ++i) sum += std::exp(double{values[row * 512 + i]});
    nll += std::log(sum) - double{values[row * 512 + targets[row]]};
  }
  EXPECT_NEAR(json.at("perplexity").get<double>(), std::exp(nll / 3), 1e-6);
}

TEST_F(GenerateCommand, IdsAndTheirJsonCanBeFedAgain) {
  const auto first = run_program({"generate", stories_, "--tokens", "4", "--json"});
  const auto again = run_program(
      {"generate", stories_, "--feed", write("first.json", first.out), "--ids", "--quiet"});

  const auto json = Json::parse(first.out);
  std::string expected;
  for (const auto& id : json.at("ids")) expected += (expected.empty() ? "" : " ") + id.dump();
  EXPECT_EQ(again.out, expected + "\n");
}

TEST_F(GenerateCommand, CompilePrintsItsStages) {
  const auto stage = [&](const char* name) {
    return run_program({"compile", model("aidreams260K"), "--context", "64", "--emit", name}).out;
  };
  EXPECT_THAT(stage("graph"), HasSubstr("residual += [down] hidden"));
  EXPECT_THAT(stage("plan"), HasSubstr("Matrix SRAM, tiles in use:"));
  EXPECT_THAT(stage("asm"), HasSubstr(".region attention"));
  EXPECT_EQ(run_program({"compile", model("aidreams260K")}).status, 2);
}

TEST_F(GenerateCommand, ACompiledImageSaysTheSame) {
  const auto compiled = run_program({"compile", model("aidreams260K"), "-o", path("image")});
  ASSERT_EQ(compiled.status, 0) << compiled.err;

  const auto from_image = run_program({"generate", path("image"), "--tokens", "5", "--ids"});
  const auto from_model =
      run_program({"generate", model("aidreams260K"), "--tokens", "5", "--ids"});

  EXPECT_EQ(from_image.out, from_model.out);
  EXPECT_EQ(from_image.status, 0);
  EXPECT_THAT(refusal({path("image"), "--set", "MLEN=32"}), HasSubstr("is an image"));
}

TEST_F(GenerateCommand, RefusesNumbersOutOfRange) {
  EXPECT_THAT(refusal({stories_, "--tokens", "0"}), HasSubstr("--tokens is 0"));
  EXPECT_THAT(refusal({stories_, "--tokens", "-7"}), HasSubstr("--tokens is -7"));
  EXPECT_THAT(refusal({stories_, "--tokens", "many"}), HasSubstr("many"));
  EXPECT_THAT(refusal({stories_, "--temperature", "-1"}), HasSubstr("--temperature is -1"));
  EXPECT_THAT(refusal({stories_, "--temperature", "nan"}), HasSubstr("--temperature is nan"));
  EXPECT_THAT(refusal({stories_, "--top-p", "1.5"}), HasSubstr("--top-p is 1.5"));
  EXPECT_THAT(refusal({stories_, "--set", "MLEN=7"}), HasSubstr("MLEN = 7"));
}

TEST_F(GenerateCommand, RefusesFilesThatAreNoIds) {
  const auto feed = [&](std::string_view text) {
    return refusal({stories_, "--feed", write("ids.json", text)});
  };
  EXPECT_THAT(feed(""), HasSubstr("holds no token ids"));
  EXPECT_THAT(feed("[]"), HasSubstr("holds no token ids"));
  EXPECT_THAT(feed("[1, -2]"), HasSubstr("holds no token ids"));
  EXPECT_THAT(feed("{\"names\": [1]}"), HasSubstr("holds no token ids"));
  EXPECT_THAT(feed("[1, 512]"), HasSubstr("token 512"));
  EXPECT_THAT(refusal({stories_, "--feed", path("absent.json")}), HasSubstr("absent.json"));
}

TEST_F(GenerateCommand, TellsTheSameStoryFromEveryKindOfFile) {
  PLENA_NEEDS_SHARED();
  for (const char* kind : {"stories260K-hf", "stories260K-gguf/stories260K-F16.gguf"}) {
    const auto run = run_program({"generate", shared_data() + "/models/" + kind, "--prompt",
                                  "Once upon", "--tokens", "3", "--temperature", "0"});
    EXPECT_EQ(run.out, "Once upon a time,\n") << run.err;
  }
}

TEST_F(GenerateCommand, AnswersAChatByTheModelsTemplate) {
  PLENA_NEEDS_SHARED();
  const auto folder = shared_data() + "/models/stories260K-hf";
  fs::copy(folder, root_, fs::copy_options::recursive);
  const auto answer = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"generate", root_.string(),  "--chat",
                                       "--prompt", "upon",          "--tokens",
                                       "3",        "--temperature", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  };
  EXPECT_THAT(answer({}).err, HasSubstr("has no chat template"));

  write("chat_template.jinja",
        "{{ bos_token }}{% for m in messages %}{{ m.content + ' ' * 0 }}{% endfor %}");
  EXPECT_THAT(answer({}).err, HasSubstr("chat template: arithmetic works on integers"));

  write("chat_template.jinja", "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}");
  EXPECT_EQ(answer({"--system", "Once "}).out, " a time,\n");
  EXPECT_EQ(answer({"--system", "Once ", "--batch", "2"}).out, "1:  a time,\n2:  a time,\n");
}

TEST_F(GenerateCommand, CompilesAConfigWithRandomWeights) {
  const auto config = write(
      "config.json", R"({"architectures":["LlamaForCausalLM"],"hidden_size":64,)"
                     R"("num_attention_heads":4,"num_hidden_layers":1,"intermediate_size":64,)"
                     R"("vocab_size":64,"max_position_embeddings":32})");
  EXPECT_THAT(refusal({config}), HasSubstr("holds no weights"));
  EXPECT_THAT(refusal({config, "--random-weights", "1"}), HasSubstr("has no tokenizer"));
  EXPECT_EQ(run_program({"compile", config, "--random-weights", "1", "-o", path("image")}).status,
            0);
}

// Ids need no tokenizer. A model cut to its first layer is that of one layer with the same weights.
TEST_F(GenerateCommand, GoesOnFromIdsWithoutATokenizer) {
  const auto config = [](int layers) {
    return R"({"architectures":["LlamaForCausalLM"],"hidden_size":64,"num_attention_heads":4,)"
           R"("intermediate_size":64,"vocab_size":64,"max_position_embeddings":32,)"
           R"("tie_word_embeddings":true,"num_hidden_layers":)" +
           std::to_string(layers) + "}";
  };
  const auto two = write("two.json", config(2));
  const auto one = write("one.json", config(1));
  const auto prompt = write("ids.json", "[1, 5, 9]");
  const auto ids = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"generate", "--random-weights", "1", "--temperature",
                                       "0",        "--tokens",         "4", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto run = run_program(arguments);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  };

  const auto text = ids({one, "--prompt-ids", prompt});
  EXPECT_THAT(text, StartsWith("1 5 9 "));
  EXPECT_EQ(ids({two, "--layers", "1", "--prompt-ids", prompt}), text);
  EXPECT_EQ(ids({two, "--feed", prompt}), "1 5 9\n");
  EXPECT_THAT(refusal({two, "--random-weights", "1", "--layers", "3"}),
              HasSubstr("has 2 layers, not 3"));
}

TEST_F(GenerateCommand, RefusesWhatIsNoModel) {
  EXPECT_THAT(refusal({}), HasSubstr("MODEL"));
  EXPECT_THAT(refusal({path("absent.bin")}), HasSubstr("absent.bin"));
  EXPECT_THAT(refusal({write("empty.bin", "")}), HasSubstr("it is empty"));
  EXPECT_THAT(refusal({write("model.gguf", "GGUF and more than that")}), HasSubstr("GGUF"));
  EXPECT_THAT(refusal({model("")}), HasSubstr("neither an image nor a folder"));
}

TEST_F(GenerateCommand, RefusesAModelWithoutItsTokenizer) {
  fs::copy(stories_, path("model.bin"));
  EXPECT_THAT(refusal({path("model.bin")}), HasSubstr("no tokenizer beside"));

  write("tokenizer.bin", std::string("\x09\0\0\0", 4));
  EXPECT_THAT(refusal({path("model.bin")}), HasSubstr("holds 0 tokens"));
  EXPECT_EQ(run_program({"generate", path("model.bin"), "--tokens", "1", "--tokenizer",
                         model("stories260K/tok512.bin")})
                .status,
            0);
}

TEST_F(GenerateCommand, CompileRefusesToOverwriteWhatIsNoImage) {
  write("thesis.txt", "ten years");
  const auto run = run_program({"compile", stories_, "-o", root_.string()});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("not an image"));
  EXPECT_TRUE(fs::exists(root_ / "thesis.txt"));
}

// In fp32 a text says the same alone and beside others, which have other seeds.
TEST_F(GenerateCommand, DecodesSeveralTextsSideBySide) {
  std::vector<std::string> common{"--prompt", "Once upon a time", "--tokens", "12", "--json"};
  for (const char* type : {"VECTOR_SRAM_TYPE", "MATRIX_SRAM_TYPE", "SCALAR_FP", "HBM_M_WEIGHT_TYPE",
                           "HBM_M_KV_TYPE", "HBM_V_ACT_TYPE", "HBM_V_KV_TYPE"}) {
    common.insert(common.end(), {"--set", std::string(type) + "=fp32"});
  }
  const auto generate = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"generate", stories_};
    arguments.insert(arguments.end(), common.begin(), common.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto run = run_program(arguments);
    EXPECT_EQ(run.status, 0) << run.err;
    return Json::parse(run.out);
  };

  const Json batch = generate({"--batch", "2"});

  ASSERT_EQ(batch["sequences"].size(), 2U);
  EXPECT_EQ(batch["sequences"][0]["ids"], generate({"--seed", "0"})["ids"]);
  EXPECT_EQ(batch["sequences"][1]["ids"], generate({"--seed", "1"})["ids"]);
  EXPECT_EQ(batch["sequences"][1]["text"], generate({"--seed", "1"})["text"]);
}

TEST_F(GenerateCommand, TakesThePromptsOfABatchFromAFileAndTimesThem) {
  write("prompts.txt", "Once\n\nLily and Ben\r\nThe dragon\n");

  const auto run =
      run_program({"generate", stories_, "--batch", "2", "--prompts", path("prompts.txt"),
                   "--tokens", "4", "--temperature", "0", "--timing", "pipelined", "--json"});

  ASSERT_EQ(run.status, 0) << run.err;
  const Json batch = Json::parse(run.out);
  ASSERT_EQ(batch["sequences"].size(), 3U);
  EXPECT_THAT(batch["sequences"][1]["text"].get<std::string>(), StartsWith("Lily and Ben"));
  EXPECT_THAT(batch["sequences"][2]["text"].get<std::string>(), StartsWith("The dragon"));
  // The first token of each comes with its prompt; the other three are common steps'.
  EXPECT_EQ(batch["machine"]["tokens_after_the_first"], 9);
  EXPECT_GT(batch["machine"]["cycles_per_token"], 1000);
  EXPECT_EQ(batch["machine"]["cycles"], batch["timing"]["cycles"]);
}

TEST_F(GenerateCommand, RefusesPromptsThatAreNone) {
  write("empty.txt", "\n  \n");
  EXPECT_THAT(refusal({stories_, "--batch", "2", "--prompts", path("empty.txt")}),
              HasSubstr("has no prompt"));
  EXPECT_THAT(refusal({stories_, "--prompts", path("empty.txt")}), HasSubstr("--batch"));
  EXPECT_THAT(refusal({stories_, "--batch", "1", "--prompts", path("empty.txt")}),
              HasSubstr("--batch 2"));
  write("long.txt", "Once\n\n" + std::string(3000, 'a') + "\n");
  EXPECT_THAT(refusal({stories_, "--batch", "2", "--prompts", path("long.txt")}),
              AllOf(HasSubstr("long.txt, line 3: "), HasSubstr("model's context of 512")));
  EXPECT_THAT(refusal({stories_, "--batch", "2", "--prompts", path("none.txt")}),
              HasSubstr("none.txt"));
}

TEST_F(GenerateCommand, WantsAnImageThatWasCompiledForTheBatch) {
  ASSERT_EQ(run_program({"compile", stories_, "-o", path("image")}).status, 0);

  EXPECT_THAT(refusal({path("image"), "--batch", "2"}), HasSubstr("plena compile --batch 2"));
  EXPECT_THAT(refusal({stories_, "--batch", "0"}), HasSubstr("--batch"));
}

}  // namespace
}  // namespace plena
