// Runs only the integer side of a program: gp and address registers, loops, the part of INT_MEM
// that the program itself wrote. What it cannot know (a word of INT_MEM that came with an image) is
// marked unknown. It answers which addresses an instruction sees, every time it is reached.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "plena/isa/instruction.h"
#include "plena/machine/machine.h"

namespace plena {

struct KnownWord {
  std::uint32_t value = 0;
  bool known = true;

  friend bool operator==(const KnownWord&, const KnownWord&) = default;
};

struct WalkState {
  std::array<KnownWord, 16> gp;
  std::array<std::uint64_t, 16> a{};
  std::uint16_t a_known = 0xFFFF;
  std::uint16_t a_set = 0;
  KnownWord scale;
  KnownWord stride;
  KnownWord v_mask;
  bool scale_set = false;
  bool stride_set = false;
};

class RegisterWalk {
 public:
  /// How a walk ended.
  enum class End : std::uint8_t {
    Running,
    Halted,
    Faulted,          // a loop rule broken: the program would trap there
    UnknownTripCount  // a loop counter is not known
  };

  /// `gp0_writable`: as under rs-registers. Loops are those of rs-loops and rs-break, which agree
  /// with the specification's on programs it accepts.
  RegisterWalk(std::span<const Instruction> program, bool gp0_writable);

  [[nodiscard]] End end() const { return end_; }
  [[nodiscard]] std::uint64_t pc() const { return pc_; }
  [[nodiscard]] const Instruction& instruction() const { return program_[pc_]; }
  /// Registers before the instruction at pc().
  [[nodiscard]] const WalkState& state() const { return state_; }

  /// Executes the instruction at pc().
  void step();

 private:
  void write_gp(std::uint8_t rd, KnownWord word);
  void load_int(const Instruction& i);
  void store_int(const Instruction& i);
  void forget_ints(KnownWord first, std::uint32_t count);
  void set_address_register(const Instruction& i);
  void end_loop(const Instruction& i);
  void break_loop();
  void advance();

  std::span<const Instruction> program_;
  bool gp0_writable_;
  End end_ = End::Running;
  std::uint64_t pc_ = 0;
  WalkState state_;
  std::vector<KnownWord> int_mem_;
  std::vector<LoopFrame> loops_;
};

}  // namespace plena
