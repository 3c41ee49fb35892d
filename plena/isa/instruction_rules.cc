// What an instruction's addresses must keep, for the reference: one switch, so that a new
// instruction without rules is a compiler warning.
#include "plena/isa/reference.h"

namespace plena {

std::string_view instruction_rules(Op op) {
  switch (op) {
    case Op::M_MM:
      return "Matrix address: tile + c0, c0 a multiple of BLEN below MLEN; V rows at gp<rs2> + "
             "r·VLEN, r < BLEN (semantics 6.1)";
    case Op::M_TMM:
      return "Matrix address: tile + r0·MLEN, r0 a multiple of BLEN below MLEN; vector and matrix "
             "operands are swapped against M_MM (semantics 6.2)";
    case Op::M_BMM:
      return "Matrix address: tile + k0·MLEN, k0 a multiple of HLEN below MLEN; MLEN rows of V "
             "from "
             "gp<rs2> (semantics 6.3)";
    case Op::M_BTMM:
      return "Matrix address: tile + c0, c0 a multiple of HLEN below MLEN; MLEN rows of V from "
             "gp<rs2> (semantics 6.4)";
    case Op::M_BMV:
      return "Matrix address gp<rs1> + gp<rd>: tile + k0·MLEN, k0 a multiple of HLEN below MLEN";
    case Op::M_BTMV:
      return "Matrix address gp<rs1> + gp<rd>: tile + c0, c0 a multiple of HLEN below MLEN";
    case Op::M_MV:
    case Op::M_TMV:
      return "Matrix address: a multiple of MLEN²; accumulates over calls (semantics 6.5)";
    case Op::M_MM_WO:
      return "Row r goes to the address + r·VLEN; its offset in the row is a multiple of BLEN, "
             "other "
             "lanes keep their values (semantics 6.6)";
    case Op::M_BMM_WO:
      return "Row i of head h goes to the address + (h·MLEN + i)·VLEN (semantics 6.6)";
    case Op::M_MV_WO:
      return "The address is a multiple of MLEN (semantics 6.6)";
    case Op::M_BMV_WO:
      return "Row h goes to the address + h·VLEN (semantics 8)";
    case Op::V_ADD_VV:
    case Op::V_ADD_VF:
    case Op::V_SUB_VV:
    case Op::V_SUB_VF:
    case Op::V_MUL_VV:
    case Op::V_MUL_VF:
      return "The f32 result, rounded once to VECTOR_SRAM_TYPE (semantics 4.2)";
    case Op::V_EXP_V:
    case Op::V_RECI_V:
      return "The exact result, rounded once to VECTOR_SRAM_TYPE (semantics 4.3)";
    case Op::V_RED_SUM:
      return "The tree's root plus f<rd> in f32, then one rounding (semantics 4.6)";
    case Op::V_RED_MAX:
      return "With no lane selected f<rd> stays as it was (semantics 6.7)";
    case Op::V_SHFT_V:
      return "A shift of VLEN or more gives zeros (semantics 8)";
    case Op::V_MAX_VF:
    case Op::V_MIN_VF:
      return "IEEE 754-2019 maximumNumber and minimumNumber: a NaN loses to a number (semantics 8)";
    case Op::V_TOPK:
      return "Ranks by value, NaN lowest, ties to the lower index (semantics 8)";
    case Op::S_ADD_FP:
    case Op::S_SUB_FP:
    case Op::S_MUL_FP:
      return "The f32 result, rounded once to SCALAR_FP; f0 stays 0 (semantics 4.2)";
    case Op::S_MAX_FP:
      return "A NaN loses to a number, +0 is above -0 (semantics 4.4)";
    case Op::S_EXP_FP:
    case Op::S_RECI_FP:
    case Op::S_SQRT_FP:
      return "The exact result, rounded once to SCALAR_FP (semantics 4.3)";
    case Op::S_LD_FP:
    case Op::S_ST_FP:
      return "gp<rs1> + imm lies below FP_SRAM_DEPTH; the sum does not wrap (semantics 6.14)";
    case Op::S_MAP_V_FP:
      return "gp<rd> is a multiple of VLEN; all VLEN scalars lie in FP_MEM (semantics 6.15)";
    case Op::S_ADD_INT:
    case Op::S_ADDI_INT:
    case Op::S_SUB_INT:
    case Op::S_MUL_INT:
    case Op::S_LUI_INT:
      return "gp0 stays 0 (semantics 3)";
    case Op::S_LD_INT:
    case Op::S_ST_INT:
      return "gp<rs1> + imm lies below INT_SRAM_DEPTH; the sum does not wrap (semantics 6.14)";
    case Op::H_PREFETCH_M:
      return "gp<rd> is a multiple of MLEN²; element (row, col) comes from offset gp<rs1> + "
             "row·stride + col, stride MLEN when rstride is 0 (semantics 6.9)";
    case Op::H_PREFETCH_V:
      return "Row i goes to gp<rd> + i·VLEN, gp<rd> a multiple of VLEN; stride VLEN when rstride "
             "is "
             "0 (semantics 6.10)";
    case Op::H_STORE_V:
      return "Row i comes from gp<rd> + i·VLEN, gp<rd> a multiple of VLEN; every row starts and "
             "ends "
             "on whole blocks of an Mx type and on whole bytes (semantics 5.7, 6.10)";
    case Op::C_SET_ADDR_REG:
      return "A byte address; an address register must be set before its first use (semantics 7)";
    case Op::C_SET_SCALE_REG:
      return "The scale of element e lies at base + SCALE_REG + e/block (semantics 5.5)";
    case Op::C_SET_STRIDE_REG:
      return "Must be set before an access with rstride 1 (semantics 7)";
    case Op::C_SET_V_MASK_REG:
      return "0 at reset: no lane selected (semantics 6.7)";
    case Op::C_LOOP_START:
      return "imm is at least 1 and gp0 cannot count; loops nest, never cross (semantics 6.11, "
             "6.17)";
    case Op::C_LOOP_END:
      return "Pairs up with the C_LOOP_START of the same register; a counter of 0 stays 0 and "
             "falls "
             "through (semantics 6.11)";
    case Op::C_BREAK:
      return "Not retired until the run continues (semantics 6.12)";
  }
  return {};
}

}  // namespace plena
