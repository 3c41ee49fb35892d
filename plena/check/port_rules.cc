// What plena port makes of each instruction (semantics 8, dialect-plena-rs.md 1 to 6).
#include <fmt/format.h>

#include "plena/check/port_sequences.h"
#include "plena/check/porter.h"
#include "plena/isa/encoding.h"

namespace plena {

void Porter::visit_registers(const Instruction& i) {
  if (has(PortIssue::WritesGp0))
    find(RsSwitch::Registers, NotRewritten, "gp0 takes a value that need not be 0");
  if (i.op == Op::S_LD_FP && i.rd == 0)
    find(RsSwitch::Registers, DataDependent, "f0 is loaded: the same where the entry holds 0");
  sets_stride_first_ = sets_stride_first_ || has(PortIssue::UnsetStride);
  sets_scale_first_ = sets_scale_first_ || has(PortIssue::UnsetScale);
  if (has(PortIssue::UnsetStride))
    find(RsSwitch::Registers, Rewritten, "STRIDE_REG is set to 1 before the program");
  if (has(PortIssue::UnsetScale))
    find(RsSwitch::Registers, Rewritten, "SCALE_REG is set to 0 before the program");
  if (has(PortIssue::UnsetAddress)) {
    addresses_set_first_.insert(current().rs2);
    find(RsSwitch::Registers, Rewritten,
         fmt::format("a{} is set to 0 before the program", current().rs2));
  }
  if (has(PortIssue::AddressWraps))
    find(RsSwitch::Decode, NotRewritten, "gp + imm wraps at 32 bits");
  if (has(PortIssue::PastScalars))
    find(RsSwitch::Memories, NotRewritten,
         "the entry lies beyond INT_SRAM_DEPTH or FP_SRAM_DEPTH of the settings");
}

void Porter::visit(const Instruction& i, std::uint32_t word) {
  visit_registers(i);
  switch (row_of(i.op).instruction_class) {
    case InstructionClass::Matrix:
      visit_matrix(i);
      break;
    case InstructionClass::Vector:
      visit_vector(i);
      break;
    case InstructionClass::Scalar:
      visit_scalar(i);
      break;
    case InstructionClass::Memory:
      visit_transfer(i);
      break;
    case InstructionClass::Control:
      if (i.op == Op::C_BREAK)
        find(RsSwitch::Break, NotRewritten, "C_BREAK pops the loop and goes on");
      break;
  }
  if (encode(i) != word) normalise(word);
}

// rs-decode: fields that plena-rs ignores or reads elsewhere are written as the specification has
// them. What already replaces the instruction was written so.
void Porter::normalise(std::uint32_t word) {
  Instruction i = current();
  for (const Operand& operand : row_of(i.op).operands()) {
    if (operand.kind != OperandKind::Flag) continue;
    const std::uint32_t value = field_value(i, operand.field);
    const bool strides = operand.name == "rstride";  // only a field of exactly 1 does
    set_field(i, operand.field, strides ? value == 1 : value != 0);
  }
  if (!edits_.replaces(pc_) || edits_.replaced(pc_)) edits_.replace(pc_, {i});
  find(RsSwitch::Decode, Rewritten,
       fmt::format("the word 0x{:08X} is written as the specification has it", word));
}

void Porter::visit_matrix(const Instruction& i) {
  if (settings_.vlen != settings_.mlen)
    find(RsSwitch::TileAddress, NotRewritten, "rows of V lie MLEN apart, and VLEN differs");
  if (has(PortIssue::AccumulatorsOverlap))
    find(RsSwitch::Accumulators, NotRewritten, "another accumulator of the array holds a result");
  switch (i.op) {
    case Op::M_MM:
      recode(columns_, PortIssue::ColumnCountsRows, "the column offset counts rows");
      break;
    case Op::M_BMM:
      recode(rows_, PortIssue::RowIsTheOffset, "the offset is the row itself");
      if (settings_.heads() != 1 && settings_.hlen != 1)
        find(RsSwitch::BmmLanes, NotRewritten, "head h takes lanes k*H + h of the rows");
      break;
    case Op::M_MV:
    case Op::M_TMV:
      replace_vector_product(i);
      break;
    case Op::M_MV_WO:
      replace_vector_write_out(i);
      break;
    case Op::M_BMM_WO:
      quarter_rows(i, settings_.heads() * settings_.mlen);
      break;
    case Op::M_BMV_WO:
      quarter_rows(i, settings_.heads());
      break;
    case Op::M_BMV:
      find(RsSwitch::Accumulators, NotRewritten, "the program traps here: M_BMV cannot run");
      break;
    default:
      break;
  }
  const bool sums = i.op == Op::M_MM || i.op == Op::M_TMM || i.op == Op::M_BMM ||
                    i.op == Op::M_BTMM || i.op == Op::M_MV || i.op == Op::M_TMV ||
                    i.op == Op::M_BTMV;
  if (sums) find(RsSwitch::SumOrder, Rounding, "dot products are summed in order");
}

void Porter::recode(AddressRecoder& recoder, PortIssue issue, const char* what) {
  if (has(PortIssue::UnknownAddress)) {
    find(RsSwitch::TileAddress, Unknown, fmt::format("{}; the address is not known", what));
    return;
  }
  if (!has(issue)) return;
  const RegisterUse use{pc_, program_[pc_].rs1};
  if (!recoder.recode(use, spare_, edits_)) {
    find(RsSwitch::TileAddress, NotRewritten,
         fmt::format("{}; what computes gp{} cannot be followed", what, use.gp));
    return;
  }
  Instruction i = current();
  i.rs1 = recoder.gp_at(use);
  if (i.rs1 != use.gp) edits_.replace(pc_, {i});
  find(RsSwitch::TileAddress, Rewritten,
       i.rs1 == use.gp ? fmt::format("{}; gp{} counts columns now", what, use.gp)
                       : fmt::format("{}; gp{} follows gp{} in columns", what, i.rs1, use.gp));
  recoded_.push_back(pc_);
}

// written out with a row stride of 0 the last row stands (semantics 8, wostride).
void Porter::replace_vector_product(const Instruction& i) {
  constexpr const char* kWhat = "operands swapped, and BLEN outputs a call";
  if (has(PortIssue::UnknownAddress) || has(PortIssue::VectorNearStart)) {
    const bool unknown = has(PortIssue::UnknownAddress);
    find(RsSwitch::Mv, unknown ? Unknown : NotRewritten,
         fmt::format("{}; {}", kWhat,
                     unknown ? "the vector's address is not known"
                             : "fewer than BLEN - 1 rows lie before the vector"));
    return;
  }
  const auto back = lasting_gp(rows_back_), first = lasting_gp(first_row_);
  if (!back || !first) {
    find(RsSwitch::Mv, NotRewritten, fmt::format("{}{}", kWhat, kNoSpare));
    return;
  }
  if (!rows_back_set_) {
    edits_.prologue(load_constant(*back, (settings_.blen - 1) * settings_.vlen));
    rows_back_set_ = true;
  }
  const bool transposed = i.op == Op::M_TMV;
  edits_.replace(pc_, {{.op = Op::S_SUB_INT, .rd = *first, .rs1 = i.rs2, .rs2 = *back},
                       {.op = transposed ? Op::M_TMM : Op::M_MM,
                        .rs1 = transposed ? *first : i.rs1,
                        .rs2 = transposed ? i.rs1 : *first}});
  find(RsSwitch::Mv, Rewritten,
       fmt::format("{}: {} on the BLEN rows that end with the vector", kWhat,
                   transposed ? "M_TMM" : "M_MM"));
}

void Porter::replace_vector_write_out(const Instruction& i) {
  const auto zero = lasting_gp(zero_stride_);
  if (!zero) {
    find(RsSwitch::Mv, NotRewritten, fmt::format("writes BLEN lanes{}", kNoSpare));
    return;
  }
  edits_.replace(pc_, {{.op = Op::M_MM_WO, .rd = i.rd, .rs1 = *zero, .imm = i.imm}});
  find(RsSwitch::Mv, Rewritten, "writes BLEN lanes: M_MM_WO with a row stride of 0");
}

// rs-bmm-scale: rows are multiplied by 0.25 where they are written out.
void Porter::quarter_rows(const Instruction& i, std::uint32_t rows) {
  const auto address = lasting_gp(scale_address_), counter = lasting_gp(scale_counter_);
  if (!quarter_ && address && counter) {
    quarter_ = spare_.take_f();
    if (quarter_) edits_.prologue(load_quarter(*quarter_));
  }
  if (!quarter_) {
    find(RsSwitch::BmmScale, NotRewritten, fmt::format("products are quartered{}", kNoSpare));
    return;
  }
  edits_.after(pc_, plena::scale_rows({.base = i.rd,
                                       .imm = i.imm,
                                       .rows = rows,
                                       .row_elements = settings_.vlen,
                                       .factor = *quarter_,
                                       .address = *address,
                                       .counter = *counter}));
  find(RsSwitch::BmmScale, Rewritten,
       fmt::format("products are quartered: the {} rows written are multiplied by 0.25", rows));
}

void Porter::visit_vector(const Instruction& i) {
  switch (i.op) {
    case Op::V_SUB_VV: {
      Instruction swapped = current();
      std::swap(swapped.rs1, swapped.rs2);
      edits_.replace(pc_, {swapped});
      find(RsSwitch::SubOrder, Rewritten, "subtracts the second row from the first: swapped");
      break;
    }
    case Op::V_EXP_V:
      find(RsSwitch::ExpClamp, DataDependent, "the same unless a lane lies beyond -88 … 88");
      break;
    case Op::V_MAX_VF:
    case Op::V_MIN_VF:
    case Op::V_RED_MAX:
      find(RsSwitch::Max, DataDependent, "the same unless there is a NaN or zeros of both signs");
      break;
    case Op::V_RED_SUM:
      find(RsSwitch::SumOrder, Rounding, "the row is summed lane by lane");
      break;
    case Op::V_TOPK:
      find(RsSwitch::TopK, DataDependent,
           "the same unless a logit is a NaN or infinite, or zeros of both signs compete");
      find(RsSwitch::SumOrder, Rounding, "weights are summed in the order of their ranks");
      break;
    default:
      break;
  }
  if (i.op != Op::V_TOPK && i.select != 0) visit_mask(i);
}

void Porter::visit_mask(const Instruction& i) {
  Instruction unmasked = current();
  unmasked.select = 0;
  if (i.op == Op::V_RED_MAX) {
    edits_.replace(pc_, {unmasked});
    find(RsSwitch::MaskMerge, Rewritten, "the mask of a maximum has no effect: left out");
  } else if (i.op == Op::V_RED_SUM) {
    find(RsSwitch::MaskMerge, NotRewritten, "the sum counts selected groups HLEN times");
  } else if (!has(PortIssue::MaskSelectsSome) && !has(PortIssue::MaskVaries)) {
    edits_.replace(pc_, {unmasked});
    find(RsSwitch::MaskMerge, Rewritten, "the mask selects every lane: left out");
  } else {
    merge(i, unmasked);
  }
}

void Porter::merge(const Instruction& i, const Instruction& unmasked) {
  constexpr const char* kWhat = "lanes that are not selected keep the first source";
  const std::uint64_t rows = settings_.vector_sram_size;
  const std::uint64_t scratch_row = (rows - 1) * settings_.vlen;
  const bool row_free =
      facts_.all_vector_addresses_known && facts_.vector_elements_used <= scratch_row;
  if (has(PortIssue::MaskVaries) || !row_free || scratch_row > 0xFFFF'FFFFU) {
    find(RsSwitch::MaskMerge, NotRewritten,
         fmt::format("{}; {}", kWhat,
                     row_free ? "V_MASK takes several values here"
                              : "no row of Vector SRAM is known to be free"));
    return;
  }
  const auto scratch = lasting_gp(scratch_), mask = lasting_gp(mask_);
  if (!negative_ && scratch && mask) {
    negative_ = spare_.take_f();
    if (negative_) {
      edits_.prologue(load_minus_one(*negative_));
      edits_.prologue(load_constant(*scratch, static_cast<std::uint32_t>(scratch_row)));
    }
  }
  if (!negative_) {
    find(RsSwitch::MaskMerge, NotRewritten, fmt::format("{}{}", kWhat, kNoSpare));
    return;
  }
  edits_.replace(pc_, merge_lanes({.operation = unmasked,
                                   .source = i.rs1,
                                   .selected = facts_.at[pc_].v_mask,
                                   .all = every_lane(),
                                   .minus_one = *negative_,
                                   .scratch = *scratch,
                                   .mask_register = *mask}));
  find(RsSwitch::MaskMerge, Rewritten,
       fmt::format("{}: computed apart in row {} and added", kWhat, rows - 1));
}

void Porter::visit_scalar(const Instruction& i) {
  if (i.op == Op::S_EXP_FP && i.rd != 0)
    find(RsSwitch::ExpClamp, DataDependent, "the same unless the value lies beyond -88 … 88");
  if (i.op == Op::S_MAX_FP && i.rd != 0)
    find(RsSwitch::Max, DataDependent, "the same unless there is a NaN or zeros of both signs");
}

void Porter::visit_transfer(const Instruction& i) {
  const bool matrix = i.op == Op::H_PREFETCH_M;
  const DataType type = matrix
                            ? (i.order != 0 ? settings_.hbm_m_kv_type : settings_.hbm_m_weight_type)
                            : (i.order != 0 ? settings_.hbm_v_kv_type : settings_.hbm_v_act_type);
  if (i.op == Op::H_STORE_V && type.is_mx()) {
    find(RsSwitch::Mx, NotRewritten,
         "stores other scales and codes: emax is not subtracted, mantissas do not carry");
  } else if (type.is_mx()) {
    find(RsSwitch::Mx, DataDependent,
         "the same unless the image has element codes with an exponent field of 0 (other than "
         "zero) or of all ones, or scale bytes 0 or 255");
  }
  visit_addresses(type);
}

void Porter::visit_addresses(DataType type) {
  const auto differs = [&](PortIssue issue, const char* what) {
    if (has(issue)) find(RsSwitch::HbmBytes, NotRewritten, what);
  };
  if (has(PortIssue::UnknownAddress))
    find(RsSwitch::HbmBytes, Unknown, "an address or stride of the transfer is not known");
  if (type.width() != 8) find(RsSwitch::HbmBytes, NotRewritten, "offsets and strides are bytes");
  differs(PortIssue::ScaleFloors, "a row that does not start on a block finds other scales");
  differs(PortIssue::ScaleCut, "scales beyond their 64-byte block read 0");
  differs(PortIssue::PastHbm, "what lies past the end of HBM reads 0");
  differs(PortIssue::PastVectorSram, "rows past the end of Vector SRAM are dropped");
}

}  // namespace plena
