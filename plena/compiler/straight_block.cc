#include "plena/compiler/straight_block.h"

#include <bit>
#include <map>
#include <optional>

namespace plena {

namespace {

constexpr std::size_t kNearby = 24;  // instructions a value is kept for to serve once more

// Index in BlockNode::sources of the fields that can name a register.
std::optional<std::size_t> source_index(Field field) {
  switch (field) {
    case Field::Rd:
      return 0;
    case Field::Rs1:
      return 1;
    case Field::Rs2:
      return 2;
    default:
      return std::nullopt;
  }
}

bool is_integer_arithmetic(Op op) {
  return op == Op::S_ADD_INT || op == Op::S_ADDI_INT || op == Op::S_SUB_INT ||
         op == Op::S_MUL_INT || op == Op::S_LUI_INT;
}

// Writes nothing but its register.
bool is_pure(Op op) {
  return is_integer_arithmetic(op) || op == Op::S_LD_INT || op == Op::S_LD_FP ||
         op == Op::V_RED_SUM || op == Op::V_RED_MAX ||
         (row_of(op).instruction_class == InstructionClass::Scalar && op >= Op::S_ADD_FP &&
          op <= Op::S_SQRT_FP);
}

// The field whose register is added to an immediate to make an address, as index of a source.
std::optional<std::size_t> based_source(Op op) {
  switch (op) {
    case Op::M_MV_WO:
    case Op::M_BMM_WO:
    case Op::M_BMV_WO:
    case Op::M_MM_WO:
      return 0;
    case Op::S_LD_FP:
    case Op::S_ST_FP:
    case Op::S_LD_INT:
    case Op::S_ST_INT:
    case Op::S_MAP_V_FP:
      return 1;
    default:
      return std::nullopt;
  }
}

std::uint32_t immediate_limit(Op op) {
  return row_of(op).form == Form::I22 ? kImm22Max : kImm18Max;
}

class Builder {
 public:
  Builder(std::span<const Line> code, const BlockSurroundings& around, Symbols& symbols,
          bool simplify)
      : code_(code), around_(around), symbols_(symbols), simplify_(simplify) {}

  StraightBlock build() {
    enter();
    for (std::size_t at = 0; at < code_.size(); ++at) {
      const RegisterSet writes = registers_of(code_[at].instruction).writes;
      if (writes != 0) last_write_[static_cast<unsigned>(std::countr_zero(writes))] = at;
    }
    for (std::size_t at = 0; at < code_.size(); ++at) add(at);
    leave();
    if (simplify_) drop_unread();
    weave();
    return std::move(block_);
  }

 private:
  void enter() {
    for (unsigned reg = 0; reg < kRegisters; ++reg) {
      RegisterValue value{.node = -1, .reg = reg, .web = 0, .affine = {}};
      if (reg < kFirstFp) value.affine = around_.entry[reg];
      block_.values.push_back(value);
      last_use_.push_back(0);
      is_address_.push_back(false);
      current_[reg] = static_cast<int>(reg);
      const bool holds = (around_.live_in & register_bit(reg)) != 0;
      if (reg < kFirstFp && holds) note(static_cast<int>(reg));
    }
  }

  void add(std::size_t at) {
    BlockNode node{.instruction = code_[at].instruction, .comment = code_[at].text, .line = at};
    find_sources(node);
    const RegisterSet writes = registers_of(node.instruction).writes;
    std::optional<Affine> result;
    if (writes != 0 && writes < register_bit(kFirstFp)) {
      result = value_of(node.instruction, affine(node.sources[1]), affine(node.sources[2]));
    }
    if (simplify_) {
      if (result) make_from_anchor(node, *result);
      reuse_equal(node);
      join_immediate(node);
    }
    note_uses(node);
    define(node, writes, result);
    block_.nodes.push_back(std::move(node));
  }

  void find_sources(BlockNode& node) const {
    for (const Operand& operand : row_of(node.instruction.op).operands()) {
      const bool fp = operand.kind == OperandKind::Fp;
      if (!fp && operand.kind != OperandKind::Gp && operand.kind != OperandKind::RowStride)
        continue;
      const std::uint32_t number = field_value(node.instruction, operand.field);
      if (number == 0 || operand.access == Access::Write) continue;
      node.sources[*source_index(operand.field)] = current_[number + (fp ? kFirstFp : 0)];
      node.accumulates = node.accumulates || operand.access == Access::ReadWrite;
    }
  }

  [[nodiscard]] Affine affine(int value) const {
    return value == kNoValue ? Affine{} : block_.values[static_cast<std::size_t>(value)].affine;
  }
  [[nodiscard]] bool is_gp(int value) const {
    return block_.values[static_cast<std::size_t>(value)].reg < kFirstFp;
  }

