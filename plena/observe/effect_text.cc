// What one instruction wrote, as text. Register effects come from the instruction table; effects
// on memories and the array are listed here by instruction.
#include <algorithm>
#include <span>

#include "plena/numerics/float_format.h"
#include "plena/observe/memory_elements.h"
#include "plena/observe/run_log.h"

namespace plena {

namespace {

constexpr std::uint64_t kShown = 8;  // elements of a row that are written out

// `1 2 3 4 ...`: the first of `count` numbers.
std::string numbers_text(std::span<const double> shown, std::uint64_t count) {
  std::string text = fmt::format("{:.6g}", fmt::join(shown, " "));
  if (count > shown.size()) text += fmt::format(" ... ({} elements)", count);
  return text;
}

std::string_view short_name(MemoryKind memory) {
  switch (memory) {
    case MemoryKind::Vram:
      return "vram";
    case MemoryKind::Mram:
      return "mram";
    case MemoryKind::FpMem:
      return "fp";
    case MemoryKind::IntMem:
      return "int";
    case MemoryKind::Hbm:
      return "hbm";
  }
  return "";
}

// `vram[64] = 1 2 3 ...`: elements from `first` on, as many of them as there are.
std::string elements_text(const Machine& machine, MemoryKind memory, std::uint64_t first,
                          std::uint64_t count) {
  const std::uint64_t size = machine.element_count(memory);
  const std::uint64_t readable = first < size ? std::min({count, size - first, kShown}) : 0;
  const auto bytes = machine.read_elements(memory, std::min(first, size), readable);
  const auto format = float_format(machine, memory);
  std::vector<double> shown;
  if (bytes) {
    for (const std::uint32_t bits : element_bits(*bytes, machine.file_element_bytes(memory)))
      shown.push_back(element_number(format, bits));
  }
  return fmt::format("{}[{}] = {}", short_name(memory), first, numbers_text(shown, count));
}

// One entry of FP_MEM or INT_MEM, with its bits.
std::string entry_text(const Machine& machine, MemoryKind memory, std::uint64_t address) {
  const auto bytes = machine.read_elements(memory, address, 1);
  if (!bytes) return {};
  const auto bits = element_bits(*bytes, machine.file_element_bytes(memory));
  return fmt::format("{}[{}] = {}", short_name(memory), address,
                     element_text(machine, memory, bits[0]));
}

// gp + imm, which wraps only under rs-decode (semantics 6.14).
std::uint64_t address_sum(const Machine& machine, std::uint8_t gp, std::uint64_t addend) {
  const std::uint64_t sum = machine.gp[gp] + addend;
  return machine.dialect.has(RsSwitch::Decode) ? sum & 0xFFFFFFFF : sum;
}

std::string register_text(const Machine& machine, const Operand& operand, std::uint32_t index) {
  switch (operand.kind) {
    case OperandKind::Gp:
      return fmt::format("gp{} = 0x{:08X} ({})", index, machine.gp[index], machine.gp[index]);
    case OperandKind::Fp: {
      const std::uint32_t bits = machine.f[index];
      return fmt::format("f{} = {}", index, element_text(machine, MemoryKind::FpMem, bits));
    }
    case OperandKind::Addr:
      return fmt::format("a{} = 0x{:016X} ({})", index, machine.a[index], machine.a[index]);
    default:
      return {};
  }
}

std::string accumulators_text(std::string_view shape, const std::vector<float>& values) {
  std::vector<double> shown(
      values.begin(),
      values.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(values.size(), kShown)));
  return fmt::format("array[{}] = {}", shape, numbers_text(shown, values.size()));
}

std::string array_text(const Machine& machine, Op op) {
  const SystolicArray& array = machine.array;
  switch (op) {
    case Op::M_MM:
    case Op::M_TMM:
      return accumulators_text(array_shape_name(ArrayShape::Block), array.block);
    case Op::M_BMM:
    case Op::M_BTMM:
      return accumulators_text(array_shape_name(ArrayShape::Heads), array.heads);
    case Op::M_BMV:
    case Op::M_BTMV:
      return accumulators_text(array_shape_name(ArrayShape::HeadRows), array.head_rows);
    default:
      return machine.dialect.has(RsSwitch::Mv)
                 ? accumulators_text(array_shape_name(ArrayShape::BlockRow), array.block_row)
                 : accumulators_text(array_shape_name(ArrayShape::Row), array.row);
  }
}

// `hbm[0x1000], 64 bytes + 8 of scales at hbm[0x2000]`: where a transfer begins, and its size.
std::string transfer_text(const std::vector<HbmRow>& rows) {
  if (rows.empty()) return "hbm, 0 bytes";
  std::uint64_t elements = 0;
  std::uint64_t scales = 0;
  for (const HbmRow& row : rows) {
    elements += row.element_bytes;
    scales += row.scale_bytes;
  }
  std::string text = fmt::format("hbm[0x{:X}], {} bytes", rows[0].element_address, elements);
  if (scales != 0)
    text += fmt::format(" + {} of scales at hbm[0x{:X}]", scales, rows[0].scale_address);
  return text;
}

// The first bytes a store left in HBM.
std::string stored_text(const Machine& machine, const std::vector<HbmRow>& rows) {
  if (rows.empty()) return {};
  const std::uint64_t count = std::min(rows[0].element_bytes, kShown);
  const auto bytes = machine.read_elements(MemoryKind::Hbm, rows[0].element_address, count);
  if (!bytes) return transfer_text(rows);
  return fmt::format("{} = {:02X}{}", transfer_text(rows), fmt::join(*bytes, " "),
                     count < rows[0].element_bytes ? " ..." : "");
}

std::string topk_text(const Machine& machine, const Instruction& i) {
  const std::uint64_t chosen = i.select == 0 ? 4 : 8;  // of 32 or 128 lanes (semantics 8)
  return elements_text(machine, MemoryKind::IntMem, machine.gp[i.rs2], chosen) + "; " +
         elements_text(machine, MemoryKind::FpMem, machine.gp[i.rd], chosen);
}

std::string memory_effect(const Machine& machine, const Instruction& i,
                          const std::vector<HbmRow>& rows) {
  const Settings& settings = machine.settings;
  const auto vram_at = [&](std::uint64_t address, std::uint64_t count) {
    return elements_text(machine, MemoryKind::Vram, address, count);
  };
  switch (i.op) {
    case Op::M_MM_WO:
      return fmt::format("{} in the first of {} rows",
                         vram_at(address_sum(machine, i.rd, i.imm), settings.blen), settings.blen);
    case Op::M_MV_WO:
      return vram_at(address_sum(machine, i.rd, i.imm),
                     machine.dialect.has(RsSwitch::Mv) ? settings.blen : settings.mlen);
    case Op::M_BMM_WO:
      return fmt::format("{} in the first of {} rows",
                         vram_at(address_sum(machine, i.rd, i.imm), settings.mlen),
                         std::uint64_t{settings.heads()} * settings.mlen);
    case Op::M_BMV_WO:
      return fmt::format("{} in the first of {} rows",
                         vram_at(address_sum(machine, i.rd, i.imm), settings.mlen),
                         settings.heads());
    case Op::V_TOPK:
      return topk_text(machine, i);
    case Op::S_MAP_V_FP:
      return vram_at(machine.gp[i.rd], settings.vlen);
    case Op::S_ST_INT:
      return entry_text(machine, MemoryKind::IntMem, address_sum(machine, i.rs1, i.imm));
    case Op::S_ST_FP:
      return entry_text(machine, MemoryKind::FpMem, address_sum(machine, i.rs1, i.imm));
    case Op::H_PREFETCH_M:
      return elements_text(machine, MemoryKind::Mram, machine.gp[i.rd],
                           std::uint64_t{settings.hbm_m_prefetch_amount} * settings.mlen) +
             " from " + transfer_text(rows);
    case Op::H_PREFETCH_V:
      return vram_at(machine.gp[i.rd],
                     std::uint64_t{settings.hbm_v_prefetch_amount} * settings.vlen) +
             " from " + transfer_text(rows);
    case Op::H_STORE_V:
      return stored_text(machine, rows);
    case Op::C_SET_SCALE_REG:
      return fmt::format("SCALE_REG = 0x{:08X} ({})", machine.scale, machine.scale);
    case Op::C_SET_STRIDE_REG:
      return fmt::format("STRIDE_REG = 0x{:08X} ({})", machine.stride, machine.stride);
    case Op::C_SET_V_MASK_REG:
      return fmt::format("V_MASK = 0x{:08X}", machine.v_mask);
    default:
      break;
  }
  const InstructionClass instruction_class = row_of(i.op).instruction_class;
  if (instruction_class == InstructionClass::Matrix) return array_text(machine, i.op);
  if (instruction_class == InstructionClass::Vector)
    return vram_at(machine.gp[i.rd], settings.vlen);
  return {};
}

}  // namespace

std::string effect_text(const Machine& machine, const Instruction& instruction,
                        const std::vector<HbmRow>& rows) {
  for (const Operand& operand : row_of(instruction.op).operands()) {
    if (operand.access == Access::Write || operand.access == Access::ReadWrite)
      return register_text(machine, operand, field_value(instruction, operand.field));
  }
  return memory_effect(machine, instruction, rows);
}

}  // namespace plena
