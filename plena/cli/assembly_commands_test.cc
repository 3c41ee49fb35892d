#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"
#include "plena/base/scratch_folder.h"
#include "plena/cli/run_program.h"

namespace plena {
namespace {

using testing::HasSubstr;

// A file that is there while the test runs.
class ScratchFile {
 public:
  ScratchFile(const std::string& name, std::string_view text) : path_(folder_.file(name)) {
    if (text.empty()) return;  // only the name is wanted
    EXPECT_TRUE(write_text(path_, text));
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string text() const { return read_text(path_).value_or(""); }

 private:
  ScratchFolder folder_;
  std::string path_;
};

TEST(AsmCommand, WritesWordsToStdoutOrAFile) {
  const ScratchFile source("a.asm", "M_MM 0, gp1, gp2\nLI gp2, 262145\n");
  const ScratchFile words("a.mem", "");
  constexpr const char* kWords = "0x00008401\n0x000100A5\n0x000048A2\n";  // encoding.tsv

  const auto run = run_program({"asm", source.path()});
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out, kWords);
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run_program({"asm", source.path(), "-o", words.path()}).out, "");
  EXPECT_EQ(words.text(), kWords);
}

TEST(AsmCommand, KnowsSettingsAndExtensions) {
  const ScratchFile source("s.asm", "S_ADDI_INT gp1, gp0, MLEN\nV_SHFT_V gp1, gp2, gp3\n");
  const auto run =
      run_program({"asm", "--set", "MLEN=128", "--set", "VLEN=128", "--set",
                   "HBM_M_Prefetch_Amount=128", "--isa", "plena+shift", source.path()});
  EXPECT_EQ(run.out, "0x00200062\n0x0000C872\n");
  EXPECT_EQ(run_program({"asm", source.path()}).status, 2);
  const auto contradiction = run_program({"asm", "--set", "BLEN=5", source.path()});
  EXPECT_EQ(contradiction.status, 2);
  EXPECT_THAT(contradiction.err, HasSubstr("BLEN = 5 does not divide HLEN = 16"));
}

TEST(AsmCommand, ShowsEveryErrorAndLeavesNoFile) {
  const ScratchFile source("e.asm", "NOP\nLI gp16, 1\n");
  const ScratchFile words("e.mem", "");
  const auto run = run_program({"asm", source.path(), "-o", words.path()});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr(source.path() + ":1:1: error: there is no instruction 'NOP'"));
  EXPECT_THAT(run.err, HasSubstr(":2:4: error:"));
  EXPECT_THAT(run.err, HasSubstr("2 errors"));
  EXPECT_NE(::access(words.path().c_str(), F_OK), 0);
}

TEST(AsmCommand, JsonHasWordsOrErrors) {
  const ScratchFile good("g.asm", ".region r\nC_BREAK\n.endregion\n");
  const auto words = nlohmann::json::parse(run_program({"asm", "--json", good.path()}).out);
  EXPECT_EQ(words["words"], nlohmann::json({"0x00000034"}));
  EXPECT_EQ(words["regions"][0]["end"], 1);
  const ScratchFile bad("b.asm", "C_BREAK gp1\n");
  const auto errors = nlohmann::json::parse(run_program({"asm", "--json", bad.path()}).out);
  EXPECT_EQ(errors["errors"][0]["kind"], "operand_count");
  EXPECT_EQ(errors["errors"][0]["column"], 9);
}

TEST(AsmCommand, ListingShowsWordsBesideTheText) {
  const ScratchFile source("l.asm", "; two\nLI gp2, 262145\nC_BREAK");
  EXPECT_EQ(run_program({"asm", "--listing", source.path()}).out,
            "                        1  ; two\n"
            "     0  000100A5        2  LI gp2, 262145\n"
            "     1  000048A2\n"
            "     2  00000034        3  C_BREAK\n");
}

TEST(AsmCommand, NeverOverwritesItsSource) {
  const ScratchFile source("o.asm", "C_BREAK\n");
  EXPECT_EQ(run_program({"asm", source.path(), "-o", source.path()}).status, 2);
  EXPECT_EQ(source.text(), "C_BREAK\n");
}

TEST(AsmCommand, ReadsAPipe) {
  const auto run = run_program({"asm", "/dev/stdin"}, "C_BREAK\n");
  EXPECT_EQ(run.out, "0x00000034\n");
}

TEST(AsmCommand, BadInputIsOneClearError) {
  EXPECT_EQ(run_program({"asm"}).status, 2);
  const auto missing = run_program({"asm", "/no/such.asm"});
  EXPECT_EQ(missing.status, 2);
  EXPECT_EQ(missing.err, "error: cannot open /no/such.asm: No such file or directory\n");
  EXPECT_EQ(run_program({"asm", "/"}).status, 2);
  const ScratchFile source("m.asm", "C_BREAK\n");
  EXPECT_EQ(run_program({"asm", source.path(), "--mode", "analytic"}).status, 2);
  EXPECT_EQ(run_program({"asm", source.path(), "--isa", "plena+mo"}).status, 2);
  EXPECT_EQ(run_program({"asm", source.path(), "--settings", source.path()}).status, 2);
}

TEST(DisasmCommand, AssemblesToTheSameWords) {
  const ScratchFile words("d.mem", "0x00008401 2F 0000216f 130");
  const ScratchFile text("d.asm", "");
  EXPECT_EQ(run_program({"disasm", words.path(), "-o", text.path()}).status, 0);
  EXPECT_EQ(text.text(),
            "M_MM 0, gp1, gp2\n.word 0x0000002F ; C_LOOP_START gp0, 0\n"
            "  C_LOOP_START gp5, 8\n  C_LOOP_END gp4, 0\n");
  EXPECT_EQ(run_program({"asm", text.path()}).out,
            "0x00008401\n0x0000002F\n0x0000216F\n0x00000130\n");
}

TEST(DisasmCommand, RefusesIllegalWordsByIndex) {
  const ScratchFile words("i.mem", "34 37");
  const auto run = run_program({"disasm", words.path()});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("word 1 (0x00000037)"));
  EXPECT_THAT(run.err, HasSubstr("'moe'"));
}

TEST(DisasmCommand, RefusesWhatIsNoMemFile) {
  const ScratchFile text("n.mem", "0x34\nM_MM 0, gp1, gp2\n");
  const auto run = run_program({"disasm", text.path()});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr(text.path() + ":2:1: error:"));
}

TEST(FmtCommand, RewritesInPlaceOnceAndChecks) {
  const ScratchFile source("f.asm", "li gp1,5 ; five\n");
  EXPECT_EQ(run_program({"fmt", "--check", source.path()}).status, 1);
  EXPECT_EQ(source.text(), "li gp1,5 ; five\n");
  EXPECT_EQ(run_program({"fmt", source.path()}).status, 0);
  EXPECT_EQ(source.text(), "LI gp1, 5                               ; five\n");
  const auto check = run_program({"fmt", "--check", source.path()});
  EXPECT_EQ(check.status, 0);
  EXPECT_EQ(check.out, "");
}

}  // namespace
}  // namespace plena