  // Arithmetic whose result is known: a constant at once, or one step from the first value over the
  // same unknown, so that no chain of sums is left.
  void make_from_anchor(BlockNode& node, const Affine& result) const {
    const std::uint8_t rd = node.instruction.rd;
    const auto become = [&](Instruction instruction, int source) {
      node.instruction = instruction;
      node.sources = {kNoValue, source, kNoValue};
    };
    if (result.is_constant()) {
      if (result.offset <= kImm18Max) {
        become({.op = Op::S_ADDI_INT, .rd = rd, .imm = result.offset}, kNoValue);
      } else if ((result.offset & kLuiLowMask) == 0) {
        become({.op = Op::S_LUI_INT, .rd = rd, .imm = result.offset >> kLuiShift}, kNoValue);
      }
      return;
    }
    const auto found = anchors_.find(result.symbol);
    if (found == anchors_.end()) return;
    for (const int anchor : found->second) {
      const std::uint32_t distance = result.offset - affine(anchor).offset;
      if (distance > kImm18Max) continue;
      const auto reg =
          static_cast<std::uint8_t>(block_.values[static_cast<std::size_t>(anchor)].reg);
      return become({.op = Op::S_ADDI_INT, .rd = rd, .rs1 = reg, .imm = distance}, anchor);
    }
  }

  // Operands whose value an older register holds as well are read from there.
  void reuse_equal(BlockNode& node) {
    for (std::size_t s = 0; s < node.sources.size(); ++s) {
      const int value = node.sources[s];
      if (value == kNoValue || !is_gp(value) || (s == 0 && node.accumulates)) continue;
      if (affine(value) == Affine{} && !is_row_stride(node.instruction.op, s)) {
        node.sources[s] = kNoValue;  // gp0
        continue;
      }
      const auto made_by = block_.values[static_cast<std::size_t>(value)].node;
      if (made_by < 0 ||
          !is_integer_arithmetic(block_.nodes[static_cast<std::size_t>(made_by)].instruction.op))
        continue;
      const auto found = anchors_.find(affine(value).symbol);
      if (found == anchors_.end()) continue;
      for (const int older : found->second) {
        if (older >= value || affine(older) != affine(value)) continue;
        const bool kept =
            block_.values[static_cast<std::size_t>(older)].node < 0 && !affine(older).is_constant();
        if (!kept && node.line - last_use_[static_cast<std::size_t>(older)] > kNearby) continue;
        node.sources[s] = older;
        break;
      }
    }
  }

  // A register as row stride that holds 0 means another thing than gp0 (semantics 8, wostride).
  static bool is_row_stride(Op op, std::size_t source) { return op == Op::M_MM_WO && source == 1; }

  // Addresses register + immediate: gp0 + constant, or a pointer that is used as an address itself.
  // Such a pointer lies so far below 2^32 that the sum cannot wrap (semantics 6.14).
  void join_immediate(BlockNode& node) const {
    const auto s = based_source(node.instruction.op);
    if (!s || node.sources[*s] == kNoValue) return;
    const std::uint32_t limit = immediate_limit(node.instruction.op);
    const Affine base = affine(node.sources[*s]);
    if (base.is_constant()) {
      if (std::uint64_t{base.offset} + node.instruction.imm > limit) return;
      node.instruction.imm += base.offset;
      node.sources[*s] = kNoValue;
      return;
    }
    const auto found = anchors_.find(base.symbol);
    if (found == anchors_.end()) return;
    for (const int anchor : found->second) {
      const std::uint32_t distance = base.offset - affine(anchor).offset;
      if (!is_address_[static_cast<std::size_t>(anchor)]) continue;
      if (std::uint64_t{distance} + node.instruction.imm > limit) continue;
      if (moves_on(node.sources[*s], anchor)) return;
      node.instruction.imm += distance;
      node.sources[*s] = anchor;
      return;
    }
  }

  // `value` is what the register of `entry` holds at the exit: who reads the entry's value instead
  // holds up that step.
  [[nodiscard]] bool moves_on(int value, int entry) const {
    const RegisterValue& to = block_.values[static_cast<std::size_t>(value)];
    const RegisterValue& from = block_.values[static_cast<std::size_t>(entry)];
    return from.node < 0 && to.node >= 0 && to.reg == from.reg &&
           block_.nodes[static_cast<std::size_t>(to.node)].line == last_write_[to.reg];
  }

  void note_uses(BlockNode& node) {
    for (std::size_t s = 0; s < node.sources.size(); ++s) {
      const int value = node.sources[s];
      if (value == kNoValue) continue;
      last_use_[static_cast<std::size_t>(value)] = node.line;
      if (is_gp(value) && is_address(node.instruction.op, s)) {
        is_address_[static_cast<std::size_t>(value)] = true;
      }
    }
    node.gp = {operand(node, 0), operand(node, 1), operand(node, 2)};
  }
  [[nodiscard]] Affine operand(const BlockNode& node, std::size_t s) const {
    const int value = node.sources[s];
    return value == kNoValue || !is_gp(value) ? Affine{} : affine(value);
  }
  // Whether the register that operand names is an address of an on-chip memory.
  static bool is_address(Op op, std::size_t source) {
    switch (row_of(op).instruction_class) {
      case InstructionClass::Matrix:
        if (op == Op::M_BMV || op == Op::M_BTMV) return source == 2;
        return !is_row_stride(op, source);
      case InstructionClass::Vector:
        return op != Op::V_SHFT_V || source != 2;
      case InstructionClass::Scalar:
        return based_source(op) == source;
      case InstructionClass::Memory:
        return source == 0;
      case InstructionClass::Control:
        return false;
    }
    return false;
  }

