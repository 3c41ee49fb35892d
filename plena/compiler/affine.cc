#include "plena/compiler/affine.h"

#include <map>
#include <tuple>

#include "plena/compiler/register_use.h"

namespace plena {

AffineState Symbols::fresh_state() {
  AffineState state;
  for (std::size_t r = 1; r < state.size(); ++r) state[r] = fresh();
  return state;
}

std::optional<Affine> value_of(const Instruction& i, const Affine& rs1, const Affine& rs2) {
  switch (i.op) {
    case Op::S_ADDI_INT:
      return rs1.plus(i.imm);
    case Op::S_ADD_INT:
      if (rs2.is_constant()) return rs1.plus(rs2.offset);
      if (rs1.is_constant()) return rs2.plus(rs1.offset);
      return std::nullopt;
    case Op::S_SUB_INT:
      if (rs2.is_constant()) return rs1.plus(0 - rs2.offset);
      if (rs1.symbol == rs2.symbol) return Affine{0, rs1.offset - rs2.offset};
      return std::nullopt;
    case Op::S_MUL_INT:
      if (rs1.is_constant() && rs2.is_constant()) return Affine{0, rs1.offset * rs2.offset};
      return std::nullopt;
    case Op::S_LUI_INT:
      return Affine{0, i.imm << 12};
    default:
      return std::nullopt;
  }
}

void step(AffineState& state, const Instruction& i, Symbols& symbols) {
  const RegisterSet writes = registers_of(i).writes & (register_bit(kFirstFp) - 1);
  if (writes == 0) return;
  const auto value = value_of(i, state[i.rs1], state[i.rs2]);
  state[i.rd] = value ? *value : symbols.fresh();
}

namespace {

class Walk {
 public:
  Walk(const Listing& listing, Symbols& symbols)
      : listing_(listing),
        symbols_(symbols),
        partner_(pair_loops(listing)),
        before_(listing.size()) {}

  std::vector<AffineState> all() {
    AffineState state = symbols_.fresh_state();
    through(0, listing_.size(), state, true);
    return std::move(before_);
  }

 private:
  void through(std::size_t at, std::size_t end, AffineState& state, bool record) {
    for (; at < end; ++at) {
      if (record) before_[at] = state;
      const Line& line = listing_[at];
      if (line.kind == Line::Kind::Entry) state = symbols_.fresh_state();
      if (!line.is_code()) continue;
      if (line.instruction.op == Op::C_LOOP_START && partner_[at] != at) {
        loop(at, state, record);
        at = partner_[at];
      } else {
        step(state, line.instruction, symbols_);
      }
    }
  }

  // By how much the body moves each register a time; nothing where that is not known.
  using Strides = std::array<std::optional<std::uint32_t>, 16>;
  Strides strides_of(std::size_t start) {
    const AffineState before = symbols_.fresh_state();
    AffineState after = before;
    through(start + 1, partner_[start], after, false);
    Strides strides;
    for (std::size_t r = 0; r < strides.size(); ++r) {
      if (after[r].symbol == before[r].symbol) strides[r] = after[r].offset - before[r].offset;
    }
    strides[listing_[start].instruction.rd] = std::nullopt;
    return strides;
  }

  void loop(std::size_t start, AffineState& state, bool record) {
    const Strides strides = strides_of(start);
    const AffineState before = state;
    std::map<std::tuple<std::uint32_t, std::uint32_t>, Affine> together;
    for (std::size_t r = 1; r < state.size(); ++r) {
      if (strides[r] == 0) continue;
      if (!strides[r]) {
        state[r] = symbols_.fresh();
        continue;
      }
      auto [found, is_new] = together.try_emplace({before[r].symbol, *strides[r]});
      if (is_new) found->second = symbols_.fresh();
      state[r] = found->second.plus(before[r].offset);
    }
    through(start + 1, partner_[start], state, record);
    if (record) before_[partner_[start]] = state;
    state[listing_[start].instruction.rd] = symbols_.fresh();
    if (!runs_as_often_as_it_says(start)) return;
    for (std::size_t r = 1; r < state.size(); ++r) {
      if (strides[r]) state[r] = before[r].plus(*strides[r] * listing_[start].instruction.imm);
    }
  }

  // Whether the body leaves the counter alone.
  [[nodiscard]] bool runs_as_often_as_it_says(std::size_t start) const {
    const RegisterSet counter = register_bit(listing_[start].instruction.rd);
    for (std::size_t at = start + 1; at < partner_[start]; ++at) {
      if (!listing_[at].is_code()) continue;
      if ((registers_of(listing_[at].instruction).writes & counter) != 0) return false;
    }
    return true;
  }

  const Listing& listing_;
  Symbols& symbols_;
  std::vector<std::size_t> partner_;
  std::vector<AffineState> before_;
};

}  // namespace

std::vector<AffineState> states_before(const Listing& listing, Symbols& symbols) {
  return Walk(listing, symbols).all();
}

}  // namespace plena
