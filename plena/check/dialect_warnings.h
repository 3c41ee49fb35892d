// --warn-dialect: tells when a plena-rs program meets one of the emulator's own faults, the things
// a program can stumble over that no specification asks for (docs/dialect-plena-rs.md has the
// table). An observer: a run without it pays nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plena/sim/engine.h"

namespace plena {

/// The faults, in the order of the table.
enum class RsFault : std::uint8_t {
  RowsOverlap,
  ScaleCut,
  ScaleFloors,
  PastHbm,
  PastVectorSram,
  LostCarry,
  NarrowStore,
  LostMask,
  WriteOutImmediate,
  MaskedSum,
  BreakGoesOn,
};
inline constexpr std::size_t kRsFaultCount = 11;
std::string_view rs_fault_name(RsFault fault);  // "scale-cut", …

struct DialectWarning {
  std::uint64_t pc = 0;
  RsFault fault{};
  std::uint64_t count = 0;  // executions that met it
};

/// `scales beyond their 64-byte block read 0`.
std::string_view explain(RsFault fault);

class DialectWarnings final : public Observer {
 public:
  /// `words` are the program's.
  explicit DialectWarnings(std::vector<std::uint32_t> words);

  void about_to_run(const Machine& machine, std::uint64_t pc,
                    const Instruction& instruction) override;
  void retired(const Machine& machine, std::uint64_t pc, const Instruction& instruction) override;

  /// By pc; an instruction that met several faults has an entry for each.
  [[nodiscard]] std::vector<DialectWarning> warnings() const;

 private:
  using Counts = std::array<std::uint64_t, kRsFaultCount>;

  void note(std::uint64_t pc, RsFault fault, bool met = true);
  void look_at_transfer(const Machine& machine, std::uint64_t pc, const Instruction& instruction);
  void look_at_store(const Machine& machine, std::uint64_t pc, const Instruction& instruction);
  void look_at_word(std::uint64_t pc, const Instruction& instruction);

  std::vector<std::uint32_t> words_;
  std::vector<Counts> counts_;
  std::vector<float> row_;
};

}  // namespace plena
