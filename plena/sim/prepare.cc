// From words to a prepared program: decoding, pairing of loops, choice of handlers.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "plena/sim/prepared.h"

namespace plena {

namespace {

tl::unexpected<Trap> load_trap(TrapCause cause, std::size_t pc, std::string values,
                               std::string rule) {
  return tl::unexpected(Trap{cause, pc, std::move(values), std::move(rule)});
}

// Words the decoder refuses end the load, but under rs-decode most of them only end the run that
// reaches them: those are nullopt.
using Decoded = std::vector<std::optional<Instruction>>;

tl::expected<Decoded, Trap> decode_all(const std::vector<std::uint32_t>& words,
                                       const Dialect& dialect) {
  Decoded decoded;
  decoded.reserve(words.size());
  for (std::size_t pc = 0; pc < words.size(); ++pc) {
    decoded.push_back(decode(words[pc], dialect));
    const bool deferred = dialect.has(RsSwitch::Decode) && !refused_at_load(words[pc]);
    if (!decoded.back() && !deferred) {
      return load_trap(
          TrapCause::IllegalInstruction, pc, explain_illegal(words[pc], dialect),
          fmt::format("the decoder refuses the word 0x{:08X} (semantics 2)", words[pc]));
    }
  }
  return decoded;
}

// For each C_LOOP_END the index of its C_LOOP_START; other entries are 0 (semantics 6.11, 6.17).
tl::expected<std::vector<std::uint32_t>, Trap> pair_loops(const Decoded& decoded) {
  std::vector<std::uint32_t> partner(decoded.size(), 0);
  std::vector<std::uint32_t> open;
  for (std::size_t pc = 0; pc < decoded.size(); ++pc) {
    if (!decoded[pc]) continue;
    const Instruction& i = *decoded[pc];
    if (i.op == Op::C_LOOP_START) {
      if (i.imm == 0)
        return load_trap(TrapCause::LoopStructure, pc, "0 iterations",
                         "a loop runs at least once (semantics 6.11)");
      if (i.rd == 0)
        return load_trap(TrapCause::LoopStructure, pc, "counter gp0",
                         "gp0 cannot hold a loop counter (semantics 6.17)");
      open.push_back(static_cast<std::uint32_t>(pc));
    } else if (i.op == Op::C_LOOP_END) {
      if (open.empty() || decoded[open.back()]->rd != i.rd) {
        return load_trap(TrapCause::LoopStructure, pc,
                         open.empty() ? fmt::format("no loop is open for gp{}", i.rd)
                                      : fmt::format("the innermost open loop counts gp{}",
                                                    decoded[open.back()]->rd),
                         "loops nest and pair up by their counter (semantics 6.11)");
      }
      partner[pc] = open.back();
      open.pop_back();
    }
  }
  if (!open.empty()) {
    return load_trap(TrapCause::LoopStructure, open.back(), "the loop is never closed",
                     "every C_LOOP_START has its C_LOOP_END (semantics 6.11)");
  }
  return partner;
}

// Writes to gp0 vanish, except under rs-registers.
Code integer_code(const Instruction& i, const Dialect& dialect, Code code) {
  return i.rd == 0 && !dialect.has(RsSwitch::Registers) ? Code::Nothing : code;
}

Code code_of(const Instruction& i, const Dialect& dialect) {
  switch (i.op) {
    case Op::S_ADD_INT:
      return integer_code(i, dialect, Code::AddInt);
    case Op::S_ADDI_INT:
      return integer_code(i, dialect, Code::AddiInt);
    case Op::S_SUB_INT:
      return integer_code(i, dialect, Code::SubInt);
    case Op::S_MUL_INT:
      return integer_code(i, dialect, Code::MulInt);
    case Op::S_LUI_INT:
      return integer_code(i, dialect, Code::LoadImmediate);
    case Op::C_LOOP_START:
      return Code::LoopStart;
    case Op::C_LOOP_END:
      return Code::LoopEnd;
    case Op::C_SET_ADDR_REG:
      return Code::SetAddressRegister;
    case Op::C_SET_SCALE_REG:
      return Code::SetScale;
    case Op::C_SET_STRIDE_REG:
      return Code::SetStride;
    case Op::C_SET_V_MASK_REG:
      return Code::SetMask;
    case Op::C_BREAK:
      return Code::Break;
    default:
      return Code::Call;
  }
}

Handler handler_of(const Instruction& i, const PreparedProgram& program) {
  switch (row_of(i.op).instruction_class) {
    case InstructionClass::Matrix:
      return matrix_handler(i, program.dialect);
    case InstructionClass::Vector:
      return vector_handler(i, program.dialect);
    case InstructionClass::Scalar:
      return scalar_handler(i, program.scalar_format, program.dialect);
    case InstructionClass::Memory:
      return memory_handler(i, program.dialect);
    case InstructionClass::Control:
      return nullptr;
  }
  return nullptr;
}

// A register the dialect decodes but does not have; reaching it is the fault (rs-decode).
// Arithmetic into f0 does nothing, so that it never reaches its sources.
bool names_missing_register(const Instruction& i, const Dialect& dialect) {
  const auto operands = row_of(i.op).operands();
  const bool into_f0 = !operands.empty() && operands[0].kind == OperandKind::Fp &&
                       operands[0].access != Access::Read && i.rd == 0;
  if (into_f0) return false;
  return std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) {
    const std::uint32_t value = field_value(i, operand.field);
    return value > 7 && (operand.kind == OperandKind::Fp ||
                         (operand.kind == OperandKind::Addr && !dialect.has(RsSwitch::Registers)));
  });
}

