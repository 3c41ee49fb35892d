#include "plena/asm/assembler.h"

#include <fstream>
#include <random>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plena/asm/disassembler.h"
#include "plena/asm/mem_file.h"
#include "plena/base/files.h"
#include "plena/base/scratch_folder.h"
#include "plena/base/shared_data.h"

namespace plena {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The specification's sizes, as encoding.toml has them.
AssemblyOptions options(std::string_view isa = "plena") {
  return {"t.asm",
          *Dialect::parse(isa),
          {{"MLEN", 64},
           {"BLEN", 4},
           {"HLEN", 16},
           {"VLEN", 64},
           {"HBM_V_Prefetch_Amount", 4},
           {"INT_SRAM_DEPTH", 1024},
           {"FP_SRAM_DEPTH", 4096}}};
}

Assembly assembled(std::string_view text, std::string_view isa = "plena") {
  return assemble(text, options(isa));
}

// The one error of a text, as kind:line:column.
std::string complaint(std::string_view text, std::string_view isa = "plena") {
  const Assembly result = assembled(text, isa);
  if (result.error_count != 1) return fmt::format("{} errors", result.error_count);
  const auto& error = result.errors.front();
  return fmt::format("{}:{}:{}", syntax_kind_name(error.kind), error.place.line,
                     error.place.column);
}

// ---- encoding.tsv: every row of the shared vectors.

struct VectorRow {
  std::string row, isa, text, kind;
  std::vector<std::uint32_t> words;
  std::uint32_t line = 0, column = 0;
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == '\t') {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

std::string unescaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('\\', at)) != std::string::npos; ++at) {
    text.replace(at, 2, text.substr(at, 2) == "\\n" ? "\n" : "\t");
  }
  return text;
}

std::vector<VectorRow> encoding_vectors() {
  std::ifstream file(shared_data() + "/vectors/encoding.tsv");
  std::vector<VectorRow> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    auto cells = cells_of(line);
    cells.resize(7);
    VectorRow row{cells[0], cells[1], unescaped(cells[2]), cells[4], {}, 0, 0};
    std::istringstream words(cells[3]);
    for (std::string word; words >> word;) {
      row.words.push_back(static_cast<std::uint32_t>(std::stoul(word, nullptr, 16)));
    }
    if (!cells[5].empty()) row.line = static_cast<std::uint32_t>(std::stoul(cells[5]));
    if (!cells[6].empty()) row.column = static_cast<std::uint32_t>(std::stoul(cells[6]));
    rows.push_back(std::move(row));
  }
  return rows;
}

Status disassemble_into(std::span<const std::uint32_t> words, const Dialect& dialect,
                        std::string& text) {
  return disassemble(words, dialect, [&](std::string_view piece) {
    text += piece;
    return Status();
  });
}

TEST(EncodingVectors, EveryAcceptedTextGivesItsWords) {
  PLENA_NEEDS_SHARED();
  std::size_t rows = 0;
  for (const auto& row : encoding_vectors()) {
    if (row.row != "asm") continue;
    const Assembly result = assembled(row.text, row.isa);
    ASSERT_TRUE(result.ok()) << row.text << "\n" << first_error(result).render();
    EXPECT_EQ(result.program.words, row.words) << row.text;
    ++rows;
  }
  EXPECT_GT(rows, 250U);
}

TEST(EncodingVectors, TheirDisassemblyGivesTheSameWords) {
  PLENA_NEEDS_SHARED();
  for (const auto& row : encoding_vectors()) {
    if (row.row != "asm") continue;
    std::string text;
    ASSERT_TRUE(disassemble_into(row.words, *Dialect::parse(row.isa), text)) << row.text;
    EXPECT_EQ(assembled(text, row.isa).program.words, row.words) << text;
    EXPECT_EQ(text.find(".word"), std::string::npos) << text;
  }
}

TEST(EncodingVectors, EveryRefusedTextGivesItsKindAndPlace) {
  PLENA_NEEDS_SHARED();
  std::size_t rows = 0;
  for (const auto& row : encoding_vectors()) {
    if (row.row != "asm_error") continue;
    EXPECT_EQ(complaint(row.text, row.isa), fmt::format("{}:{}:{}", row.kind, row.line, row.column))
        << row.text;
    ++rows;
  }
  EXPECT_GT(rows, 100U);
}

TEST(EncodingVectors, EveryRefusedWordIsNamed) {
  PLENA_NEEDS_SHARED();
  std::size_t rows = 0;
  for (const auto& row : encoding_vectors()) {
    if (row.row != "decode_error") continue;
    std::string text;
    const auto status = disassemble_into(row.words, *Dialect::parse(row.isa), text);
    ASSERT_FALSE(status) << row.words.back();
    EXPECT_THAT(status.error().message, HasSubstr(fmt::format("word {} ", row.line)));
    ++rows;
  }
  EXPECT_GT(rows, 40U);
}

// ---- What the rows do not reach.

