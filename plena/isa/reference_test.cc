#include "plena/isa/reference.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace plena {
namespace {

// The specification's format lines.
TEST(Reference, WritesFormatsAsTheSpecificationDoes) {
  EXPECT_EQ(format_line(*find_row("M_MM")), "M_MM 0, rs1, rs2");
  EXPECT_EQ(format_line(*find_row("C_BREAK")), "C_BREAK");
  EXPECT_EQ(format_line(*find_row("C_LOOP_END")), "C_LOOP_END rd [, 0]");
  EXPECT_EQ(format_line(*find_row("V_SUB_VF")), "V_SUB_VF rd, rs1, rs2, rmask, rorder");
}

// semantics 2, the table of forms.
TEST(Reference, SaysWhatEveryBitHolds) {
  EXPECT_EQ(encoding_line(*find_row("M_MM")), "31:18 0 | 17:14 rs2 | 13:10 rs1 | 9:6 0 | 5:0 0x01");
  EXPECT_EQ(encoding_line(*find_row("S_LUI_INT")), "31:10 imm | 9:6 rd | 5:0 0x25");
  EXPECT_EQ(encoding_line(*find_row("V_EXP_V")),
            "31:22 0 | 21:18 rmask | 17:14 0 | 13:10 rs1 | 9:6 rd | 5:0 0x13");
  EXPECT_EQ(encoding_line(*find_row("C_BREAK")), "31:6 0 | 5:0 0x34");
}

TEST(Reference, TheDocumentIsUpToDate) {
  std::ifstream file(PLENA_SOURCE_DIR "/docs/isa.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(text.str() == markdown_reference())
      << "docs/isa.md is stale: build/release/plena/cli/plena isa --markdown > docs/isa.md";
}

}  // namespace
}  // namespace plena
