// The instruction table: the one place where an instruction is described.
//
// Encoder, decoder, assembler, disassembler, timing classes and the ISA reference read these
// rows; adding an instruction is one row here and one handler in sim/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace plena {

/// The opcode is the value (opcodes.tsv).
enum class Op : std::uint8_t {
  M_MM = 0x01,
  M_TMM = 0x02,
  M_BMM = 0x03,
  M_BTMM = 0x04,
  M_BMM_WO = 0x05,
  M_MM_WO = 0x06,
  M_MV = 0x07,
  M_TMV = 0x08,
  M_BMV = 0x09,
  M_BTMV = 0x0A,
  M_MV_WO = 0x0B,
  M_BMV_WO = 0x0C,
  V_ADD_VV = 0x0D,
  V_ADD_VF = 0x0E,
  V_SUB_VV = 0x0F,
  V_SUB_VF = 0x10,
  V_MUL_VV = 0x11,
  V_MUL_VF = 0x12,
  V_EXP_V = 0x13,
  V_RECI_V = 0x14,
  V_RED_SUM = 0x15,
  V_RED_MAX = 0x16,
  S_ADD_FP = 0x17,
  S_SUB_FP = 0x18,
  S_MAX_FP = 0x19,
  S_MUL_FP = 0x1A,
  S_EXP_FP = 0x1B,
  S_RECI_FP = 0x1C,
  S_SQRT_FP = 0x1D,
  S_LD_FP = 0x1E,
  S_ST_FP = 0x1F,
  S_MAP_V_FP = 0x20,
  S_ADD_INT = 0x21,
  S_ADDI_INT = 0x22,
  S_SUB_INT = 0x23,
  S_MUL_INT = 0x24,
  S_LUI_INT = 0x25,
  S_LD_INT = 0x26,
  S_ST_INT = 0x27,
  H_PREFETCH_M = 0x28,
  H_PREFETCH_V = 0x29,
  H_STORE_V = 0x2A,
  C_SET_ADDR_REG = 0x2B,
  C_SET_SCALE_REG = 0x2C,
  C_SET_STRIDE_REG = 0x2D,
  C_SET_V_MASK_REG = 0x2E,
  C_LOOP_START = 0x2F,
  C_LOOP_END = 0x30,
  V_SHFT_V = 0x32,
  C_BREAK = 0x34,
  V_MAX_VF = 0x35,
  V_MIN_VF = 0x36,
  V_TOPK = 0x37,
};

inline constexpr std::size_t kOpcodeCount = 64;  // six bits
inline constexpr std::uint32_t kImm18Max = (1U << 18) - 1;
inline constexpr std::uint32_t kImm22Max = (1U << 22) - 1;

/// Bit layout of a word (semantics 2).
enum class Form : std::uint8_t {
  R,    // opcode rd rs1 rs2 select order
  I18,  // opcode rd rs1 imm18
  I22,  // opcode rd imm22
};

/// Where an operand sits in the word.
enum class Field : std::uint8_t { Rd, Rs1, Rs2, Select, Order, Imm18, Imm22 };

/// What an operand may be in text and which register file it names.
enum class OperandKind : std::uint8_t {
  Gp,         // gp0 … gp15
  Fp,         // f0 … f7
  Addr,       // a0 … a7
  Immediate,  // constant expression, unsigned
  Mask,       // rmask: 0, 1 or gp0 … gp15
  Flag,       // rstride, precision, rorder, policy: 0 or 1
  Zero,       // the literal 0
  ZeroOpt,    // the literal 0, may be left out
  RowStride,  // the literal 0, or gp0 … gp15 when `wostride` is on
};

/// How an instruction uses the register an operand names.
enum class Access : std::uint8_t { None, Read, Write, ReadWrite };

struct Operand {
  Field field{};
  OperandKind kind{};
  Access access = Access::None;
  std::string_view name;  // as the reference writes it: rd, rs1, imm, rmask, …
};

enum class InstructionClass : std::uint8_t { Matrix, Vector, Scalar, Memory, Control };

enum class Extension : std::uint8_t { Base, Bmv, MinMax, Moe, Shift, WoStride };
inline constexpr std::size_t kExtensionCount = 6;
std::string_view extension_name(Extension extension);

struct InstructionRow {
  std::string_view mnemonic;
  Op op{};
  Form form{};
  InstructionClass instruction_class{};
  Extension extension{};
  std::array<Operand, 5> operand_storage{};
  std::uint8_t operand_count = 0;
  std::string_view operation;  // what it computes, in the notation of the specification
  std::string_view summary;    // one line for people

  [[nodiscard]] constexpr std::span<const Operand> operands() const {
    return {operand_storage.data(), operand_count};
  }
};

/// All rows in opcode order: the 46 instructions of the specification and the extensions.
std::span<const InstructionRow> instruction_table();

/// The row of an opcode, or nullptr for an unassigned one.
const InstructionRow* find_row(std::uint8_t opcode);
inline const InstructionRow& row_of(Op op) {
  return *find_row(static_cast<std::uint8_t>(op));
}

/// The row of a mnemonic in any case, or nullptr.
const InstructionRow* find_row(std::string_view mnemonic);

std::string_view class_name(InstructionClass instruction_class);

/// One decoded word. Fields an instruction does not have are 0.
struct Instruction {
  Op op{};
  std::uint8_t rd = 0;
  std::uint8_t rs1 = 0;
  std::uint8_t rs2 = 0;
  std::uint8_t select = 0;  // bits 21:18: rmask, rstride or policy
  std::uint8_t order = 0;   // bits 25:22: rorder or precision
  std::uint32_t imm = 0;    // imm18 or imm22

  friend bool operator==(const Instruction&, const Instruction&) = default;
};

std::uint32_t field_value(const Instruction& instruction, Field field);
void set_field(Instruction& instruction, Field field, std::uint32_t value);

}  // namespace plena