TEST(Assembler, ReportsAllErrorsOfAFileInOrder) {
  const Assembly result = assembled("NOP\nLI gp1, 5\nLI gp16, Q\n  S_ADD_INT f1, gp1, 3\n");
  std::vector<std::string> places;
  for (const auto& error : result.errors) {
    places.push_back(fmt::format("{}:{}:{}", syntax_kind_name(error.kind), error.place.line,
                                 error.place.column));
  }
  EXPECT_THAT(places,
              ElementsAre("unknown_mnemonic:1:1", "register_range:3:4", "undefined_symbol:3:10",
                          "bad_register:4:13", "bad_register:4:22"));
}

TEST(Assembler, AnErrorShowsLineCaretAndHint) {
  const Assembly result = assembled("V_ADD_V gp1, gp2, gp3, 0\n");
  EXPECT_EQ(first_error(result).render(),
            "t.asm:1:1: error: there is no instruction 'V_ADD_V'\n"
            "  V_ADD_V gp1, gp2, gp3, 0\n"
            "  ^~~~~~~\n"
            "  hint: did you mean V_ADD_VV?");
}

TEST(Assembler, ColumnsCountCharactersNotBytes) {
  EXPECT_EQ(complaint("LI gp1, 5, é, 6"), "operand_count:1:12");
  EXPECT_EQ(complaint("S_ADDI_INT é, gp0, 5"), "bad_register:1:12");
  const auto two = assembled("S_ADDI_INT é, gp0, 999999");
  ASSERT_EQ(two.error_count, 2U);
  EXPECT_EQ(two.errors[1].place.column, 20U);
}

TEST(Assembler, KeepsAHundredErrorsAndCountsTheRest) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "bogus\n";
  const Assembly result = assembled(text);
  EXPECT_EQ(result.error_count, 5000U);
  EXPECT_EQ(result.errors.size(), kMostErrors);
  EXPECT_THAT(first_error(result).message, HasSubstr("4999 more"));
}

TEST(Assembler, AFailedDefinitionIsReportedOnce) {
  EXPECT_EQ(complaint(".equ N, 5 / 0\nLI gp1, N\nLI gp2, N + 1\n"), "bad_expression:1:11");
}

TEST(Assembler, ExpressionsAreUnbounded) {
  EXPECT_THAT(assembled("LI gp1, 1 << 200 >> 199").program.words,
              ElementsAre(encode({.op = Op::S_ADDI_INT, .rd = 1, .imm = 2})));
  EXPECT_THAT(assembled(".equ BIG, 1 << 100\nLI gp1, BIG * BIG / (1 << 198)").program.words,
              ElementsAre(encode({.op = Op::S_ADDI_INT, .rd = 1, .imm = 4})));
  EXPECT_THAT(assembled("LI gp1, 99999999999999999999999999 % 10").program.words,
              ElementsAre(encode({.op = Op::S_ADDI_INT, .rd = 1, .imm = 9})));
  EXPECT_EQ(complaint("LI gp1, 1 << 100"), "immediate_range:1:9");
  EXPECT_EQ(complaint("LI gp1, 1 << 99999999999"), "bad_expression:1:11");
  EXPECT_EQ(complaint("LI gp1, 1 << -1"), "bad_expression:1:11");
  EXPECT_EQ(complaint("LI gp1, -7 >> 1"), "immediate_range:1:9");  // -4
  EXPECT_EQ(complaint("LI gp1, 0x"), "bad_expression:1:10");
}

