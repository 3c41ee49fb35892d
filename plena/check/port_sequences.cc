#include "plena/check/port_sequences.h"

#include "plena/check/program_edits.h"

namespace plena {

namespace {

void append(std::vector<Instruction>& to, const std::vector<Instruction>& added) {
  to.insert(to.end(), added.begin(), added.end());
}

}  // namespace

std::vector<Instruction> load_quarter(std::uint8_t f) {
  return {{.op = Op::S_EXP_FP, .rd = f},
          {.op = Op::S_ADD_FP, .rd = f, .rs1 = f, .rs2 = f},
          {.op = Op::S_ADD_FP, .rd = f, .rs1 = f, .rs2 = f},
          {.op = Op::S_RECI_FP, .rd = f, .rs1 = f}};
}

std::vector<Instruction> load_minus_one(std::uint8_t f) {
  return {{.op = Op::S_EXP_FP, .rd = f}, {.op = Op::S_SUB_FP, .rd = f, .rs2 = f}};
}

std::vector<Instruction> scale_rows(const RowScaling& s) {
  std::vector<Instruction> out;
  if (s.imm <= kImm18Max) {
    out.push_back({.op = Op::S_ADDI_INT, .rd = s.address, .rs1 = s.base, .imm = s.imm});
  } else {
    out = load_constant(s.address, s.imm);
    out.push_back({.op = Op::S_ADD_INT, .rd = s.address, .rs1 = s.address, .rs2 = s.base});
  }
  append(out, {{.op = Op::C_LOOP_START, .rd = s.counter, .imm = s.rows},
               {.op = Op::V_MUL_VF, .rd = s.address, .rs1 = s.address, .rs2 = s.factor},
               {.op = Op::S_ADDI_INT, .rd = s.address, .rs1 = s.address, .imm = s.row_elements},
               {.op = Op::C_LOOP_END, .rd = s.counter}});
  return out;
}

// The result and the source each get -0 where the other belongs, because x + -0 = x for every x.
// Multiplying by -1 under a mask leaves +0 in the other lanes; multiplying again makes that -0.
std::vector<Instruction> merge_lanes(const LaneMerge& m) {
  std::vector<Instruction> out;
  const auto negate = [&](std::uint8_t to, std::uint8_t from, std::uint8_t rmask) {
    out.push_back({.op = Op::V_MUL_VF, .rd = to, .rs1 = from, .rs2 = m.minus_one, .select = rmask});
  };
  const auto set_mask = [&](std::uint32_t bits) {
    append(out, load_constant(m.mask_register, bits));
    out.push_back({.op = Op::C_SET_V_MASK_REG, .rd = m.mask_register});
  };
  const std::uint8_t rd = m.operation.rd;
  Instruction apart = m.operation;
  apart.rd = m.scratch;
  out.push_back(apart);
  negate(m.scratch, m.scratch, 1);
  negate(m.scratch, m.scratch, 0);
  set_mask(m.all & ~m.selected);
  negate(rd, m.source, 1);
  negate(rd, rd, 0);
  out.push_back({.op = Op::V_ADD_VV, .rd = rd, .rs1 = rd, .rs2 = m.scratch});
  set_mask(0);
  negate(m.scratch, m.scratch, 1);  // no lane selected: zeros again
  set_mask(m.selected);
  return out;
}

}  // namespace plena
