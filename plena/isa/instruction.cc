#include "plena/isa/instruction.h"

#include <algorithm>
#include <cctype>

namespace plena {

namespace {

// Operand shorthands, so that a row reads like the specification's format line.
constexpr Operand gp(Field field, Access access, std::string_view name) {
  return {field, OperandKind::Gp, access, name};
}
constexpr Operand fp(Field field, Access access, std::string_view name) {
  return {field, OperandKind::Fp, access, name};
}
constexpr Operand kZeroRd{Field::Rd, OperandKind::Zero, Access::None, "0"};
constexpr Operand kZeroImm{Field::Rs1, OperandKind::ZeroOpt, Access::None, "0"};
constexpr Operand kRowStride{Field::Rs1, OperandKind::RowStride, Access::Read, "0"};
constexpr Operand kRd = gp(Field::Rd, Access::Read, "rd");
constexpr Operand kRdOut = gp(Field::Rd, Access::Write, "rd");
constexpr Operand kRdCounter = gp(Field::Rd, Access::ReadWrite, "rd");
constexpr Operand kRs1 = gp(Field::Rs1, Access::Read, "rs1");
constexpr Operand kRs2 = gp(Field::Rs2, Access::Read, "rs2");
constexpr Operand kFdOut = fp(Field::Rd, Access::Write, "rd");
constexpr Operand kFdIn = fp(Field::Rd, Access::Read, "rd");
constexpr Operand kFdSum = fp(Field::Rd, Access::ReadWrite, "rd");
constexpr Operand kFs1 = fp(Field::Rs1, Access::Read, "rs1");
constexpr Operand kFs2 = fp(Field::Rs2, Access::Read, "rs2");
constexpr Operand kAdOut{Field::Rd, OperandKind::Addr, Access::Write, "rd"};
constexpr Operand kAs2{Field::Rs2, OperandKind::Addr, Access::Read, "rs2"};
constexpr Operand kImm18{Field::Imm18, OperandKind::Immediate, Access::None, "imm"};
constexpr Operand kImm22{Field::Imm22, OperandKind::Immediate, Access::None, "imm"};
constexpr Operand kMask{Field::Select, OperandKind::Mask, Access::None, "rmask"};
constexpr Operand kOrder{Field::Order, OperandKind::Flag, Access::None, "rorder"};
constexpr Operand kStride{Field::Select, OperandKind::Flag, Access::None, "rstride"};
constexpr Operand kPrecision{Field::Order, OperandKind::Flag, Access::None, "precision"};
constexpr Operand kPolicy{Field::Select, OperandKind::Flag, Access::None, "policy"};

template <class... Operands>
constexpr InstructionRow row(std::string_view mnemonic, Op op, Form form, Extension extension,
                             std::string_view operation, std::string_view summary,
                             Operands... operands) {
  constexpr auto class_of = [](char letter) {
    switch (letter) {
      case 'M':
        return InstructionClass::Matrix;
      case 'V':
        return InstructionClass::Vector;
      case 'S':
        return InstructionClass::Scalar;
      case 'H':
        return InstructionClass::Memory;
      default:
        return InstructionClass::Control;
    }
  };
  return {mnemonic,
          op,
          form,
          class_of(mnemonic[0]),
          extension,
          {operands...},
          static_cast<std::uint8_t>(sizeof...(operands)),
          operation,
          summary};
}

using enum Extension;
using enum Form;

// clang-format off
constexpr std::array kTable = {
    row("M_MM", Op::M_MM, R, Base, "array[BLEN][BLEN] += V[gp<rs2>] @ M[gp<rs1>]",
        "BLEN activation rows times a BLEN-column slice of a weight tile", kZeroRd, kRs1, kRs2),
    row("M_TMM", Op::M_TMM, R, Base, "array[BLEN][BLEN] += V[gp<rs1>] @ M[gp<rs2>]^T",
        "BLEN activation rows times a BLEN-row slice of a weight tile, transposed", kZeroRd, kRs1, kRs2),
    row("M_BMM", Op::M_BMM, R, Base, "array[H][MLEN][MLEN] += per head V[gp<rs2>] @ M[gp<rs1>]",
        "one MLEN x HLEN by HLEN x MLEN product for each head", kZeroRd, kRs1, kRs2),
    row("M_BTMM", Op::M_BTMM, R, Base, "array[H][MLEN][MLEN] += per head V[gp<rs2>] @ M[gp<rs1>]^T",
        "as M_BMM with the tile transposed", kZeroRd, kRs1, kRs2),
    row("M_BMM_WO", Op::M_BMM_WO, I22, Base, "V[gp<rd> + imm] = array[H][MLEN][MLEN]; array = 0",
        "write out all heads, head after head, and clear the array", kRd, kImm22),
    row("M_MM_WO", Op::M_MM_WO, I18, Base, "V[gp<rd> + imm] = array[BLEN][BLEN]; array = 0",
        "write out BLEN lanes of BLEN rows and clear the array", kRd, kRowStride, kImm18),
    row("M_MV", Op::M_MV, R, Base, "array[MLEN] += V[gp<rs1>] @ M[gp<rs2>]",
        "one activation row times a whole tile", kZeroRd, kRs1, kRs2),
    row("M_TMV", Op::M_TMV, R, Base, "array[MLEN] += V[gp<rs1>] @ M[gp<rs2>]^T",
        "one activation row times a whole tile, transposed", kZeroRd, kRs1, kRs2),
    row("M_BMV", Op::M_BMV, R, Bmv, "array[H][MLEN] += per head V[gp<rs2>] @ M[gp<rs1> + gp<rd>]",
        "M_BMM for a single activation row", kRd, kRs1, kRs2),
    row("M_BTMV", Op::M_BTMV, R, Bmv, "array[H][MLEN] += per head V[gp<rs2>] @ M[gp<rs1> + gp<rd>]^T",
        "M_BTMM for a single activation row", kRd, kRs1, kRs2),
    row("M_MV_WO", Op::M_MV_WO, I22, Base, "V[gp<rd> + imm] = array[MLEN]; array = 0",
        "write out one row and clear the array", kRd, kImm22),
    row("M_BMV_WO", Op::M_BMV_WO, I22, Bmv, "V[gp<rd> + imm] = array[H][MLEN]; array = 0",
        "write out one row a head and clear the array", kRd, kImm22),
    row("V_ADD_VV", Op::V_ADD_VV, R, Base, "V[gp<rd>] = (V[gp<rs1>] + V[gp<rs2>]) & mask",
        "add two rows", kRd, kRs1, kRs2, kMask),
    row("V_ADD_VF", Op::V_ADD_VF, R, Base, "V[gp<rd>] = (V[gp<rs1>] + f<rs2>) & mask",
        "add a scalar to a row; with f0 it copies", kRd, kRs1, kFs2, kMask),
    row("V_SUB_VV", Op::V_SUB_VV, R, Base, "V[gp<rd>] = (V[gp<rs2>] - V[gp<rs1>]) & mask",
        "subtract rows: the second source minus the first", kRd, kRs1, kRs2, kMask),
    row("V_SUB_VF", Op::V_SUB_VF, R, Base, "V[gp<rd>] = (rorder ? f<rs2> - V[gp<rs1>] : V[gp<rs1>] - f<rs2>) & mask",
        "subtract a scalar from a row, or with rorder 1 a row from a scalar", kRd, kRs1, kFs2, kMask, kOrder),
    row("V_MUL_VV", Op::V_MUL_VV, R, Base, "V[gp<rd>] = (V[gp<rs1>] * V[gp<rs2>]) & mask",
        "multiply two rows lane by lane", kRd, kRs1, kRs2, kMask),
    row("V_MUL_VF", Op::V_MUL_VF, R, Base, "V[gp<rd>] = (V[gp<rs1>] * f<rs2>) & mask",
        "multiply a row by a scalar", kRd, kRs1, kFs2, kMask),
    row("V_EXP_V", Op::V_EXP_V, R, Base, "V[gp<rd>] = exp(V[gp<rs1>]) & mask",
        "exponential, correctly rounded", kRd, kRs1, kMask),
    row("V_RECI_V", Op::V_RECI_V, R, Base, "V[gp<rd>] = (1 / V[gp<rs1>]) & mask",
        "reciprocal, correctly rounded", kRd, kRs1, kMask),
    row("V_RED_SUM", Op::V_RED_SUM, R, Base, "f<rd> += sum of V[gp<rs1>]",
        "add all lanes of a row, in a balanced tree, to a scalar", kFdSum, kRs1),
    row("V_RED_MAX", Op::V_RED_MAX, R, Base, "f<rd> = max(f<rd>, lanes of V[gp<rs1>] in the mask)",
        "running maximum over the selected lanes", kFdSum, kRs1, kMask),
    row("S_ADD_FP", Op::S_ADD_FP, R, Base, "f<rd> = f<rs1> + f<rs2>", "add", kFdOut, kFs1, kFs2),
    row("S_SUB_FP", Op::S_SUB_FP, R, Base, "f<rd> = f<rs1> - f<rs2>", "subtract", kFdOut, kFs1, kFs2),
    row("S_MAX_FP", Op::S_MAX_FP, R, Base, "f<rd> = max(f<rs1>, f<rs2>)",
        "maximum; a NaN loses to a number", kFdOut, kFs1, kFs2),
    row("S_MUL_FP", Op::S_MUL_FP, R, Base, "f<rd> = f<rs1> * f<rs2>", "multiply", kFdOut, kFs1, kFs2),
    row("S_EXP_FP", Op::S_EXP_FP, R, Base, "f<rd> = exp(f<rs1>)", "exponential, correctly rounded", kFdOut, kFs1),
    row("S_RECI_FP", Op::S_RECI_FP, R, Base, "f<rd> = 1 / f<rs1>", "reciprocal, correctly rounded", kFdOut, kFs1),
    row("S_SQRT_FP", Op::S_SQRT_FP, R, Base, "f<rd> = sqrt(f<rs1>)", "square root, correctly rounded", kFdOut, kFs1),
    row("S_LD_FP", Op::S_LD_FP, I18, Base, "f<rd> = FP_MEM[gp<rs1> + imm]", "load a scalar", kFdOut, kRs1, kImm18),
    row("S_ST_FP", Op::S_ST_FP, I18, Base, "FP_MEM[gp<rs1> + imm] = f<rd>", "store a scalar", kFdIn, kRs1, kImm18),
    row("S_MAP_V_FP", Op::S_MAP_V_FP, I18, Base, "V[gp<rd>] = FP_MEM[gp<rs1> + imm :+ VLEN]",
        "copy VLEN scalars into a row", kRd, kRs1, kImm18),
    row("S_ADD_INT", Op::S_ADD_INT, R, Base, "gp<rd> = gp<rs1> + gp<rs2>", "add, modulo 2^32", kRdOut, kRs1, kRs2),
    row("S_ADDI_INT", Op::S_ADDI_INT, I18, Base, "gp<rd> = gp<rs1> + imm", "add a constant, modulo 2^32", kRdOut, kRs1, kImm18),
    row("S_SUB_INT", Op::S_SUB_INT, R, Base, "gp<rd> = gp<rs1> - gp<rs2>", "subtract, modulo 2^32", kRdOut, kRs1, kRs2),
    row("S_MUL_INT", Op::S_MUL_INT, R, Base, "gp<rd> = gp<rs1> * gp<rs2>", "multiply, modulo 2^32", kRdOut, kRs1, kRs2),
    row("S_LUI_INT", Op::S_LUI_INT, I22, Base, "gp<rd> = imm << 12", "load the upper bits of a constant", kRdOut, kImm22),
    row("S_LD_INT", Op::S_LD_INT, I18, Base, "gp<rd> = INT_MEM[gp<rs1> + imm]", "load an integer", kRdOut, kRs1, kImm18),
    row("S_ST_INT", Op::S_ST_INT, I18, Base, "INT_MEM[gp<rs1> + imm] = gp<rd>", "store an integer", kRd, kRs1, kImm18),
    row("H_PREFETCH_M", Op::H_PREFETCH_M, R, Base, "M[gp<rd>] = HBM[a<rs2>, element gp<rs1>]",
        "load HBM_M_Prefetch_Amount rows of MLEN elements into Matrix SRAM", kRd, kRs1, kAs2, kStride, kPrecision),
    row("H_PREFETCH_V", Op::H_PREFETCH_V, R, Base, "V[gp<rd>] = HBM[a<rs2>, element gp<rs1>]",
        "load HBM_V_Prefetch_Amount rows of VLEN elements into Vector SRAM", kRd, kRs1, kAs2, kStride, kPrecision),
    row("H_STORE_V", Op::H_STORE_V, R, Base, "HBM[a<rs2>, element gp<rs1>] = V[gp<rd>]",
        "store HBM_V_Writeback_Amount rows of Vector SRAM, quantised to the HBM type", kRd, kRs1, kAs2, kStride, kPrecision),
    row("C_SET_ADDR_REG", Op::C_SET_ADDR_REG, R, Base, "a<rd> = {gp<rs1>, gp<rs2>}",
        "set an HBM byte address: high word, low word", kAdOut, kRs1, kRs2),
    row("C_SET_SCALE_REG", Op::C_SET_SCALE_REG, R, Base, "SCALE_REG = gp<rd>",
        "set the byte distance from elements to their scales", kRd),
    row("C_SET_STRIDE_REG", Op::C_SET_STRIDE_REG, R, Base, "STRIDE_REG = gp<rd>",
        "set the row stride of strided transfers, in elements", kRd),
    row("C_SET_V_MASK_REG", Op::C_SET_V_MASK_REG, R, Base, "V_MASK = gp<rd>",
        "set the vector mask: one bit for HLEN lanes", kRd),
    row("C_LOOP_START", Op::C_LOOP_START, I22, Base, "gp<rd> = imm; the body runs imm times",
        "open a hardware loop that counts gp<rd> down", kRdOut, kImm22),
    row("C_LOOP_END", Op::C_LOOP_END, R, Base, "gp<rd> -= 1; back to the loop's start while gp<rd> > 0",
        "close the loop that counts gp<rd>", kRdCounter, kZeroImm),
    row("V_SHFT_V", Op::V_SHFT_V, R, Shift, "V[gp<rd>][i] = V[gp<rs1>][i - gp<rs2>], 0 below",
        "shift lanes upwards", kRd, kRs1, kRs2),
    row("C_BREAK", Op::C_BREAK, R, Base, "breakpoint", "stop for the debugger"),
    row("V_MAX_VF", Op::V_MAX_VF, R, MinMax, "V[gp<rd>] = max(V[gp<rs1>], f<rs2>) & mask",
        "lane-wise maximum with a scalar", kRd, kRs1, kFs2, kMask),
    row("V_MIN_VF", Op::V_MIN_VF, R, MinMax, "V[gp<rd>] = min(V[gp<rs1>], f<rs2>) & mask",
        "lane-wise minimum with a scalar", kRd, kRs1, kFs2, kMask),
    row("V_TOPK", Op::V_TOPK, R, Moe, "INT_MEM[gp<rs2>..] = best lanes of V[gp<rs1>]; FP_MEM[gp<rd>..] = their softmax",
        "pick experts: best 4 of 32 lanes, or with policy 1 best 8 of 128", kRd, kRs1, kRs2, kPolicy),
};
// clang-format on

constexpr std::array<std::int8_t, kOpcodeCount> index_by_opcode() {
  std::array<std::int8_t, kOpcodeCount> index{};
  index.fill(-1);
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    index[static_cast<std::size_t>(kTable[i].op)] = static_cast<std::int8_t>(i);
  }
  return index;
}
constexpr auto kIndexByOpcode = index_by_opcode();

constexpr char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool equal_in_any_case(std::string_view text, std::string_view upper_case) {
  return std::ranges::equal(text, upper_case, [](char a, char b) { return upper(a) == b; });
}

}  // namespace

