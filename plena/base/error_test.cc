#include "plena/base/error.h"

#include <gtest/gtest.h>

namespace plena {
namespace {

TEST(Error, RendersPlaceSourceLineCaretAndHint) {
  Error error{ErrorCode::Syntax,
              "gp16 is not a register",
              {"a.asm", 3, 6, 4, "LI   gp16, 4"},
              "gp0 to gp15"};

  EXPECT_EQ(error.render(),
            "a.asm:3:6: error: gp16 is not a register\n"
            "  LI   gp16, 4\n"
            "       ^~~~\n"
            "  hint: gp0 to gp15");
}

TEST(Error, WithoutAPlaceIsOneLine) {
  Error error{ErrorCode::Io, "cannot open x", {}, {}};

  EXPECT_EQ(error.render(), "error: cannot open x");
}

TEST(Error, CaretKeepsTabsSoThatItLinesUp) {
  Error error{ErrorCode::Syntax, "m", {"f", 1, 3, 1, "\tax"}, {}};

  EXPECT_EQ(error.render(), "f:1:3: error: m\n  \tax\n  \t ^");
}

TEST(Error, ExitStatusFollowsTheCommandLineContract) {
  EXPECT_EQ(exit_status(ErrorCode::Trap), 1);
  EXPECT_EQ(exit_status(ErrorCode::Mismatch), 1);
  EXPECT_EQ(exit_status(ErrorCode::Format), 2);
  EXPECT_EQ(exit_status(ErrorCode::Interrupted), 130);
}

}  // namespace
}  // namespace plena
