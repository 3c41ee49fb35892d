#include "plena/check/address_recoding.h"

#include <algorithm>

namespace plena {

// ------------------------------------------------------------ LoopFlow

LoopFlow::LoopFlow(std::span<const Instruction> program) : size_(program.size()) {
  std::vector<std::uint64_t> open;
  for (std::uint64_t pc = 0; pc < program.size(); ++pc) {
    if (program[pc].op == Op::C_LOOP_START) {
      open.push_back(pc);
    } else if (program[pc].op == Op::C_LOOP_END && !open.empty()) {
      end_of_[open.back() + 1] = pc;
      start_of_[pc] = open.back() + 1;
      open.pop_back();
    }
  }
}

std::vector<std::uint64_t> LoopFlow::before(std::uint64_t pc) const {
  std::vector<std::uint64_t> out;
  if (pc > 0) out.push_back(pc - 1);
  if (const auto end = end_of_.find(pc); end != end_of_.end()) out.push_back(end->second);
  return out;
}

std::vector<std::uint64_t> LoopFlow::after(std::uint64_t pc) const {
  std::vector<std::uint64_t> out;
  if (pc + 1 < size_) out.push_back(pc + 1);
  if (const auto start = start_of_.find(pc); start != start_of_.end()) out.push_back(start->second);
  return out;
}

// ------------------------------------------------------------ AddressRecoder

namespace {

bool is_sum(const Instruction& i) {
  return i.op == Op::S_ADD_INT || i.op == Op::S_SUB_INT;
}

// Definitions whose value an additive map can follow.
bool can_follow(const Instruction& i) {
  return i.op == Op::S_ADDI_INT || i.op == Op::S_LUI_INT || is_sum(i);
}

std::vector<std::uint8_t> sources(const Instruction& i) {
  std::vector<std::uint8_t> out;
  for (const Field field : gp_reads(i)) {
    const auto gp = static_cast<std::uint8_t>(field_value(i, field));
    if (gp != 0) out.push_back(gp);
  }
  return out;
}

bool reads(const Instruction& i, std::uint8_t gp) {
  const auto registers = sources(i);
  return std::find(registers.begin(), registers.end(), gp) != registers.end();
}

}  // namespace

AddressRecoder::AddressRecoder(std::span<const Instruction> program, const LoopFlow& flow,
                               AddressMap map, std::set<RegisterUse> all_uses)
    : program_(program), flow_(flow), map_(std::move(map)), all_uses_(std::move(all_uses)) {}

// Definitions of the register that can reach the use. One that comes from the start of the program
// is 0, which every map leaves as it is.
std::vector<std::uint64_t> AddressRecoder::reaching(const RegisterUse& use) const {
  std::vector<std::uint64_t> found;
  std::vector<std::uint64_t> work = flow_.before(use.pc);
  std::set<std::uint64_t> seen;
  while (!work.empty()) {
    const std::uint64_t pc = work.back();
    work.pop_back();
    if (!seen.insert(pc).second) continue;
    if (gp_written(program_[pc]) == use.gp) {
      found.push_back(pc);
      continue;
    }
    for (const std::uint64_t earlier : flow_.before(pc)) work.push_back(earlier);
  }
  return found;
}

// Everything the register is computed from, or nothing where a map cannot follow it.
std::optional<AddressRecoder::Chain> AddressRecoder::chain_of(const RegisterUse& use) const {
  Chain chain;
  std::vector<RegisterUse> work = {use};
  while (!work.empty()) {
    const RegisterUse next = work.back();
    work.pop_back();
    for (const std::uint64_t definition : reaching(next)) {
      if (!chain.definitions.insert(definition).second) continue;
      const Instruction& i = program_[definition];
      if (!can_follow(i)) return std::nullopt;
      for (const std::uint8_t gp : sources(i)) {
        const RegisterUse source{definition, gp};
        chain.sources.insert(source);
        work.push_back(source);
      }
    }
  }
  return chain;
}

// All reads of what `definition` wrote.
std::vector<RegisterUse> AddressRecoder::readers(std::uint64_t definition) const {
  const std::uint8_t gp = *gp_written(program_[definition]);
  std::vector<RegisterUse> found;
  std::vector<std::uint64_t> work = flow_.after(definition);
  std::set<std::uint64_t> seen;
  while (!work.empty()) {
    const std::uint64_t pc = work.back();
    work.pop_back();
    if (!seen.insert(pc).second) continue;
    if (reads(program_[pc], gp)) found.push_back({pc, gp});
    if (gp_written(program_[pc]) == gp) continue;
    for (const std::uint64_t later : flow_.after(pc)) work.push_back(later);
  }
  return found;
}

bool AddressRecoder::serves_only_addresses(const Chain& chain) const {
  for (const std::uint64_t definition : chain.definitions) {
    for (const RegisterUse& reader : readers(definition)) {
      if (!all_uses_.contains(reader) && !chain.sources.contains(reader)) return false;
    }
  }
  return true;
}

// The definition in the new units, writing `rd` from `rs1` and `rs2`.
std::optional<std::vector<Instruction>> AddressRecoder::mapped(const Instruction& definition,
                                                               std::uint8_t rd, std::uint8_t rs1,
                                                               std::uint8_t rs2) const {
  Instruction out = definition;
  out.rd = rd;
  out.rs1 = rs1;
  out.rs2 = rs2;
  if (is_sum(definition)) return std::vector{out};
  const bool upper = definition.op == Op::S_LUI_INT;
  const auto number = map_(upper ? definition.imm << 12 : definition.imm);
  if (!number) return std::nullopt;
  if (upper || rs1 == 0) return load_constant(rd, *number);
  if (*number > kImm18Max) return std::nullopt;
  out.imm = *number;
  return std::vector{out};
}

bool AddressRecoder::recode_in_place(const Chain& chain, ProgramEdits& edits) {
  std::vector<std::pair<std::uint64_t, std::vector<Instruction>>> planned;
  for (const std::uint64_t pc : chain.definitions) {
    if (shadowed_.contains(pc)) return false;
    if (recoded_.contains(pc)) continue;
    const Instruction& i = program_[pc];
    auto instructions = mapped(i, i.rd, i.rs1, i.rs2);
    if (!instructions) return false;
    planned.emplace_back(pc, std::move(*instructions));
  }
  for (auto& [pc, instructions] : planned) {
    recoded_.insert(pc);
    edits.replace(pc, std::move(instructions));
  }
  return true;
}

// A spare register repeats the chain in the new units; the old register keeps its own.
bool AddressRecoder::shadow(const Chain& chain, SpareRegisters& spare, ProgramEdits& edits) {
  for (const std::uint64_t pc : chain.definitions) {
    if (recoded_.contains(pc)) return false;
    const std::uint8_t gp = *gp_written(program_[pc]);
    if (shadow_of_.contains(gp)) continue;
    const auto taken = spare.take_gp();
    if (!taken) return false;
    shadow_of_[gp] = *taken;
  }
  const auto follower = [&](std::uint8_t gp) -> std::uint8_t {
    const auto found = shadow_of_.find(gp);
    return found == shadow_of_.end() ? 0 : found->second;  // never defined: 0
  };
  std::vector<std::pair<std::uint64_t, std::vector<Instruction>>> planned;
  for (const std::uint64_t pc : chain.definitions) {
    if (shadowed_.contains(pc)) continue;
    const Instruction& i = program_[pc];
    const bool sum = is_sum(i);
    const bool has_source = sum || i.op == Op::S_ADDI_INT;
    auto instructions = mapped(i, follower(i.rd), has_source ? follower(i.rs1) : std::uint8_t{0},
                               sum ? follower(i.rs2) : std::uint8_t{0});
    if (!instructions) return false;
    planned.emplace_back(pc, std::move(*instructions));
  }
  for (auto& [pc, instructions] : planned) {
    shadowed_.insert(pc);
    edits.after(pc, instructions);
  }
  return true;
}

bool AddressRecoder::recode(const RegisterUse& use, SpareRegisters& spare, ProgramEdits& edits) {
  const auto chain = chain_of(use);
  if (!chain) return false;
  if (serves_only_addresses(*chain) && recode_in_place(*chain, edits)) return true;
  if (!shadow(*chain, spare, edits)) return false;
  uses_of_shadow_.insert(use);
  return true;
}

std::uint8_t AddressRecoder::gp_at(const RegisterUse& use) const {
  if (!uses_of_shadow_.contains(use)) return use.gp;
  const auto found = shadow_of_.find(use.gp);
  return found == shadow_of_.end() ? use.gp : found->second;
}

}  // namespace plena