  void define(BlockNode& node, RegisterSet writes, const std::optional<Affine>& result) {
    if (writes == 0) return;
    const auto reg = static_cast<unsigned>(std::countr_zero(writes));
    node.result = static_cast<int>(block_.values.size());
    RegisterValue value{
        .node = static_cast<int>(block_.nodes.size()), .reg = reg, .web = 0, .affine = {}};
    if (reg < kFirstFp) value.affine = result ? *result : symbols_.fresh();
    block_.values.push_back(value);
    last_use_.push_back(node.line);
    is_address_.push_back(false);
    current_[reg] = node.result;
    if (reg < kFirstFp) note(node.result);
  }
  void note(int value) { anchors_[affine(value).symbol].push_back(value); }

  void leave() {
    for (unsigned reg = 1; reg < kRegisters; ++reg) {
      at_exit_[reg] = (around_.live_out & register_bit(reg)) != 0 ? current_[reg] : kNoValue;
    }
  }

  // From the end to the start, so that what only served something unread goes as well.
  void drop_unread() {
    std::vector<bool> read(block_.values.size(), false);
    for (const int value : at_exit_) {
      if (value != kNoValue) read[static_cast<std::size_t>(value)] = true;
    }
    std::vector<bool> kept(block_.nodes.size(), true);
    for (std::size_t n = block_.nodes.size(); n-- > 0;) {
      const BlockNode& node = block_.nodes[n];
      const bool writes_zero = node.result == kNoValue;
      kept[n] = !is_pure(node.instruction.op) ||
                (!writes_zero && read[static_cast<std::size_t>(node.result)]);
      if (!kept[n]) continue;
      for (const int source : node.sources) {
        if (source != kNoValue) read[static_cast<std::size_t>(source)] = true;
      }
    }
    std::vector<int> moved(block_.nodes.size(), -1);
    std::vector<BlockNode> nodes;
    for (std::size_t n = 0; n < block_.nodes.size(); ++n) {
      if (!kept[n]) continue;
      moved[n] = static_cast<int>(nodes.size());
      nodes.push_back(std::move(block_.nodes[n]));
    }
    block_.nodes = std::move(nodes);
    for (RegisterValue& value : block_.values) {
      if (value.node >= 0) value.node = moved[static_cast<std::size_t>(value.node)];
    }
  }

  // Webs: a value of their own, or that of the value it accumulates into.
  void weave() {
    for (unsigned reg = 0; reg < kRegisters; ++reg) {
      const bool holds = (around_.live_in & register_bit(reg)) != 0;
      block_.values[reg].web = reg;
      block_.webs.push_back({.fp = reg >= kFirstFp, .at_entry = holds, .reg = reg});
    }
    for (const BlockNode& node : block_.nodes) {
      for (const int source : node.sources) {
        if (source != kNoValue) ++web_of(source).reads;
      }
      if (node.result == kNoValue) continue;
      RegisterValue& result = block_.values[static_cast<std::size_t>(node.result)];
      if (node.accumulates) {
        result.web = block_.values[static_cast<std::size_t>(node.sources[0])].web;
        continue;
      }
      result.web = static_cast<unsigned>(block_.webs.size());
      block_.webs.push_back({.fp = result.reg >= kFirstFp, .reg = result.reg});
    }
    for (const int value : at_exit_) {
      if (value == kNoValue) continue;
      web_of(value).at_exit = true;
      web_of(value).reg = block_.values[static_cast<std::size_t>(value)].reg;
    }
  }
  ValueWeb& web_of(int value) {
    return block_.webs[block_.values[static_cast<std::size_t>(value)].web];
  }

  std::span<const Line> code_;
  const BlockSurroundings& around_;
  Symbols& symbols_;
  bool simplify_;
  StraightBlock block_;
  std::array<int, kRegisters> current_{};
  std::array<int, kRegisters> at_exit_{};
  std::map<std::uint32_t, std::vector<int>> anchors_;  // gp values over the same unknown
  std::vector<std::size_t> last_use_;                  // line, by value
  std::vector<bool> is_address_;                       // by value: an operand of this block
  std::array<std::size_t, kRegisters> last_write_{};   // line, by register
};

}  // namespace

StraightBlock make_block(std::span<const Line> code, const BlockSurroundings& around,
                         Symbols& symbols, bool simplify) {
  return Builder(code, around, symbols, simplify).build();
}

}  // namespace plena
