// Attention with a running maximum and sum, for contexts whose scores do not fit Vector SRAM:
// reference logits of every family over several tiles of positions, and contexts that fit no other
// way.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/npy.h"
#include "plena/base/shared_data.h"
#include "plena/compiler/compile.h"
#include "plena/config/testing/typed_settings.h"
#include "plena/model/open_model.h"
#include "plena/runtime/session.h"

namespace plena {
namespace {

using ::testing::HasSubstr;
using testing::settings_of;
using Ids = std::vector<std::uint32_t>;

constexpr float kFp32Tolerance = 1e-4F;

Image compile_or_fail(const Model& model, const CompileOptions& options) {
  auto image = compile(model, options);
  EXPECT_TRUE(image) << (image ? "" : image.error().render());
  return *std::move(image);
}

// Tiles so small that the references' 32 positions take several.
Settings small_tiles(std::uint32_t mlen) {
  Settings settings = settings_of(testing::kPlainFp32);
  settings.mlen = settings.vlen = mlen;
  settings.hlen = settings.blen = 4;
  settings.hbm_m_prefetch_amount = mlen;
  settings.matrix_sram_size = mlen * 64;
  return settings;
}

float largest_difference(std::span<const float> a, std::span<const float> b) {
  float worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    worst = std::isnan(difference) ? HUGE_VALF : std::max(worst, difference);
  }
  return worst;
}

struct Reference {
  Ids ids;
  std::vector<float> logits;  // [ids, vocab]

  [[nodiscard]] std::span<const float> row(std::size_t position) const {
    const std::size_t vocab = logits.size() / ids.size();
    return std::span(logits).subspan(position * vocab, vocab);
  }
};

Reference load_reference(const std::string& name) {
  const std::string folder = shared_data() + "/models/tiny/" + name;
  const auto json = nlohmann::json::parse(read_text(folder + "/reference.json").value());
  Reference reference{json.at("input_ids").get<Ids>(),
                      read_npy(folder + "/reference_logits.npy").value().values<float>()};
  if (json.contains("greedy_ids")) {
    const auto greedy = json.at("greedy_ids").get<Ids>();
    reference.ids.insert(reference.ids.end(), greedy.begin(), greedy.end());
  }
  return reference;
}

class RunningSoftmaxOf : public ::testing::TestWithParam<const char*> {};

TEST_P(RunningSoftmaxOf, DecodingGivesTheReferenceLogits) {
  PLENA_NEEDS_SHARED();
  const auto model = open_model(shared_data() + "/models/tiny/" + GetParam()).value();
  const Reference reference = load_reference(GetParam());
  for (const std::uint32_t mlen : {8U, 16U}) {
    const CompileOptions options{.settings = small_tiles(mlen),
                                 .context = 64,
                                 .block = 1,
                                 .running = RunningSoftmax::All};
    auto session = Session::create(compile_or_fail(model, options)).value();
    for (std::uint32_t i = 0; i < reference.ids.size(); ++i) {
      const auto logits = session.step(reference.ids[i], i).value();
      ASSERT_LT(largest_difference(logits, reference.row(i)), kFp32Tolerance) << mlen << ' ' << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, RunningSoftmaxOf,
                         ::testing::Values("llama-gqa", "llama3-rope", "qwen2", "qwen3",
                                           "mistral-sliding", "mixtral", "gemma2", "gemma3",
                                           "gpt-oss"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace plena
