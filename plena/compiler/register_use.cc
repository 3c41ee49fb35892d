#include "plena/compiler/register_use.h"

namespace plena {

RegisterNeeds registers_of(const Instruction& instruction) {
  RegisterNeeds use;
  for (const Operand& operand : row_of(instruction.op).operands()) {
    const bool fp = operand.kind == OperandKind::Fp;
    if (!fp && operand.kind != OperandKind::Gp && operand.kind != OperandKind::RowStride) continue;
    const std::uint32_t number = field_value(instruction, operand.field);
    if (number == 0) continue;
    const RegisterSet bit = register_bit(number + (fp ? kFirstFp : 0));
    if (operand.access != Access::Write) use.reads |= bit;
    if (operand.access != Access::Read) use.writes |= bit;
  }
  return use;
}

std::vector<std::size_t> pair_loops(const Listing& listing) {
  std::vector<std::size_t> partner(listing.size());
  std::vector<std::size_t> open;
  for (std::size_t at = 0; at < listing.size(); ++at) {
    partner[at] = at;
    if (!listing[at].is_code()) continue;
    const Op op = listing[at].instruction.op;
    if (op == Op::C_LOOP_START) open.push_back(at);
    if (op != Op::C_LOOP_END || open.empty()) continue;
    partner[at] = open.back();
    partner[open.back()] = at;
    open.pop_back();
  }
  return partner;
}

std::vector<RegisterSet> live_before(const Listing& listing) {
  const std::vector<std::size_t> partner = pair_loops(listing);
  std::vector<RegisterSet> live(listing.size() + 1, 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t at = listing.size(); at-- > 0;) {
      RegisterSet set = live[at + 1];
      if (listing[at].is_code()) {
        const Instruction& i = listing[at].instruction;
        if (i.op == Op::C_LOOP_END) set |= live[partner[at] + 1];
        const RegisterNeeds use = registers_of(i);
        set = (set & ~use.writes) | use.reads;
      }
      changed = changed || set != live[at];
      live[at] = set;
    }
  }
  return live;
}

}  // namespace plena
