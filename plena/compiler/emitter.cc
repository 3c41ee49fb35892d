#include "plena/compiler/emitter.h"

#include <fmt/format.h>

namespace plena {

namespace {

constexpr Gp kConstantGp{15};  // carries constants too large for an immediate; never handed out

std::uint64_t field_limit(Field field) {
  switch (field) {
    case Field::Imm18:
      return kImm18Max;
    case Field::Imm22:
      return kImm22Max;
    default:
      return 0xF;
  }
}

bool is_fixed_zero(OperandKind kind) {
  return kind == OperandKind::Zero || kind == OperandKind::ZeroOpt ||
         kind == OperandKind::RowStride;
}

}  // namespace

bool Argument::suits(OperandKind kind) const {
  switch (kind) {
    case OperandKind::Gp:
      return kind_ == Kind::Gp;
    case OperandKind::Fp:
      return kind_ == Kind::Fp;
    case OperandKind::Addr:
      return kind_ == Kind::Address;
    default:
      return kind_ == Kind::Constant;
  }
}

HeldGp::HeldGp(Emitter& emitter, std::string_view purpose)
    : emitter_(emitter), gp_(emitter.take_gp(purpose)) {}

HeldGp::~HeldGp() {
  emitter_.taken_gp_[gp_.index] = false;
}

HeldFp::HeldFp(Emitter& emitter, std::string_view purpose)
    : emitter_(emitter), fp_(emitter.take_fp(purpose)) {}

HeldFp::~HeldFp() {
  emitter_.taken_fp_[fp_.index] = false;
}

Loop::Loop(Emitter& emitter, std::uint64_t count, std::string_view what) : emitter_(emitter) {
  if (count == 1) return;
  counter_.emplace(emitter, what);
  emitter_.open_loop(*counter_, count, what);
}

Loop::~Loop() {
  if (counter_) emitter_.close_loop(*counter_);
}

OuterLoop::OuterLoop(Emitter& emitter, std::uint64_t count, std::uint64_t entry,
                     std::string_view what)
    : emitter_(emitter), entry_(entry) {
  if (count == 1) return;
  const HeldGp counter(emitter, what);
  counter_ = counter;
  emitter_.open_loop(counter_, count, what);
  emitter_.emit(Op::S_ST_INT, {counter_, kZeroGp, entry_}, "the counter waits in INT_MEM");
}

OuterLoop::~OuterLoop() {
  if (counter_.index == 0) return;
  emitter_.emit(Op::S_LD_INT, {counter_, kZeroGp, entry_});
  emitter_.close_loop(counter_);
}

WalkLoop::WalkLoop(Emitter& emitter, Gp pointer, Gp end, std::string_view what)
    : emitter_(emitter), counter_(emitter, what), pointer_(pointer), end_(end) {
  emitter_.open_loop(counter_, 1, what);
}

WalkLoop::~WalkLoop() {
  emitter_.emit(Op::S_SUB_INT, {counter_, end_, pointer_}, "left to walk: 0 ends the loop");
  emitter_.close_loop(counter_);
}

SweepLoop::SweepLoop(Emitter& emitter, Gp pointer, Gp last, std::string_view what)
    : emitter_(emitter), counter_(emitter, what) {
  emitter_.open_loop(counter_, 1, what);
  emitter_.emit(Op::S_SUB_INT, {counter_, last, pointer}, "left to sweep: 0 ends the loop");
}

SweepLoop::~SweepLoop() {
  emitter_.close_loop(counter_);
}

void emit_choice(Emitter& e, Gp to, Gp at, Gp end, std::uint64_t equal, std::uint64_t otherwise,
                 std::string_view what) {
  HeldGp from(e, "distance");
  HeldGp next(e, what);
  e.copy(from, at);
  e.set(next, equal, what);
  SweepLoop once(e, from, end, "once where they are equal, else twice");
  e.copy(to, next);
  e.set(next, otherwise);
  e.copy(from, end);
}

RegionScope::RegionScope(Emitter& emitter, std::string_view name) : emitter_(emitter) {
  emitter_.listing_.push_back({Line::Kind::Region, {}, std::string(name)});
}

RegionScope::~RegionScope() {
  emitter_.listing_.push_back({Line::Kind::EndRegion, {}, {}});
}

void Emitter::emit(Op op, std::initializer_list<Argument> arguments, std::string_view comment) {
  const InstructionRow& row = row_of(op);
  Instruction instruction;
  instruction.op = op;
  const auto* next = arguments.begin();
  for (const Operand& operand : row.operands()) {
    if (is_fixed_zero(operand.kind)) continue;
    if (next == arguments.end() || !next->suits(operand.kind)) {
      return refuse(fmt::format("{}: operand '{}' is missing or of the wrong kind", row.mnemonic,
                                operand.name));
    }
    if (next->value() > field_limit(operand.field)) {
      return refuse(fmt::format("{}: {} does not fit the operand '{}' (at most {})", row.mnemonic,
                                next->value(), operand.name, field_limit(operand.field)));
    }
    set_field(instruction, operand.field, static_cast<std::uint32_t>(next->value()));
    ++next;
  }
  if (next != arguments.end()) return refuse(fmt::format("{}: too many operands", row.mnemonic));
  append(instruction, comment);
}

void Emitter::set(Gp gp, std::uint64_t value, std::string_view comment) {
  if (value > UINT32_MAX) {
    return refuse(fmt::format("the constant {} does not fit a register of 32 bits", value));
  }
  const auto low = static_cast<std::uint32_t>(value & kLuiLowMask);
  const auto high = static_cast<std::uint32_t>(value >> kLuiShift);
  if (value <= kImm18Max) {
    return append({.op = Op::S_ADDI_INT, .rd = gp.index, .imm = static_cast<std::uint32_t>(value)},
                  comment);
  }
  append({.op = Op::S_LUI_INT, .rd = gp.index, .imm = high}, comment);
  if (low == 0) return;
  append({.op = Op::S_ADDI_INT, .rd = gp.index, .rs1 = gp.index, .imm = low});
}

void Emitter::advance(Gp gp, std::uint64_t amount, std::string_view comment) {
  offset(gp, gp, amount, comment);
}

void Emitter::retreat(Gp gp, std::uint64_t amount, std::string_view comment) {
  set(kConstantGp, amount);
  emit(Op::S_SUB_INT, {gp, gp, kConstantGp}, comment);
}

void Emitter::offset(Gp to, Gp from, std::uint64_t amount, std::string_view comment) {
  if (amount <= kImm18Max) return emit(Op::S_ADDI_INT, {to, from, amount}, comment);
  set(kConstantGp, amount);
  emit(Op::S_ADD_INT, {to, from, kConstantGp}, comment);
}

void Emitter::copy(Gp to, Gp from, std::string_view comment) {
  emit(Op::S_ADDI_INT, {to, from, 0}, comment);
}

void Emitter::comment(std::string_view text) {
  listing_.push_back({Line::Kind::Comment, {}, std::string(text)});
}

Result<Listing> Emitter::take_listing() && {
  if (error_) return tl::unexpected(std::move(*error_));
  return std::move(listing_);
}

Result<EmittedProgram> Emitter::finish() && {
  auto listing = std::move(*this).take_listing();
  if (!listing) return forward_error(listing);
  return print(*listing);
}

std::uint64_t Emitter::free_gps() const {
  const auto first = taken_gp_.begin() + 1;
  return static_cast<std::uint64_t>(
      std::count(first, taken_gp_.begin() + kConstantGp.index, false));
}

Gp Emitter::take_gp(std::string_view purpose) {
  for (std::uint8_t index = 1; index < kConstantGp.index; ++index) {
    if (taken_gp_[index]) continue;
    taken_gp_[index] = true;
    return {index};
  }
  refuse(fmt::format("no general-purpose register is left for '{}'", purpose));
  return kConstantGp;
}

Fp Emitter::take_fp(std::string_view purpose) {
  for (std::uint8_t index = 1; index < taken_fp_.size(); ++index) {
    if (taken_fp_[index]) continue;
    taken_fp_[index] = true;
    return {index};
  }
  refuse(fmt::format("no floating-point register is left for '{}'", purpose));
  return kZeroFp;
}

void Emitter::open_loop(Gp counter, std::uint64_t count, std::string_view what) {
  emit(Op::C_LOOP_START, {counter, count}, what);
}

void Emitter::close_loop(Gp counter) {
  emit(Op::C_LOOP_END, {counter});
}

void Emitter::append(const Instruction& instruction, std::string_view comment) {
  listing_.push_back({Line::Kind::Code, instruction, std::string(comment)});
}

void Emitter::refuse(std::string message) {
  if (!error_) error_ = Error{ErrorCode::Unsupported, std::move(message), {}, {}};
}

}  // namespace plena
