// A scheduled program leaves the bits of the program as its kernels wrote it: in every memory, for
// every family, one token at a time and in blocks.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/shared_data.h"
#include "plena/compiler/compile.h"
#include "plena/config/testing/typed_settings.h"
#include "plena/model/open_model.h"
#include "plena/runtime/session.h"

namespace plena {
namespace {

using testing::settings_of;
using Ids = std::vector<std::uint32_t>;

Session make_session(const Model& model, const Settings& settings, const Dialect& dialect,
                     bool schedule) {
  const auto image =
      compile(model, {.settings = settings, .dialect = dialect, .schedule = schedule});
  EXPECT_TRUE(image) << (image ? "" : image.error().render());
  return Session::create(image.value()).value();
}

void expect_same_memories(const Session& a, const Session& b) {
  EXPECT_TRUE(a.machine().vram == b.machine().vram) << "Vector SRAM";
  EXPECT_TRUE(a.machine().mram == b.machine().mram) << "Matrix SRAM";
  EXPECT_TRUE(a.machine().hbm == b.machine().hbm) << "HBM";
  EXPECT_EQ(a.machine().fp_mem, b.machine().fp_mem);
  EXPECT_EQ(a.machine().int_mem, b.machine().int_mem);
}

// A block where the model takes one, then a few tokens.
void expect_same_bits(const Model& model, const Settings& settings, const Dialect& dialect) {
  Session as_written = make_session(model, settings, dialect, false);
  Session scheduled = make_session(model, settings, dialect, true);
  std::uint32_t position = 0;
  if (const std::uint32_t most = scheduled.block_tokens(0); most != 0) {
    const Ids block(std::min(most, 9U), 3);
    EXPECT_TRUE(as_written.run_block(block, 0));
    EXPECT_TRUE(scheduled.run_block(block, 0));
    expect_same_memories(as_written, scheduled);
    position = static_cast<std::uint32_t>(block.size());
  }
  if (!scheduled.manifest().causal) return;
  for (const std::uint32_t end = position + 3; position < end; ++position) {
    EXPECT_TRUE(as_written.step(position % 5, position));
    EXPECT_TRUE(scheduled.step(position % 5, position));
    expect_same_memories(as_written, scheduled);
  }
}

class ScheduledFamilies : public ::testing::TestWithParam<const char*> {};

TEST_P(ScheduledFamilies, LeaveTheSameBits) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(shared_data() + "/models/tiny/" + GetParam()).value();
  for (const char* isa : {"plena", "plena+moe+minmax"}) {
    expect_same_bits(model, settings_of(testing::kPlainFp32), Dialect::parse(isa).value());
  }
  expect_same_bits(model, Settings{}, {});
  Settings little = settings_of(testing::kPlainBf16, testing::kPlainFp32);
  little.matrix_sram_size = 6 * std::uint64_t{little.mlen};
  expect_same_bits(model, little, {});
}

INSTANTIATE_TEST_SUITE_P(Tiny, ScheduledFamilies,
                         ::testing::Values("llama-gqa", "llama3-rope", "qwen2", "qwen3",
                                           "mistral-sliding", "mixtral", "qwen3-moe", "gemma2",
                                           "gemma3", "gpt-oss", "gpt-oss-mxfp4", "llada"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(ScheduledStories, LeaveTheSameBitsAtEveryPositionOfATile) {
  const auto model = open_model(std::string(PLENA_SOURCE_DIR) + "/models/stories260K").value();
  Session as_written = make_session(model, {}, {}, false);
  Session scheduled = make_session(model, {}, {}, true);
  for (std::uint32_t position = 0; position < 70; ++position) {
    EXPECT_TRUE(as_written.step(position, position));
    EXPECT_TRUE(scheduled.step(position, position));
  }
  expect_same_memories(as_written, scheduled);
}

}  // namespace
}  // namespace plena
