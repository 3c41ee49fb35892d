#include "plena/model/testing/reference_forward.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/npy.h"
#include "plena/base/shared_data.h"

namespace plena {
namespace {

TEST(ReferenceForward, TellsTheStoryOfTheReferenceWithItsLogits) {
  PLENA_NEEDS_SHARED();
  const auto folder = shared_data() + "/models/stories260K/";
  const auto model = open_llama2c(folder + "stories260K.bin").value();
  const auto tokens = nlohmann::json::parse(read_text(folder + "reference.json").value())
                          .at("greedy_tokens")
                          .get<std::vector<std::uint32_t>>();
  const auto expected = read_npy(folder + "reference_logits.npy").value().values<float>();

  testing::ReferenceForward forward(model);
  float worst = 0;
  for (std::uint32_t position = 0; position < tokens.size(); ++position) {
    const auto logits = forward.step(tokens[position], position);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      worst = std::max(worst, std::abs(logits[i] - expected[position * logits.size() + i]));
    }
  }

  EXPECT_LT(worst, 1e-4F);
  EXPECT_EQ(testing::greedy_tokens(model, tokens.size()), tokens);
}

}  // namespace
}  // namespace plena
