// Buffers that share rows of Vector SRAM: the logits of the program whose buffers lie apart, bit
// for bit.
#include <algorithm>

#include <gtest/gtest.h>

#include "plena/base/shared_data.h"
#include "plena/compiler/compile.h"
#include "plena/config/testing/typed_settings.h"
#include "plena/model/open_model.h"
#include "plena/runtime/session.h"

namespace plena {
namespace {

using testing::settings_of;
using Ids = std::vector<std::uint32_t>;

Session make_session(const Model& model, const CompileOptions& options) {
  const auto image = compile(model, options);
  EXPECT_TRUE(image) << (image ? "" : image.error().render());
  return Session::create(image.value()).value();
}

void append(std::vector<float>& all, std::span<const float> logits) {
  all.insert(all.end(), logits.begin(), logits.end());
}

// Two rounds of a block, if the model takes one, three tokens behind it and, of several sequences,
// one of each: what one run leaves in shared rows, the next ones find.
std::vector<float> logits_of(Session session) {
  std::vector<float> all;
  for (std::uint32_t round = 0; round < 2; ++round) {
    std::uint32_t position = std::min(session.block_tokens(0), 9U);
    if (position != 0) append(all, session.run_block(Ids(position, 3 + round), 0).value());
    for (std::uint32_t i = 0; i < 3 && session.manifest().causal; ++i, ++position) {
      append(all, session.step(7 + i, position).value());
    }
    if (session.sequences() == 1) continue;
    append(all, session.step_batch(Ids{5, 6}, Ids{position, position}).value());
  }
  return all;
}

class SharedRows : public ::testing::TestWithParam<const char*> {};

TEST_P(SharedRows, GiveTheSameBits) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(shared_data() + "/models/tiny/" + GetParam()).value();
  for (const char* isa : {"plena", "plena+moe+minmax"}) {
    CompileOptions options{
        .settings = settings_of(testing::kPlainFp32), .dialect = {}, .context = 64};
    options.dialect = Dialect::parse(isa).value();
    const bool experts = model.config.experts.count != 0;
    if (model.config.causal && (!experts || options.dialect.has(Extension::Moe))) {
      options.sequences = 2;
    }
    const std::vector<float> apart = logits_of(make_session(model, options));
    options.share_rows = true;
    EXPECT_EQ(logits_of(make_session(model, options)), apart) << isa;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, SharedRows,
                         ::testing::Values("llama-gqa", "llama3-rope", "qwen2", "qwen3",
                                           "mistral-sliding", "mixtral", "qwen3-moe", "gemma2",
                                           "gemma3", "gpt-oss", "llada"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

// 64 tokens take more than 7000 rows where buffers lie apart.
TEST(SharedRows, LetLongerBlocksFit) {
  const auto model = open_model(std::string(PLENA_SOURCE_DIR) + "/models/stories260K").value();
  CompileOptions options;
  Session roomy = make_session(model, options);
  options.settings.vector_sram_size = 7000;
  Session tight = make_session(model, options);
  ASSERT_EQ(tight.block_tokens(0), roomy.block_tokens(0));
  // Half of the lanes of its keys belong to no head.
  const Ids prompt(roomy.block_tokens(0), 3);
  EXPECT_TRUE(
      std::ranges::equal(tight.run_block(prompt, 0).value(), roomy.run_block(prompt, 0).value()));
}

}  // namespace
}  // namespace plena
