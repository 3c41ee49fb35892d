#include "plena/check/port_facts.h"

#include <algorithm>
#include <array>

#include "plena/check/rs_transfer.h"

namespace plena {

namespace {

class FactGatherer {
 public:
  FactGatherer(std::span<const Instruction> program, const Settings& settings)
      : settings_(settings) {
    facts_.at.resize(program.size());
  }

  void visit(std::uint64_t pc, const Instruction& i, const WalkState& state) {
    at_ = &facts_.at[pc];
    at_->reached = true;
    state_ = &state;
    switch (row_of(i.op).instruction_class) {
      case InstructionClass::Matrix:
        visit_matrix(i);
        break;
      case InstructionClass::Vector:
        visit_vector(i);
        break;
      case InstructionClass::Memory:
        visit_transfer(i);
        break;
      case InstructionClass::Scalar:
        visit_scalar(i);
        break;
      case InstructionClass::Control:
        break;
    }
  }

  ProgramFacts take() { return std::move(facts_); }

 private:
  enum Accumulator : std::uint8_t { Block, Heads, HeadRows, BlockRow };

  void note(PortIssue issue, bool holds = true) {
    if (holds) at_->issues.set(static_cast<std::size_t>(issue));
  }
  [[nodiscard]] KnownWord gp(std::uint8_t index) const { return state_->gp[index]; }

