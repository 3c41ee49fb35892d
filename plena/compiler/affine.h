// What is known of gp registers without running the program: each is a constant, or an unknown
// plus a constant, modulo 2^32. Two addresses over the same unknown can be told apart.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "plena/compiler/listing.h"

namespace plena {

struct Affine {
  std::uint32_t symbol = 0;  // 0: a constant; else the same unknown wherever it appears
  std::uint32_t offset = 0;

  [[nodiscard]] bool is_constant() const { return symbol == 0; }
  [[nodiscard]] Affine plus(std::uint32_t amount) const { return {symbol, offset + amount}; }
  friend bool operator==(const Affine&, const Affine&) = default;
};

/// gp0 … gp15.
using AffineState = std::array<Affine, 16>;

/// Hands out unknowns.
class Symbols {
 public:
  Affine fresh() { return {next_++, 0}; }
  AffineState fresh_state();

 private:
  std::uint32_t next_ = 1;
};

/// The value that integer arithmetic over known operands has; nothing for any other instruction,
/// and where the result is no sum of one unknown and a constant.
std::optional<Affine> value_of(const Instruction& instruction, const Affine& rs1,
                               const Affine& rs2);

/// What is known behind an instruction other than C_LOOP_START and C_LOOP_END.
void step(AffineState& state, const Instruction& instruction, Symbols& symbols);

/// What is known before each line. Registers that a loop body moves by the same amount a time stay
/// as far apart as they were before the loop.
std::vector<AffineState> states_before(const Listing& listing, Symbols& symbols);

}  // namespace plena