Prepared prepare_illegal(std::uint32_t word) {
  Prepared out;
  out.code = Code::Call;
  out.handler = illegal_when_reached;
  out.imm = word;
  return out;
}

Prepared prepare_one(const Instruction& i, std::uint32_t partner, const PreparedProgram& program) {
  Prepared out;
  out.code = code_of(i, program.dialect);
  if (Handler rs = rs_control_handler(i, program.dialect)) {
    out.code = Code::Jump;
    out.handler = rs;
  } else if (out.code == Code::Call) {
    out.handler = handler_of(i, program);
  }
  out.imm = i.op == Op::S_LUI_INT ? i.imm << 12 : i.imm;
  out.partner = partner;
  out.rd = i.rd;
  out.rs1 = i.rs1;
  out.rs2 = i.rs2;
  out.select = i.select;
  out.order = i.order;
  return out;
}

// In the order of PLENA_FUSED_PAIRS.
constexpr Code add_int = Code::AddInt, addi_int = Code::AddiInt, call = Code::Call,
               loop_end = Code::LoopEnd;
#define PLENA_PAIR_CODES(first, second) std::pair{first, second},
constexpr std::array kPairs = {PLENA_FUSED_PAIRS(PLENA_PAIR_CODES)};
#undef PLENA_PAIR_CODES
static_assert(kPairs.size() == kPairCount);

// Pairs may overlap: wherever the loop arrives, it takes two steps at once if it can.
std::vector<Prepared> fuse_pairs(std::vector<Prepared> code) {
  for (std::size_t pc = 0; pc + 1 < code.size(); ++pc) {
    const auto* pair =
        std::find(kPairs.begin(), kPairs.end(), std::pair{code[pc].code, code[pc + 1].code});
    if (pair == kPairs.end()) continue;
    code[pc].code =
        static_cast<Code>(static_cast<std::ptrdiff_t>(Code::FirstPair) + (pair - kPairs.begin()));
  }
  return code;
}

}  // namespace

tl::expected<std::shared_ptr<const PreparedProgram>, Trap> prepare(
    const std::vector<std::uint32_t>& words, const Settings& settings, const Dialect& dialect,
    SimdTarget simd) {
  auto decoded = decode_all(words, dialect);
  if (!decoded) return tl::unexpected(std::move(decoded).error());
  std::vector<std::uint32_t> partner(words.size(), 0);
  if (!dialect.has(RsSwitch::Loops)) {  // there loops are matched when they run
    auto paired = pair_loops(*decoded);
    if (!paired) return tl::unexpected(std::move(paired).error());
    partner = std::move(*paired);
  }

  auto program = std::make_shared<PreparedProgram>(settings_for(settings, dialect), dialect, simd);
  program->code.reserve(words.size() + 1);
  program->decoded.reserve(words.size());
  for (std::size_t pc = 0; pc < words.size(); ++pc) {
    const auto& instruction = (*decoded)[pc];
    const bool legal = instruction && !names_missing_register(*instruction, dialect);
    program->code.push_back(legal ? prepare_one(*instruction, partner[pc], *program)
                                  : prepare_illegal(words[pc]));
    // A word that faults when reached never retires; C_BREAK stands in for it in listings.
    program->decoded.push_back(instruction.value_or(Instruction{.op = Op::C_BREAK}));
  }
  program->code.push_back(Prepared{});
  program->fused = fuse_pairs(program->code);
  return program;
}

const std::vector<Instruction>& instructions(const PreparedProgram& program) {
  return program.decoded;
}

}  // namespace plena
