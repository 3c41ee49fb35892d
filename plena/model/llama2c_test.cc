#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "plena/base/scratch_folder.h"
#include "plena/base/shared_data.h"
#include "plena/model/llama.h"

namespace plena {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A checkpoint of two layers whose tensors count 0, 1, 2, … through the file.
class Checkpoint : public ::testing::Test {
 protected:
  // dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len
  std::vector<std::int32_t> header_{8, 6, 2, 4, 2, 5, 3};
  // vocab*dim + layers * (2 dim + 2 dim^2 + 2 dim*kv_dim + 3 dim*hidden) + dim + seq_len*head_dim
  static constexpr std::size_t kFloats = 5 * 8 + 2 * (16 + 128 + 64 + 144) + 8 + 3 * 2;

  Bytes file(std::size_t floats = kFloats) const {
    std::vector<float> tensors(floats);
    std::iota(tensors.begin(), tensors.end(), 0.0F);
    Bytes bytes(header_.size() * 4 + floats * 4);
    std::memcpy(bytes.data(), header_.data(), header_.size() * 4);
    std::memcpy(bytes.data() + header_.size() * 4, tensors.data(), floats * 4);
    return bytes;
  }

  Result<LlamaModel> open(const Bytes& bytes) const {
    EXPECT_TRUE(write_file(path_, bytes));
    return open_llama2c(path_);
  }

  std::string rejection(const Bytes& bytes) const {
    const auto model = open(bytes);
    return model ? "accepted" : model.error().message + "; " + model.error().hint;
  }

  std::string rejection_with(std::size_t field, std::int32_t value) {
    const auto saved = std::exchange(header_[field], value);
    auto reason = rejection(file());
    header_[field] = saved;
    return reason;
  }

 private:
  ScratchFolder scratch_;
  std::string path_ = scratch_.file("llama2c.bin");
};

TEST_F(Checkpoint, BindsEveryTensorInFileOrder) {
  const auto model = open(file());

  ASSERT_TRUE(model) << model.error().render();
  EXPECT_EQ(model->config.head_dim(), 2);
  EXPECT_EQ(model->config.kv_dim(), 4);
  const LlamaLayer& second = model->layers.at(1);
  EXPECT_EQ(model->token_embedding[0], 0);
  EXPECT_EQ(second.attention_norm[0], 40 + 8);
  EXPECT_EQ(second.wq[0], 56 + 64);
  EXPECT_EQ(second.wk[0], 184 + 32);
  EXPECT_EQ(second.wv[0], 248 + 32);
  EXPECT_EQ(second.wo[0], 312 + 64);
  EXPECT_EQ(second.ffn_norm[0], 440 + 8);
  EXPECT_EQ(second.w1[0], 456 + 48);
  EXPECT_EQ(second.w2[0], 552 + 48);
  EXPECT_EQ(second.w3[0], 648 + 48);
  EXPECT_EQ(second.w3.size(), 48);
  EXPECT_EQ(model->final_norm[0], 744);
  EXPECT_EQ(model->output.data(), model->token_embedding.data());
}

TEST_F(Checkpoint, ANegativeVocabularyMeansAnOutputMatrixOfItsOwn) {
  header_[5] = -5;
  const auto model = open(file(kFloats + 5 * 8));

  ASSERT_TRUE(model) << model.error().render();
  EXPECT_EQ(model->config.vocab, 5);
  EXPECT_EQ(model->output.size(), 40);
  EXPECT_EQ(model->output[0], kFloats);
}

TEST_F(Checkpoint, NamesTheFieldThatIsWrong) {
  constexpr auto kMin = std::numeric_limits<std::int32_t>::min();
  constexpr auto kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_THAT(rejection_with(0, 0), HasSubstr("dim is 0"));
  EXPECT_THAT(rejection_with(0, kMax), HasSubstr("dim is 2147483647"));
  EXPECT_THAT(rejection_with(1, -6), AllOf(HasSubstr("hidden_dim is -6"), HasSubstr("1 … ")));
  EXPECT_THAT(rejection_with(2, kMax), HasSubstr("n_layers is"));
  EXPECT_THAT(rejection_with(3, 0), HasSubstr("n_heads is 0"));
  EXPECT_THAT(rejection_with(3, 3), HasSubstr("do not divide dim"));
  EXPECT_THAT(rejection_with(3, 8), HasSubstr("do not divide dim 8 evenly"));
  EXPECT_THAT(rejection_with(4, 3), HasSubstr("n_kv_heads is 3 with n_heads 4"));
  EXPECT_THAT(rejection_with(4, kMin), HasSubstr("n_kv_heads is -2147483648"));
  EXPECT_THAT(rejection_with(5, kMin), HasSubstr("vocab_size is 2147483648"));
  EXPECT_THAT(rejection_with(5, 0), HasSubstr("vocab_size is 0"));
  EXPECT_THAT(rejection_with(6, -1), HasSubstr("seq_len is -1"));
}

TEST_F(Checkpoint, NamesTheFormatOfAnotherFile) {
  const auto starting_with = [this](std::string_view text) {
    Bytes bytes = file();
    std::memcpy(bytes.data(), text.data(), text.size());
    return rejection(bytes);
  };
  EXPECT_THAT(starting_with("GGUF"), HasSubstr("GGUF"));
  EXPECT_THAT(starting_with("\x32\x34\x6b\x61\x01"), HasSubstr("version 1 or 2"));
  EXPECT_THAT(starting_with("PK\x03\x04"), HasSubstr("zip"));
  EXPECT_THAT(starting_with({"\x40\0\0\0\0\0\0\0{\"", 10}), HasSubstr("safetensors"));
}

TEST_F(Checkpoint, RefusesAFileOfAnotherLength) {
  const Bytes good = file();
  Bytes longer = good;
  longer.push_back(0);

  EXPECT_THAT(rejection({}), HasSubstr("it is empty"));
  EXPECT_THAT(rejection(Bytes(27)), HasSubstr("it has 27 bytes"));
  EXPECT_THAT(rejection(Bytes(good.begin(), good.end() - 1)), HasSubstr("truncated"));
  EXPECT_THAT(rejection(longer), HasSubstr("what follows"));
  EXPECT_EQ(open_llama2c("/nonexistent/model.bin").error().code, ErrorCode::Io);
}

TEST_F(Checkpoint, SurvivesMutatedHeaders) {
  const Bytes good = file();
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 500; ++round) {
    Bytes bytes = good;
    for (int flips = 0; flips < 2; ++flips) {
      bytes[random() % 28] ^= static_cast<std::uint8_t>(1U << (random() % 8));
    }
    const auto model = open(bytes);
    if (!model) {
      ++refused;
      continue;
    }
    // Whatever is accepted stays inside the file.
    EXPECT_EQ(std::accumulate(model->output.begin(), model->output.end(), 0.0F), 780.0F);
  }
  EXPECT_GT(refused, 400);
}

TEST(Llama2c, OpensTheStoryModel) {
  const auto model =
      open_llama2c(std::string(PLENA_SOURCE_DIR) + "/models/stories260K/stories260K.bin");

  ASSERT_TRUE(model) << model.error().render();
  EXPECT_EQ(model->config.layers, 5);
  EXPECT_EQ(model->config.vocab, 512);
  EXPECT_EQ(model->config.context, 512);
}

}  // namespace
}  // namespace plena
