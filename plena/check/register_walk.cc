#include "plena/check/register_walk.h"

#include <algorithm>

namespace plena {

namespace {

constexpr std::size_t kIntMemDepth = 1024;  // rs-memories
constexpr KnownWord kUnknown{0, false};
constexpr std::uint32_t kMostExperts = 8;  // V_TOPK writes at most so many indices

template <class Operation>
KnownWord combine(KnownWord a, KnownWord b, Operation operation) {
  if (!a.known || !b.known) return kUnknown;
  return {operation(a.value, b.value), true};
}

}  // namespace

RegisterWalk::RegisterWalk(std::span<const Instruction> program, bool gp0_writable)
    : program_(program), gp0_writable_(gp0_writable), int_mem_(kIntMemDepth, kUnknown) {
  state_.stride.value = 1;  // at reset, under rs-registers
  if (program_.empty()) end_ = End::Halted;
}

void RegisterWalk::write_gp(std::uint8_t rd, KnownWord word) {
  if (rd != 0 || gp0_writable_) state_.gp[rd] = word;
}

void RegisterWalk::advance() {
  if (++pc_ >= program_.size()) end_ = End::Halted;
}

void RegisterWalk::load_int(const Instruction& i) {
  const KnownWord base = state_.gp[i.rs1];
  const std::uint32_t address = base.value + i.imm;
  write_gp(i.rd, base.known && address < int_mem_.size() ? int_mem_[address] : kUnknown);
}

void RegisterWalk::store_int(const Instruction& i) {
  const KnownWord base = state_.gp[i.rs1];
  const std::uint32_t address = base.value + i.imm;
  if (!base.known) {
    forget_ints(kUnknown, 1);
  } else if (address < int_mem_.size()) {
    int_mem_[address] = state_.gp[i.rd];
  }
}

void RegisterWalk::forget_ints(KnownWord first, std::uint32_t count) {
  for (std::size_t k = 0; k < int_mem_.size(); ++k) {
    const bool hit = !first.known || (k >= first.value && k - first.value < count);
    if (hit) int_mem_[k] = kUnknown;
  }
}

void RegisterWalk::set_address_register(const Instruction& i) {
  const KnownWord high = state_.gp[i.rs1], low = state_.gp[i.rs2];
  const auto bit = static_cast<std::uint16_t>(1U << i.rd);
  state_.a[i.rd] = std::uint64_t{high.value} << 32 | low.value;
  state_.a_set = static_cast<std::uint16_t>(state_.a_set | bit);
  const bool known = high.known && low.known;
  state_.a_known = static_cast<std::uint16_t>(known ? state_.a_known | bit : state_.a_known & ~bit);
}

void RegisterWalk::end_loop(const Instruction& i) {
  const auto found = std::find_if(loops_.rbegin(), loops_.rend(),
                                  [&](const LoopFrame& l) { return l.counter == i.rd; });
  KnownWord& counter = state_.gp[i.rd];
  if (found == loops_.rend()) {
    end_ = End::Faulted;
  } else if (!counter.known) {
    end_ = End::UnknownTripCount;
  } else if (counter.value > 1) {
    --counter.value;
    pc_ = found->start + 1;
  } else {
    counter.value = 0;
    loops_.erase(std::next(found).base());
    advance();
  }
}

void RegisterWalk::break_loop() {
  if (loops_.empty()) {
    end_ = End::Faulted;
    return;
  }
  state_.gp[loops_.back().counter] = {};
  loops_.pop_back();
  advance();
}

void RegisterWalk::step() {
  const Instruction& i = program_[pc_];
  const KnownWord a = state_.gp[i.rs1], b = state_.gp[i.rs2];
  switch (i.op) {
    case Op::S_ADD_INT:
      write_gp(i.rd, combine(a, b, [](auto x, auto y) { return x + y; }));
      break;
    case Op::S_SUB_INT:
      write_gp(i.rd, combine(a, b, [](auto x, auto y) { return x - y; }));
      break;
    case Op::S_MUL_INT:
      write_gp(i.rd, combine(a, b, [](auto x, auto y) { return x * y; }));
      break;
    case Op::S_ADDI_INT:
      write_gp(i.rd, {a.value + i.imm, a.known});
      break;
    case Op::S_LUI_INT:
      write_gp(i.rd, {i.imm << 12, true});
      break;
    case Op::S_LD_INT:
      load_int(i);
      break;
    case Op::S_ST_INT:
      store_int(i);
      break;
    case Op::V_TOPK:
      forget_ints(b, kMostExperts);
      break;
    case Op::C_SET_ADDR_REG:
      set_address_register(i);
      break;
    case Op::C_SET_SCALE_REG:
      state_.scale = state_.gp[i.rd];
      state_.scale_set = true;
      break;
    case Op::C_SET_STRIDE_REG:
      state_.stride = state_.gp[i.rd];
      state_.stride_set = true;
      break;
    case Op::C_SET_V_MASK_REG:
      state_.v_mask = state_.gp[i.rd];
      break;
    case Op::C_LOOP_START:
      if (i.imm == 0) {
        end_ = End::Faulted;
        return;
      }
      state_.gp[i.rd] = {i.imm, true};
      loops_.push_back({static_cast<std::uint32_t>(pc_), i.rd, 0});
      break;
    case Op::C_LOOP_END:
      end_loop(i);
      return;
    case Op::C_BREAK:
      break_loop();
      return;
    default:
      break;
  }
  advance();
}

}  // namespace plena
