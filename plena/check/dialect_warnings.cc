#include "plena/check/dialect_warnings.h"

#include "plena/check/rs_transfer.h"
#include "plena/numerics/float_format.h"
#include "plena/numerics/rs_formats.h"
#include "plena/numerics/vector_kernels.h"

namespace plena {

namespace {

struct FaultText {
  std::string_view name;
  std::string_view explanation;
};

constexpr std::array<FaultText, kRsFaultCount> kFaults = {
    FaultText{"rows-overlap", "a row reaches past the start of the next: strides are bytes"},
    FaultText{"scale-cut", "scales beyond their 64-byte block read 0"},
    FaultText{"scale-floors", "a row that does not start on a block uses other scales"},
    FaultText{"past-hbm", "what lies past the end of HBM reads 0"},
    FaultText{"past-vram", "rows past the end of Vector SRAM are dropped"},
    FaultText{"lost-carry", "a mantissa that rounds up to a power of two does not carry"},
    FaultText{"narrow-store", "codes of less than a byte overwrite each other"},
    FaultText{"lost-mask", "the mask stands in the rs2 field and is ignored"},
    FaultText{"write-out-immediate",
              "the immediate is read from bit 14, the public assembler writes it at bit 10"},
    FaultText{"masked-sum", "the sum counts selected groups HLEN times and takes in all others"},
    FaultText{"break-goes-on", "C_BREAK leaves no loop, it only takes it off the stack"}};

constexpr std::uint32_t kRs2Mask = 0xFU << 14;
constexpr std::uint32_t kAboveRd = 10;  // the public assembler's immediates begin at this bit

}  // namespace

std::string_view rs_fault_name(RsFault fault) {
  return kFaults[static_cast<std::size_t>(fault)].name;
}
std::string_view explain(RsFault fault) {
  return kFaults[static_cast<std::size_t>(fault)].explanation;
}

DialectWarnings::DialectWarnings(std::vector<std::uint32_t> words)
    : words_(std::move(words)), counts_(words_.size(), Counts{}) {}

void DialectWarnings::note(std::uint64_t pc, RsFault fault, bool met) {
  if (met) ++counts_[pc][static_cast<std::size_t>(fault)];
}

void DialectWarnings::about_to_run(const Machine& machine, std::uint64_t pc,
                                   const Instruction& instruction) {
  if (row_of(instruction.op).instruction_class == InstructionClass::Memory) {
    look_at_transfer(machine, pc, instruction);
  } else {
    look_at_word(pc, instruction);
  }
}

void DialectWarnings::retired(const Machine& /*machine*/, std::uint64_t /*pc*/,
                              const Instruction& /*instruction*/) {}

void DialectWarnings::look_at_word(std::uint64_t pc, const Instruction& i) {
  switch (i.op) {
    case Op::V_EXP_V:
    case Op::V_RECI_V:
    case Op::V_RED_MAX:
      note(pc, RsFault::LostMask, i.select == 0 && (words_[pc] & kRs2Mask) != 0);
      break;
    case Op::M_BMM_WO:
    case Op::M_MV_WO:
    case Op::M_BMV_WO:
      note(pc, RsFault::WriteOutImmediate, words_[pc] >> kAboveRd != 0);
      break;
    case Op::V_RED_SUM:
      note(pc, RsFault::MaskedSum, i.select != 0);
      break;
    case Op::C_BREAK:
      note(pc, RsFault::BreakGoesOn);
      break;
    default:
      break;
  }
}

void DialectWarnings::look_at_transfer(const Machine& machine, std::uint64_t pc,
                                       const Instruction& i) {
  RsTransfer transfer = RsTransfer::of(i, machine.settings);
  transfer.base = machine.a[i.rs2];
  transfer.offset = machine.gp[i.rs1];
  transfer.stride = i.select == 1 ? machine.stride : transfer.length;
  transfer.scale = machine.scale;
  bool floors = false, cut = false, outside = false;
  for (std::uint64_t row = 0; row < transfer.rows; ++row) {
    floors = floors || transfer.leaves_blocks(row);
    cut = cut || transfer.cuts_scales(row);
    outside = outside || transfer.leaves_hbm(row, machine.hbm.size());
  }
  note(pc, RsFault::RowsOverlap, transfer.rows_overlap());
  note(pc, RsFault::ScaleFloors, floors);
  note(pc, RsFault::ScaleCut, cut);
  note(pc, RsFault::PastHbm, outside && !transfer.store);
  const std::uint64_t end = machine.gp[i.rd] + transfer.rows * transfer.length;
  note(pc, RsFault::PastVectorSram, i.op == Op::H_PREFETCH_V && end > machine.vram_elements());
  if (transfer.store) look_at_store(machine, pc, i);
}

void DialectWarnings::look_at_store(const Machine& machine, std::uint64_t pc,
                                    const Instruction& i) {
  const RsTransfer transfer = RsTransfer::of(i, machine.settings);
  note(pc, RsFault::NarrowStore, transfer.type.is_mx() && transfer.type.width() < 8);
  const ElementType format = machine.vector_element();
  const std::uint64_t first = machine.gp[i.rd];
  const std::uint64_t elements = transfer.rows * transfer.length;
  if (first + elements > machine.vram_elements()) return;  // it is about to trap
  row_.resize(elements);
  vector_kernels(format).to_f32(machine.vram.data() + first * storage_bytes(format), row_.data(),
                                elements);
  bool lost = false;
  for (std::uint64_t row = 0; row < transfer.rows; ++row) {
    lost = lost || rs_lost_carries(transfer.type, row_.data() + row * transfer.length,
                                   transfer.length) != 0;
  }
  note(pc, RsFault::LostCarry, lost);
}

std::vector<DialectWarning> DialectWarnings::warnings() const {
  std::vector<DialectWarning> out;
  for (std::uint64_t pc = 0; pc < counts_.size(); ++pc) {
    for (std::size_t fault = 0; fault < kRsFaultCount; ++fault) {
      if (counts_[pc][fault] != 0)
        out.push_back({pc, static_cast<RsFault>(fault), counts_[pc][fault]});
    }
  }
  return out;
}

}  // namespace plena
