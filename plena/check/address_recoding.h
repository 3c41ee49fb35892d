// Rewrites how a program computes an address, where two dialects write the same place in different
// units: immediates of the instructions that make it are mapped, and nothing else changes.
//
// A map is additive as long as the parts it scales do not overflow into each other: the sum of two
// mapped numbers is their mapped sum. Whether that held at every access is not proved here but
// checked afterwards, by walking both programs (port.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "plena/check/program_edits.h"
#include "plena/isa/instruction.h"

namespace plena {

/// From a number of the old program to one of the new; nothing where it has no counterpart.
using AddressMap = std::function<std::optional<std::uint32_t>(std::uint32_t)>;

/// A gp register as one instruction reads it.
struct RegisterUse {
  std::uint64_t pc = 0;
  std::uint8_t gp = 0;

  friend auto operator<=>(const RegisterUse&, const RegisterUse&) = default;
};

/// Successors and predecessors of a program whose only jumps are loops.
class LoopFlow {
 public:
  /// Loops pair lexically; `program` passed pair_loops' rules or has open loops at its end.
  explicit LoopFlow(std::span<const Instruction> program);

  /// Instructions that can run before or after `pc`; at most two.
  [[nodiscard]] std::vector<std::uint64_t> before(std::uint64_t pc) const;
  [[nodiscard]] std::vector<std::uint64_t> after(std::uint64_t pc) const;

 private:
  std::size_t size_;
  std::map<std::uint64_t, std::uint64_t> end_of_;    // first instruction of a body to its END
  std::map<std::uint64_t, std::uint64_t> start_of_;  // END to the first instruction of its body
};

/// Recodes the registers of `uses`, all of whose readers in the whole program are `all_uses` (those
/// that want this map, whether or not their address changes under it). Where a register also serves
/// something else, a spare register follows it instead. The edits say what became of the program;
/// what could not be recoded is in the result.
class AddressRecoder {
 public:
  AddressRecoder(std::span<const Instruction> program, const LoopFlow& flow, AddressMap map,
                 std::set<RegisterUse> all_uses);

  /// True when the edits now give this use its mapped address; then `gp_at` names the register.
  bool recode(const RegisterUse& use, SpareRegisters& spare, ProgramEdits& edits);
  [[nodiscard]] std::uint8_t gp_at(const RegisterUse& use) const;

 private:
  struct Chain {
    std::set<std::uint64_t> definitions;
    std::set<RegisterUse> sources;  // reads by the definitions themselves
  };

  std::optional<Chain> chain_of(const RegisterUse& use) const;
  std::vector<std::uint64_t> reaching(const RegisterUse& use) const;
  bool serves_only_addresses(const Chain& chain) const;
  std::vector<RegisterUse> readers(std::uint64_t definition) const;
  bool recode_in_place(const Chain& chain, ProgramEdits& edits);
  bool shadow(const Chain& chain, SpareRegisters& spare, ProgramEdits& edits);
  std::optional<std::vector<Instruction>> mapped(const Instruction& definition, std::uint8_t rd,
                                                 std::uint8_t rs1, std::uint8_t rs2) const;

  std::span<const Instruction> program_;
  const LoopFlow& flow_;
  AddressMap map_;
  std::set<RegisterUse> all_uses_;
  std::set<std::uint64_t> recoded_;                 // definitions that were rewritten in place
  std::set<std::uint64_t> shadowed_;                // definitions a spare register follows
  std::map<std::uint8_t, std::uint8_t> shadow_of_;  // register to its spare one
  std::set<RegisterUse> uses_of_shadow_;
};

}  // namespace plena
