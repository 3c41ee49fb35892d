#include "plena/timing/timed_program.h"

#include <map>
#include <tuple>

#include "plena/timing/transfer_rows.h"

namespace plena {

namespace {

TimedKind kind_of(Op op) {
  switch (op) {
    case Op::C_LOOP_START:
      return TimedKind::LoopStart;
    case Op::C_LOOP_END:
      return TimedKind::LoopEnd;
    case Op::C_BREAK:
      return TimedKind::Nothing;
    case Op::C_SET_ADDR_REG:
    case Op::C_SET_SCALE_REG:
    case Op::C_SET_STRIDE_REG:
    case Op::C_SET_V_MASK_REG:
      return TimedKind::SetSpecial;
    case Op::S_LD_INT:
      return TimedKind::LoadInt;
    case Op::S_ST_INT:
      return TimedKind::StoreInt;
    case Op::S_LD_FP:
      return TimedKind::LoadFp;
    case Op::S_ST_FP:
      return TimedKind::StoreFp;
    case Op::S_MAP_V_FP:
      return TimedKind::MapFp;
    case Op::V_ADD_VV:
    case Op::V_SUB_VV:
    case Op::V_MUL_VV:
      return TimedKind::VectorRows;
    case Op::V_RED_SUM:
    case Op::V_RED_MAX:
      return TimedKind::Reduce;
    case Op::V_TOPK:
      return TimedKind::TopK;
    case Op::M_MM_WO:
    case Op::M_BMM_WO:
    case Op::M_MV_WO:
    case Op::M_BMV_WO:
      return TimedKind::WriteOut;
    case Op::H_PREFETCH_M:
    case Op::H_PREFETCH_V:
      return TimedKind::Load;
    case Op::H_STORE_V:
      return TimedKind::Store;
    default:
      break;
  }
  switch (row_of(op).instruction_class) {
    case InstructionClass::Matrix:
      return TimedKind::Compute;
    case InstructionClass::Vector:
      return TimedKind::VectorRow;
    default:
      return TimedKind::Registers;
  }
}

ArrayShape shape_of(Op op, const Dialect& dialect) {
  switch (op) {
    case Op::M_MM:
    case Op::M_TMM:
    case Op::M_MM_WO:
      return ArrayShape::Block;
    case Op::M_BMM:
    case Op::M_BTMM:
    case Op::M_BMM_WO:
      return ArrayShape::Heads;
    case Op::M_MV:
    case Op::M_TMV:
    case Op::M_MV_WO:
      return dialect.has(RsSwitch::Mv) ? ArrayShape::BlockRow : ArrayShape::Row;
    case Op::M_BMV:
    case Op::M_BTMV:
    case Op::M_BMV_WO:
      return ArrayShape::HeadRows;
    default:
      return ArrayShape::Clear;
  }
}

Slot slot_of(OperandKind kind, std::uint32_t number) {
  switch (kind) {
    case OperandKind::Fp:
      return number == 0 ? kAlwaysReady : static_cast<Slot>(kFpSlot + number);
    case OperandKind::Addr:
      return static_cast<Slot>(kAddrSlot + number);
    default:
      return static_cast<Slot>(kGpSlot + number);
  }
}

bool names_register(OperandKind kind) {
  return kind == OperandKind::Gp || kind == OperandKind::Fp || kind == OperandKind::Addr ||
         kind == OperandKind::RowStride;
}

// Special registers an instruction reads without naming them as operands.
void add_implied_sources(const Instruction& i, const Settings& s, std::vector<Slot>& sources) {
  const InstructionClass instruction_class = row_of(i.op).instruction_class;
  if (instruction_class == InstructionClass::Vector && i.op != Op::V_TOPK && i.select != 0)
    sources.push_back(kMaskSlot);
  if (instruction_class != InstructionClass::Memory) return;
  if (i.select == 1) sources.push_back(kStrideSlot);
  if (transfer_type(s, i).is_mx()) sources.push_back(kScaleSlot);
}

Slot special_destination(const Instruction& i) {
  switch (i.op) {
    case Op::C_SET_SCALE_REG:
      return kScaleSlot;
    case Op::C_SET_STRIDE_REG:
      return kStrideSlot;
    case Op::C_SET_V_MASK_REG:
      return kMaskSlot;
    default:
      return kSinkSlot;
  }
}

void set_registers(const Instruction& i, const Settings& settings, TimedInstruction& out) {
  std::vector<Slot> sources;
  out.destination = special_destination(i);
  for (const Operand& operand : row_of(i.op).operands()) {
    if (operand.access == Access::None || !names_register(operand.kind)) continue;
    const std::uint32_t number = field_value(i, operand.field);
    const Slot slot = slot_of(operand.kind, number);
    // C_LOOP_END's counter has rules of its own (rule 5).
    if (operand.access != Access::Write && i.op != Op::C_LOOP_END) sources.push_back(slot);
    if (operand.access != Access::Read && slot != kAlwaysReady) out.destination = slot;
  }
  add_implied_sources(i, settings, sources);
  for (std::size_t n = 0; n < sources.size(); ++n) out.sources[n] = sources[n];
}

}  // namespace

Result<TimedProgram> TimedProgram::create(std::vector<Instruction> instructions,
                                          const Settings& settings, const Dialect& dialect,
                                          const TimingProfile& profile) {
  // A cost depends on the opcode, V_TOPK's policy and whether f0 is the destination.
  std::map<std::tuple<Op, std::uint8_t, bool>, InstructionCost> costs;
  TimedProgram program;
  program.timed.reserve(instructions.size());
  for (const Instruction& i : instructions) {
    const auto key = std::tuple(i.op, i.op == Op::V_TOPK ? i.select : std::uint8_t{0}, i.rd == 0);
    auto found = costs.find(key);
    if (found == costs.end()) {
      const auto cost = instruction_cost(profile, settings, i);
      if (!cost) return tl::unexpected(cost.error());
      found = costs.emplace(key, *cost).first;
    }
    TimedInstruction out{.kind = kind_of(i.op),
                         .unit = unit_of(i.op),
                         .latency = found->second.latency,
                         .interval = found->second.interval,
                         .imm = i.imm,
                         .rd = i.rd,
                         .rs1 = i.rs1,
                         .rs2 = i.rs2,
                         .select = i.select,
                         .op = i.op,
                         .accumulates = i.op == Op::V_RED_SUM || i.op == Op::V_RED_MAX,
                         .shape = shape_of(i.op, dialect)};
    set_registers(i, settings, out);
    program.timed.push_back(out);
    if (profile.has_energy()) program.picojoules.push_back(found->second.picojoules);
  }
  program.instructions = std::move(instructions);
  return program;
}

}  // namespace plena
