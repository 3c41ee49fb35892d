#include "plena/base/near_miss.h"

#include <array>

#include <gtest/gtest.h>

namespace plena {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"M_MM", "V_ADD_VV", "S_ADDI_INT"};

TEST(NearMiss, CountsEditsInAnyCase) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);  // the textbook example
  EXPECT_EQ(edit_distance("v_add_vv", "V_ADD_VV"), 0U);
  EXPECT_EQ(edit_distance("MLNE", "MLEN"), 1U);  // neighbours swapped
  EXPECT_EQ(edit_distance("", "abc"), 3U);
}

TEST(NearMiss, SuggestsTheNearestNameOnly) {
  EXPECT_EQ(nearest_name("V_ADD_V", kNames), "V_ADD_VV");
  EXPECT_EQ(nearest_name("S_ADD_INT", kNames), "S_ADDI_INT");
  EXPECT_EQ(nearest_name("printf", kNames), std::nullopt);
  EXPECT_EQ(nearest_name("", kNames), std::nullopt);
  EXPECT_EQ(did_you_mean("M_MN", kNames), "did you mean M_MM?");
}

TEST(NearMiss, TakesNoTimeOverTextThatIsNoName) {
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'M'), kNames), std::nullopt);
}

}  // namespace
}  // namespace plena
