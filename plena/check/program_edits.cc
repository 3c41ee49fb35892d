#include "plena/check/program_edits.h"

namespace plena {

namespace {

constexpr std::uint8_t kFpRegisters = 8;
constexpr std::uint8_t kAddressRegisters = 8;
constexpr std::uint8_t kGpRegisters = 16;

bool is_gp(const Operand& operand) {
  return operand.kind == OperandKind::Gp || operand.kind == OperandKind::RowStride;
}

std::optional<std::uint8_t> take(std::array<bool, 16>& used, std::uint8_t from, std::uint8_t to) {
  for (std::uint8_t index = from; index < to; ++index) {
    if (used[index]) continue;
    used[index] = true;
    return index;
  }
  return std::nullopt;
}

void append(std::vector<Instruction>& to, const std::vector<Instruction>& added) {
  to.insert(to.end(), added.begin(), added.end());
}

}  // namespace

std::vector<Instruction> load_constant(std::uint8_t gp, std::uint32_t value) {
  if (value <= kImm18Max) return {{.op = Op::S_ADDI_INT, .rd = gp, .imm = value}};
  std::vector<Instruction> out = {{.op = Op::S_LUI_INT, .rd = gp, .imm = value >> 12}};
  if ((value & 0xFFF) != 0)
    out.push_back({.op = Op::S_ADDI_INT, .rd = gp, .rs1 = gp, .imm = value & 0xFFF});
  return out;
}

std::vector<Field> gp_reads(const Instruction& instruction) {
  std::vector<Field> fields;
  for (const Operand& operand : row_of(instruction.op).operands()) {
    const bool reads = operand.access == Access::Read || operand.access == Access::ReadWrite;
    if (is_gp(operand) && reads) fields.push_back(operand.field);
  }
  return fields;
}

std::optional<std::uint8_t> gp_written(const Instruction& instruction) {
  for (const Operand& operand : row_of(instruction.op).operands()) {
    const bool writes = operand.access == Access::Write || operand.access == Access::ReadWrite;
    if (is_gp(operand) && writes)
      return static_cast<std::uint8_t>(field_value(instruction, operand.field));
  }
  return std::nullopt;
}

SpareRegisters::SpareRegisters(std::span<const Instruction> program) {
  gp_[0] = f_[0] = true;
  for (const Instruction& instruction : program) {
    for (const Operand& operand : row_of(instruction.op).operands()) {
      const std::uint32_t value = field_value(instruction, operand.field);
      if (is_gp(operand)) gp_[value] = true;
      if (operand.kind == OperandKind::Fp) f_[value] = true;
      if (operand.kind == OperandKind::Addr) a_[value] = true;
    }
  }
}

std::optional<std::uint8_t> SpareRegisters::take_gp() {
  return take(gp_, 1, kGpRegisters);
}
std::optional<std::uint8_t> SpareRegisters::take_f() {
  return take(f_, 1, kFpRegisters);
}
std::optional<std::uint8_t> SpareRegisters::take_a() {
  return take(a_, 0, kAddressRegisters);
}

void ProgramEdits::before(std::uint64_t pc, const std::vector<Instruction>& added) {
  append(before_[pc], added);
}
void ProgramEdits::after(std::uint64_t pc, const std::vector<Instruction>& added) {
  append(after_[pc], added);
}
void ProgramEdits::replace(std::uint64_t pc, std::vector<Instruction> replacement) {
  replacement_[pc] = std::move(replacement);
}
void ProgramEdits::prologue(const std::vector<Instruction>& added) {
  append(prologue_, added);
}

std::optional<Instruction> ProgramEdits::replaced(std::uint64_t pc) const {
  const auto found = replacement_.find(pc);
  if (found == replacement_.end() || found->second.size() != 1) return std::nullopt;
  return found->second.front();
}

ProgramEdits::Result ProgramEdits::apply(std::span<const Instruction> program) const {
  Result out{prologue_, {}};
  const auto add = [&](const auto& edits, std::uint64_t pc) {
    const auto found = edits.find(pc);
    if (found == edits.end()) return false;
    append(out.program, found->second);
    return true;
  };
  for (std::uint64_t pc = 0; pc < program.size(); ++pc) {
    add(before_, pc);
    out.position.push_back(out.program.size());
    if (!add(replacement_, pc)) out.program.push_back(program[pc]);
    add(after_, pc);
  }
  return out;
}

}  // namespace plena