  // gp + imm as plena-rs adds them.
  KnownWord sum(std::uint8_t index, std::uint32_t imm) {
    const KnownWord base = gp(index);
    note(PortIssue::AddressWraps, base.known && std::uint64_t{base.value} + imm > 0xFFFF'FFFFU);
    return {base.value + imm, base.known};
  }

  void touch_rows(KnownWord first, std::uint64_t rows, std::uint64_t step) {
    if (!first.known) {
      facts_.all_vector_addresses_known = false;
      return;
    }
    const std::uint64_t end =
        first.value + (std::max<std::uint64_t>(rows, 1) - 1) * step + settings_.vlen;
    facts_.vector_elements_used = std::max(facts_.vector_elements_used, end);
  }

  // ------------------------------------------------------------ matrix

  void compute(Accumulator accumulator) {
    for (std::size_t other = 0; other < active_.size(); ++other)
      note(PortIssue::AccumulatorsOverlap, other != accumulator && active_[other]);
    active_[accumulator] = true;
  }
  void write_out(Accumulator accumulator) {
    for (std::size_t other = 0; other < active_.size(); ++other)
      note(PortIssue::AccumulatorsOverlap, other != accumulator && active_[other]);
    active_[accumulator] = false;
  }

  void tile_offset(KnownWord address, PortIssue issue) {
    const std::uint64_t tile = std::uint64_t{settings_.mlen} * settings_.mlen;
    note(PortIssue::UnknownAddress, !address.known);
    note(issue, address.known && address.value % tile != 0);
  }

  void visit_matrix(const Instruction& i) {
    const std::uint64_t mlen = settings_.mlen, blen = settings_.blen;
    switch (i.op) {
      case Op::M_MM:
        tile_offset(gp(i.rs1), PortIssue::ColumnCountsRows);
        touch_rows(gp(i.rs2), blen, mlen);
        compute(Block);
        break;
      case Op::M_TMM:
        touch_rows(gp(i.rs1), blen, mlen);
        compute(Block);
        break;
      case Op::M_BMM:
        tile_offset(gp(i.rs1), PortIssue::RowIsTheOffset);
        touch_rows(gp(i.rs2), mlen, mlen);
        compute(Heads);
        break;
      case Op::M_BTMM:
        touch_rows(gp(i.rs2), mlen, mlen);
        compute(Heads);
        break;
      case Op::M_BMV:
      case Op::M_BTMV:
        touch_rows(gp(i.rs2), 1, mlen);
        compute(HeadRows);
        break;
      case Op::M_MV:
      case Op::M_TMV:
        visit_vector_product(i);
        break;
      default:
        visit_write_out(i);
    }
  }

  void visit_vector_product(const Instruction& i) {
    const KnownWord vector = gp(i.rs2);
    note(PortIssue::UnknownAddress, !vector.known);
    note(PortIssue::VectorNearStart,
         vector.known && vector.value < (settings_.blen - 1) * settings_.vlen);
    touch_rows(vector, 1, settings_.mlen);
    compute(BlockRow);
  }

  void visit_write_out(const Instruction& i) {
    const KnownWord address = sum(i.rd, i.imm);
    const std::uint64_t mlen = settings_.mlen;
    switch (i.op) {
      case Op::M_MM_WO: {
        const KnownWord stride = i.rs1 == 0 ? KnownWord{1, true} : gp(i.rs1);
        touch_rows({address.value, address.known && stride.known}, settings_.blen,
                   mlen * stride.value);
        write_out(Block);
        break;
      }
      case Op::M_BMM_WO:
        touch_rows(address, std::uint64_t{settings_.heads()} * mlen, mlen);
        write_out(Heads);
        break;
      case Op::M_BMV_WO:
        touch_rows(address, settings_.heads(), mlen);
        write_out(HeadRows);
        break;
      default:
        touch_rows(address, 1, mlen);
        write_out(BlockRow);
    }
  }

  // ------------------------------------------------------------ vector and scalar

  void visit_vector(const Instruction& i) {
    for (const Operand& operand : row_of(i.op).operands()) {
      if (operand.kind != OperandKind::Gp || i.op == Op::V_TOPK) continue;
      const bool shift = i.op == Op::V_SHFT_V && operand.field == Field::Rs2;
      if (!shift) touch_rows(gp(static_cast<std::uint8_t>(field_value(i, operand.field))), 1, 0);
    }
    if (i.op == Op::V_TOPK) {
      const std::uint64_t lanes = i.select == 0 ? 32 : 128;
      touch_rows(gp(i.rs1), (lanes + settings_.vlen - 1) / settings_.vlen, settings_.vlen);
    } else if (i.select != 0) {
      visit_mask();
    }
  }

  void visit_mask() {
    const KnownWord mask = state_->v_mask;
    const std::uint32_t groups = settings_.vlen / settings_.hlen;
    const std::uint32_t all = groups == 32 ? ~0U : (1U << groups) - 1;
    const bool seen = at_->has(PortIssue::MaskSelectsAll) || at_->has(PortIssue::MaskSelectsSome);
    note(PortIssue::MaskVaries, !mask.known || (seen && (mask.value & all) != at_->v_mask));
    note((mask.value & all) == all ? PortIssue::MaskSelectsAll : PortIssue::MaskSelectsSome);
    if (!seen) at_->v_mask = mask.value & all;
  }

  void visit_scalar(const Instruction& i) {
    const bool writes_gp0 = i.rd == 0 && row_of(i.op).operands()[0].kind == OperandKind::Gp &&
                            row_of(i.op).operands()[0].access == Access::Write;
    if (writes_gp0 && i.op != Op::S_MAP_V_FP) note(PortIssue::WritesGp0, !stays_zero(i));
    const auto entry = [&](std::uint64_t count, std::uint64_t depth) {
      const KnownWord address = sum(i.rs1, i.imm);
      note(PortIssue::PastScalars, address.known && address.value + count > depth);
    };
    switch (i.op) {
      case Op::S_LD_FP:
      case Op::S_ST_FP:
        entry(1, settings_.fp_sram_depth);
        break;
      case Op::S_LD_INT:
      case Op::S_ST_INT:
        entry(1, settings_.int_sram_depth);
        break;
      case Op::S_MAP_V_FP:
        entry(settings_.vlen, settings_.fp_sram_depth);
        touch_rows(gp(i.rd), 1, 0);
        break;
      default:
        break;
    }
  }

  [[nodiscard]] bool stays_zero(const Instruction& i) const {
    return i.op == Op::S_ADDI_INT && i.rs1 == 0 && i.imm == 0;
  }

  // ------------------------------------------------------------ transfers

  void visit_transfer(const Instruction& i) {
    RsTransfer transfer = RsTransfer::of(i, settings_);
    if (i.op != Op::H_PREFETCH_M) {
      const KnownWord first = gp(i.rd);
      const std::uint64_t end = first.value + transfer.rows * transfer.length;
      note(PortIssue::UnknownAddress, !first.known);
      note(PortIssue::PastVectorSram,
           first.known && end > settings_.vector_sram_size * settings_.vlen);
      touch_rows(first, transfer.rows, transfer.length);
    }
    const bool is_mx = transfer.type.is_mx();
    note(PortIssue::UnsetStride, i.select == 1 && !state_->stride_set);
    note(PortIssue::UnsetScale, is_mx && !state_->scale_set);
    note(PortIssue::UnsetAddress, (state_->a_set >> i.rs2 & 1) == 0);
    const bool strided = i.select == 1;
    const bool known = gp(i.rs1).known && (!strided || state_->stride.known) &&
                       (!is_mx || state_->scale.known) && (state_->a_known >> i.rs2 & 1) != 0;
    if (!known) {
      note(PortIssue::UnknownAddress);
      return;
    }
    transfer.base = state_->a[i.rs2];
    transfer.offset = gp(i.rs1).value;
    transfer.stride = strided ? state_->stride.value : transfer.length;
    transfer.scale = state_->scale.value;
    visit_rows(transfer);
  }

  void visit_rows(const RsTransfer& transfer) {
    for (std::uint64_t row = 0; row < transfer.rows; ++row) {
      note(PortIssue::ScaleFloors, transfer.leaves_blocks(row));
      note(PortIssue::ScaleCut, transfer.cuts_scales(row));
      note(PortIssue::PastHbm, transfer.leaves_hbm(row, settings_.hbm_size));
    }
  }

  const Settings& settings_;
  ProgramFacts facts_;
  PortFacts* at_ = nullptr;
  const WalkState* state_ = nullptr;
  std::array<bool, 4> active_{};  // accumulators that hold something
};

}  // namespace

ProgramFacts gather_facts(std::span<const Instruction> program, const std::vector<bool>& legal,
                          const Settings& settings) {
  FactGatherer gatherer(program, settings);
  RegisterWalk walk(program, true);
  std::uint64_t steps = 0;
  while (walk.end() == RegisterWalk::End::Running && legal[walk.pc()] && steps < kLongestWalk) {
    gatherer.visit(walk.pc(), walk.instruction(), walk.state());
    walk.step();
    ++steps;
  }
  ProgramFacts facts = gatherer.take();
  facts.end = walk.end();
  facts.stop_pc = walk.pc();
  return facts;
}

}  // namespace plena
