// Changes to a program, collected by instruction and applied at once: what goes before, what takes
// its place, what follows. Loops need no care: a jump leads to the first word after C_LOOP_START.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "plena/isa/instruction.h"

namespace plena {

/// A gp register := a constant, in one or two instructions.
std::vector<Instruction> load_constant(std::uint8_t gp, std::uint32_t value);

/// Fields of the gp registers an instruction reads; the loop counter of a C_LOOP_END is one.
std::vector<Field> gp_reads(const Instruction& instruction);
/// The gp register it writes.
std::optional<std::uint8_t> gp_written(const Instruction& instruction);

/// Registers the program never names. gp0 and f0 are never spare.
class SpareRegisters {
 public:
  explicit SpareRegisters(std::span<const Instruction> program);

  std::optional<std::uint8_t> take_gp();
  std::optional<std::uint8_t> take_f();
  std::optional<std::uint8_t> take_a();

 private:
  std::array<bool, 16> gp_{};  // in use
  std::array<bool, 16> f_{};
  std::array<bool, 16> a_{};
};

class ProgramEdits {
 public:
  void before(std::uint64_t pc, const std::vector<Instruction>& added);
  void after(std::uint64_t pc, const std::vector<Instruction>& added);
  void replace(std::uint64_t pc, std::vector<Instruction> replacement);
  void prologue(const std::vector<Instruction>& added);

  [[nodiscard]] bool replaces(std::uint64_t pc) const { return replacement_.contains(pc); }
  /// The instruction at `pc` as replaced so far, when that is a single one.
  [[nodiscard]] std::optional<Instruction> replaced(std::uint64_t pc) const;

  struct Result {
    std::vector<Instruction> program;
    std::vector<std::uint64_t> position;  // of each old instruction's first word in its place
  };
  [[nodiscard]] Result apply(std::span<const Instruction> program) const;

 private:
  std::vector<Instruction> prologue_;
  std::map<std::uint64_t, std::vector<Instruction>> before_, after_, replacement_;
};

}  // namespace plena
