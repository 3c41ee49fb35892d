#include "plena/isa/encoding.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "plena/base/shared_data.h"

namespace plena {
namespace {

TEST(InstructionTable, EqualsOpcodesTsvRowByRow) {
  PLENA_NEEDS_SHARED();
  std::ifstream file(shared_data() + "/spec/opcodes.tsv");
  std::string line;
  std::getline(file, line);
  std::size_t rows = 0;
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::string opcode, mnemonic, form, operands, extension;
    std::getline(cells, opcode, '\t');
    std::getline(cells, mnemonic, '\t');
    std::getline(cells, form, '\t');
    std::getline(cells, operands, '\t');
    std::getline(cells, extension, '\t');
    const InstructionRow* row = find_row(mnemonic);
    ASSERT_NE(row, nullptr) << mnemonic;
    EXPECT_EQ(static_cast<unsigned>(row->op), std::stoul(opcode, nullptr, 16)) << mnemonic;
    EXPECT_EQ(row->form, form == "R" ? Form::R : form == "I18" ? Form::I18 : Form::I22) << mnemonic;
    EXPECT_EQ(extension_name(row->extension), extension == "-" ? "base" : extension) << mnemonic;
    const auto commas = std::count(operands.begin(), operands.end(), ',');
    EXPECT_EQ(row->operand_count, operands.empty() ? 0 : commas + 1) << mnemonic;
    ++rows;
  }
  EXPECT_EQ(rows, instruction_table().size());
}

TEST(InstructionTable, HasTheFortySixInstructionsOfTheSpecification) {
  const auto table = instruction_table();
  EXPECT_EQ(std::ranges::count(table, Extension::Base, &InstructionRow::extension), 46);
}

// semantics 2: the fields of `M_MM 0, gp1, gp2`, worked out by hand.
TEST(Encoding, PlacesFieldsAsTheTableSays) {
  EXPECT_EQ(encode({.op = Op::M_MM, .rs1 = 1, .rs2 = 2}), 0x00008401U);
  EXPECT_EQ(encode({.op = Op::V_SUB_VF, .rd = 15, .rs1 = 14, .rs2 = 7, .select = 13, .order = 1}),
            0x0075FBD0U);
  EXPECT_EQ(encode({.op = Op::C_LOOP_START, .rd = 15, .imm = kImm22Max}), 0xFFFFFFEFU);
}

TEST(Encoding, DecodesWhatItEncodes) {
  const Instruction store{.op = Op::S_ST_FP, .rd = 3, .rs1 = 1, .imm = 0x1F};
  EXPECT_EQ(decode(encode(store), Dialect()), store);
}

TEST(Encoding, NamesTheExtensionThatIsOff) {
  EXPECT_EQ(decode(0x00000037, Dialect()), std::nullopt);
  EXPECT_NE(explain_illegal(0x00000037, Dialect()).find("'moe'"), std::string::npos);
}

TEST(Dialect, ParsesExtensionsAndSwitches) {
  const auto dialect = Dialect::parse("plena+moe+rs-sub-order");
  ASSERT_TRUE(dialect);
  EXPECT_TRUE(dialect->has(Extension::Moe));
  EXPECT_TRUE(dialect->has(RsSwitch::SubOrder));
  EXPECT_FALSE(dialect->has(RsSwitch::Mx));
  EXPECT_EQ(dialect->name(), "plena+moe+rs-sub-order");
}

TEST(Dialect, PlenaRsIsEverything) {
  const auto dialect = Dialect::parse("plena-rs");
  ASSERT_TRUE(dialect);
  EXPECT_TRUE(dialect->has(Extension::WoStride));
  EXPECT_TRUE(dialect->has(RsSwitch::Memories));
  EXPECT_EQ(dialect->name(), "plena-rs");
}

TEST(Dialect, RefusesUnknownPartsAndListsTheKnownOnes) {
  for (const char* bad : {"", "plain", "plena+", "plena+base", "moe", "plena+plena-rs"}) {
    const auto dialect = Dialect::parse(bad);
    ASSERT_FALSE(dialect) << bad;
    EXPECT_NE(dialect.error().hint.find("+wostride"), std::string::npos);
  }
}

}  // namespace
}  // namespace plena