TEST(Assembler, DeepNestingIsAnErrorNotACrash) {
  EXPECT_EQ(complaint("LI gp1, " + std::string(100'000, '(')), "bad_expression:1:209");
  EXPECT_TRUE(assembled("LI gp1, " + std::string(100'000, '-') + "5").ok());
}

TEST(Assembler, ReadsAnyLineEnd) {
  const auto unix_words = assembled("LI gp1, 1\n\nC_BREAK").program;
  const auto dos_words = assembled("LI gp1, 1\r\n\r\nC_BREAK\r\n").program;
  EXPECT_EQ(unix_words.words, dos_words.words);
  EXPECT_THAT(dos_words.lines, ElementsAre(1U, 3U));
  EXPECT_EQ(assembled("\xEF\xBB\xBF"
                      "C_BREAK")
                .program.words.size(),
            1U);
}

TEST(Assembler, ABinaryFileIsOneError) {
  using namespace std::string_view_literals;
  EXPECT_EQ(complaint("C_BREAK\nab\0c\0\n\0\nbogus"sv), "not_text:2:3");
  EXPECT_EQ(complaint("\xFF\xFE\n"), "unknown_mnemonic:1:1");
}

TEST(Assembler, AVeryLongLineIsOneErrorAndEndsTheText) {
  const std::string text = std::string(kLongestLine + 5, 'x') + "\nbogus\n";
  const Assembly result = assembled(text);
  ASSERT_EQ(result.error_count, 1U);
  EXPECT_EQ(result.errors[0].kind, SyntaxKind::LineTooLong);
  EXPECT_TRUE(assembled("C_BREAK ;" + std::string(kLongestLine - 9, 'x')).ok());
}

TEST(Assembler, MissingOperandsInTheMiddlePointAtTheGap) {
  EXPECT_EQ(complaint("S_ADD_INT gp1, , gp2"), "bad_register:1:16");
  EXPECT_EQ(complaint("S_ADDI_INT gp1, gp0,"), "bad_expression:1:21");
  EXPECT_EQ(complaint("M_MM , gp1, gp2"), "fixed_operand:1:6");
  EXPECT_EQ(complaint("V_EXP_V gp1, gp2,  ; none"), "bad_selector:1:18");
}

TEST(Assembler, RegionsNestAndRecordTheirWords) {
  const Assembly result = assembled(
      ".region outer\nC_BREAK\n.region q/k-proj.0\nLI gp1, 300001\n.endregion\n.endregion\n"
      "C_BREAK\n");
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result.program.regions,
              ElementsAre(ProgramRegion{"outer", 0, 3}, ProgramRegion{"q/k-proj.0", 1, 3}));
}

TEST(Assembler, UnbalancedRegionsAreErrors) {
  EXPECT_EQ(complaint("C_BREAK\n  .endregion\n"), "bad_region:2:3");
  EXPECT_EQ(complaint("C_BREAK\n .region a\n"), "bad_region:2:2");
  EXPECT_EQ(complaint(".region a b!\n.endregion"), "2 errors");
  EXPECT_EQ(complaint(".region\n"), "operand_count:1:1");
}

TEST(Assembler, TheDialectHasItsAddressRegisters) {
  EXPECT_EQ(complaint("C_SET_ADDR_REG a8, gp1, gp2"), "register_range:1:16");
  EXPECT_TRUE(assembled("C_SET_ADDR_REG a15, gp1, gp2", "plena-rs").ok());
}

TEST(Assembler, APieceMayEndAnywhere) {
  const std::string text = ".equ N, 3 ; three\nLI gp1, N * 100001\r\n// done\nC_BREAK";
  const auto whole = assembled(text).program;
  ASSERT_EQ(whole.words.size(), 3U);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Assembler assembler(options());
    assembler.feed(std::string_view(text).substr(0, cut));
    assembler.feed(std::string_view(text).substr(cut));
    const Assembly result = assembler.finish();
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result.program.words, whole.words);
    EXPECT_EQ(result.program.lines, whole.lines);
  }
}

TEST(Assembler, RandomTextNeverCrashes) {
  constexpr std::string_view kFragments[] = {"M_MM",
                                             "LI",
                                             ".equ",
                                             "gp1",
                                             "gp",
                                             "f9",
                                             "a3",
                                             "0",
                                             "1",
                                             ",",
                                             " ",
                                             "\n",
                                             "(",
                                             ")",
                                             "<<",
                                             "-",
                                             "/",
                                             "//",
                                             ";",
                                             "0x",
                                             "0b",
                                             "MLEN",
                                             "N",
                                             "\xC3",
                                             "C_LOOP_START",
                                             "V_ADD_VV",
                                             ".word",
                                             ".region",
                                             ".endregion",
                                             "%",
                                             "999999999999999999999"};
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    const auto pieces = random() % 40;
    for (unsigned i = 0; i < pieces; ++i) {
      if (random() % 8 == 0) {
        text += static_cast<char>(random());
      } else {
        text += kFragments[random() % std::size(kFragments)];
      }
    }
    const Assembly result = assembled(text, random() % 2 == 0 ? "plena" : "plena-rs");
    for (const auto& error : result.errors) EXPECT_FALSE(error.render().empty());
  }
}

TEST(Documentation, EveryExampleOfTheLanguagePageAssembles) {
  const auto page = read_text(PLENA_SOURCE_DIR "/docs/assembly.md");
  ASSERT_TRUE(page);
  std::size_t examples = 0;
  for (std::size_t at = 0; (at = page->find("```asm", at)) != std::string::npos; ++examples) {
    at = page->find('\n', at) + 1;  // a file's name may follow
    const Assembly result = assembled(page->substr(at, page->find("```", at) - at));
    ASSERT_TRUE(result.ok()) << first_error(result).render();
  }
  EXPECT_GE(examples, 4U);
}

TEST(AssembleFile, AnEndlessFileIsOneError) {
  const auto result = assemble_file("/dev/zero", {});
  ASSERT_TRUE(result);
  ASSERT_EQ(result->error_count, 1U);
  EXPECT_EQ(result->errors[0].kind, SyntaxKind::LineTooLong);
}

TEST(ReadMemFile, AnEndlessFileIsOneError) {
  EXPECT_EQ(read_mem_file("/dev/zero").error().code, ErrorCode::Format);
}

TEST(AssembleFile, ReadsAFileAndNamesItInErrors) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("a.asm");
  ASSERT_TRUE(write_text(path, "C_BREAK\nbogus\n"));
  const auto result = assemble_file(path, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(first_error(*result).place.file, path);
  EXPECT_FALSE(assemble_file("/no/such/file.asm", {}));
}

}  // namespace
}  // namespace plena