std::span<const InstructionRow> instruction_table() {
  return kTable;
}

const InstructionRow* find_row(std::uint8_t opcode) {
  const int index = opcode < kOpcodeCount ? kIndexByOpcode[opcode] : -1;
  return index < 0 ? nullptr : &kTable[static_cast<std::size_t>(index)];
}

const InstructionRow* find_row(std::string_view mnemonic) {
  const auto* found = std::ranges::find_if(
      kTable, [&](const InstructionRow& r) { return equal_in_any_case(mnemonic, r.mnemonic); });
  return found == kTable.end() ? nullptr : found;
}

std::string_view extension_name(Extension extension) {
  switch (extension) {
    case Base:
      return "base";
    case Bmv:
      return "bmv";
    case MinMax:
      return "minmax";
    case Moe:
      return "moe";
    case Shift:
      return "shift";
    case WoStride:
      return "wostride";
  }
  return "";
}

std::string_view class_name(InstructionClass instruction_class) {
  switch (instruction_class) {
    case InstructionClass::Matrix:
      return "matrix";
    case InstructionClass::Vector:
      return "vector";
    case InstructionClass::Scalar:
      return "scalar";
    case InstructionClass::Memory:
      return "memory";
    case InstructionClass::Control:
      return "control";
  }
  return "";
}

std::uint32_t field_value(const Instruction& instruction, Field field) {
  switch (field) {
    case Field::Rd:
      return instruction.rd;
    case Field::Rs1:
      return instruction.rs1;
    case Field::Rs2:
      return instruction.rs2;
    case Field::Select:
      return instruction.select;
    case Field::Order:
      return instruction.order;
    case Field::Imm18:
    case Field::Imm22:
      return instruction.imm;
  }
  return 0;
}

void set_field(Instruction& instruction, Field field, std::uint32_t value) {
  switch (field) {
    case Field::Rd:
      instruction.rd = static_cast<std::uint8_t>(value);
      break;
    case Field::Rs1:
      instruction.rs1 = static_cast<std::uint8_t>(value);
      break;
    case Field::Rs2:
      instruction.rs2 = static_cast<std::uint8_t>(value);
      break;
    case Field::Select:
      instruction.select = static_cast<std::uint8_t>(value);
      break;
    case Field::Order:
      instruction.order = static_cast<std::uint8_t>(value);
      break;
    case Field::Imm18:
    case Field::Imm22:
      instruction.imm = value;
      break;
  }
}

}  // namespace plena
