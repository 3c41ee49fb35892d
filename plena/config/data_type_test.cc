#include "plena/config/data_type.h"

#include <gtest/gtest.h>

namespace plena {
namespace {

struct Named {
  const char* name;
  DataType type;
};

// cli.md, "Type names"; formats from semantics 5.1.
const Named kPublished[] = {
    {"bf16", DataType::plain(ElementType::fp(8, 7))},
    {"fp16", DataType::plain(ElementType::fp(5, 10))},
    {"fp32", DataType::plain(ElementType::fp(8, 23))},
    {"mxfp8_e4m3", DataType::mx(ElementType::fp(4, 3), 8)},
    {"mxfp8_e5m2", DataType::mx(ElementType::fp(5, 2), 8)},
    {"mxfp6_e3m2", DataType::mx(ElementType::fp(3, 2), 8)},
    {"mxfp6_e2m3", DataType::mx(ElementType::fp(2, 3), 8)},
    {"mxfp4_e2m1", DataType::mx(ElementType::fp(2, 1), 8)},
    {"mxint8", DataType::mx(ElementType::integer(8), 8)},
    {"mxint4", DataType::mx(ElementType::integer(4), 8)},
    {"mxint4:block32", DataType::mx(ElementType::integer(4), 32)},
};

TEST(DataType, KnowsThePublishedNames) {
  for (const auto& [name, type] : kPublished) {
    const auto parsed = DataType::parse(name);
    ASSERT_TRUE(parsed) << name;
    EXPECT_EQ(*parsed, type) << name;
    EXPECT_EQ(type.name(), name);
  }
}

TEST(DataType, SpellsOutTypesWithoutAName) {
  const DataType odd = DataType::plain(ElementType::fp(6, 9));
  EXPECT_EQ(odd.name(), "fp(1,6,9)");
  for (const DataType& type :
       {odd, DataType::plain(ElementType::integer(32)), DataType::plain(kE4M3),
        DataType::mx(ElementType::fp(5, 3, false), 16), DataType::mx(ElementType::integer(6), 8)}) {
    const auto parsed = DataType::parse(type.name());
    ASSERT_TRUE(parsed) << type.name();
    EXPECT_EQ(*parsed, type) << type.name();
  }
}

TEST(DataType, RefusesWhatIsNoType) {
  for (const char* bad :
       {"", "bf61", "bf16:block8", "mxint8:", "mxint8:block", "mxint8:block0", "mxint8:block-1",
        "mxint8:block8x", "mxint8:block99999999999", "fp()", "fp(1,8)", "fp(1,8,7", "fp(2,8,7)",
        "fp(1,8,7)x", "int(999)", "mx(", "mx(fp(1,4,3)", ":block8"}) {
    EXPECT_FALSE(DataType::parse(bad)) << bad;
  }
}

TEST(DataType, SuggestsTheNearName) {
  const auto parsed = DataType::parse("mxfp8_e4m2");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().hint, "did you mean mxfp8_e4m3?");
}

}  // namespace
}  // namespace plena
