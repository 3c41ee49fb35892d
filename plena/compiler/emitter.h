// Writes a program as a list of instructions with their comments (listing.h). Kernels speak to it
// in instructions of the table, named registers and loops.
//
// It does not schedule and knows no model; what it refuses (an immediate that does not fit, no
// register left) is kept and reported once, by finish().
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plena/base/error.h"
#include "plena/compiler/listing.h"
#include "plena/isa/instruction.h"

namespace plena {

struct Gp {
  std::uint8_t index = 0;
};
struct Fp {
  std::uint8_t index = 0;
};
struct AddressRegister {
  std::uint8_t index = 0;
};

inline constexpr Gp kZeroGp{0};
inline constexpr Fp kZeroFp{0};

class Emitter;

/// A general-purpose register that is held as long as this object lives.
class HeldGp {
 public:
  HeldGp(Emitter& emitter, std::string_view purpose);
  HeldGp(const HeldGp&) = delete;
  HeldGp& operator=(const HeldGp&) = delete;
  ~HeldGp();

  operator Gp() const { return gp_; }

 private:
  Emitter& emitter_;
  Gp gp_;
};

/// A floating-point register that is held as long as this object lives.
class HeldFp {
 public:
  HeldFp(Emitter& emitter, std::string_view purpose);
  HeldFp(const HeldFp&) = delete;
  HeldFp& operator=(const HeldFp&) = delete;
  ~HeldFp();

  operator Fp() const { return fp_; }

 private:
  Emitter& emitter_;
  Fp fp_;
};

/// One operand as the text writes it: a register, or a constant (immediate, mask or selector).
class Argument {
 public:
  Argument(Gp gp) : kind_(Kind::Gp), value_(gp.index) {}
  Argument(const HeldGp& gp) : Argument(static_cast<Gp>(gp)) {}
  Argument(const HeldFp& fp) : Argument(static_cast<Fp>(fp)) {}
  Argument(Fp fp) : kind_(Kind::Fp), value_(fp.index) {}
  Argument(AddressRegister a) : kind_(Kind::Address), value_(a.index) {}
  Argument(std::uint64_t constant) : kind_(Kind::Constant), value_(constant) {}

  [[nodiscard]] std::uint64_t value() const { return value_; }
  [[nodiscard]] bool suits(OperandKind kind) const;

 private:
  enum class Kind : std::uint8_t { Gp, Fp, Address, Constant };
  Kind kind_;
  std::uint64_t value_;
};

/// A hardware loop around everything emitted while this object lives. A loop of one iteration
/// costs nothing: its body is emitted bare.
class Loop {
 public:
  Loop(Emitter& emitter, std::uint64_t count, std::string_view what);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

 private:
  Emitter& emitter_;
  std::optional<HeldGp> counter_;
};

/// A hardware loop whose counter waits in INT_MEM while the body runs, so that it takes no register
/// from it.
class OuterLoop {
 public:
  /// `entry` of INT_MEM is this loop's alone.
  OuterLoop(Emitter& emitter, std::uint64_t count, std::uint64_t entry, std::string_view what);
  OuterLoop(const OuterLoop&) = delete;
  OuterLoop& operator=(const OuterLoop&) = delete;
  ~OuterLoop();

 private:
  Emitter& emitter_;
  std::uint64_t entry_;
  Gp counter_;  // gp0: there is no loop
};

/// A loop that runs until `pointer`, which its body advances, has reached `end`; at least once.
/// The trip count is a run-time value: the distance left becomes the counter (semantics 6.11).
class WalkLoop {
 public:
  WalkLoop(Emitter& emitter, Gp pointer, Gp end, std::string_view what);
  WalkLoop(const WalkLoop&) = delete;
  WalkLoop& operator=(const WalkLoop&) = delete;
  ~WalkLoop();

 private:
  Emitter& emitter_;
  HeldGp counter_;
  Gp pointer_;
  Gp end_;
};

/// A loop whose last turn is the one that starts with `pointer`, which its body moves on, at
/// `last`; at least one. What is left is counted at the start of a turn, so that its end need not
/// wait for the pointer (semantics 6.11).
class SweepLoop {
 public:
  SweepLoop(Emitter& emitter, Gp pointer, Gp last, std::string_view what);
  SweepLoop(const SweepLoop&) = delete;
  SweepLoop& operator=(const SweepLoop&) = delete;
  ~SweepLoop();

 private:
  Emitter& emitter_;
  HeldGp counter_;
};

/// to = `equal` where `at` and `end` are the same, else `otherwise`: a loop that runs once or
/// twice, for there are no branches. `end` is never one more than `at`: that would end it, too.
void emit_choice(Emitter& emitter, Gp to, Gp at, Gp end, std::uint64_t equal,
                 std::uint64_t otherwise, std::string_view what);

/// Wraps everything emitted while this object lives in `.region NAME` … `.endregion`.
class RegionScope {
 public:
  RegionScope(Emitter& emitter, std::string_view name);
  RegionScope(const RegionScope&) = delete;
  RegionScope& operator=(const RegionScope&) = delete;
  ~RegionScope();

 private:
  Emitter& emitter_;
};

class Emitter {
 public:
  /// One instruction. `arguments` are its operands in the order of the text, without the fixed 0s.
  void emit(Op op, std::initializer_list<Argument> arguments, std::string_view comment = {});

  /// gp = value: `LI`, one or two words.
  void set(Gp gp, std::uint64_t value, std::string_view comment = {});

  /// gp += amount: one word where the amount fits an immediate.
  void advance(Gp gp, std::uint64_t amount, std::string_view comment = {});

  /// gp -= amount.
  void retreat(Gp gp, std::uint64_t amount, std::string_view comment = {});

  /// to = from + amount.
  void offset(Gp to, Gp from, std::uint64_t amount, std::string_view comment = {});

  /// Copies a register.
  void copy(Gp to, Gp from, std::string_view comment = {});

  /// General-purpose registers that nobody holds.
  [[nodiscard]] std::uint64_t free_gps() const;

  /// A run of the program may start here.
  void mark_entry() { listing_.push_back({Line::Kind::Entry, {}, {}}); }

  /// A comment on lines of its own.
  void comment(std::string_view text);

  /// Keeps the first reason why the program cannot be expressed; finish() reports it.
  void refuse(std::string message);
  void blank_line() { listing_.push_back({Line::Kind::Blank, {}, {}}); }

  /// The program so far; an error if anything could not be expressed.
  Result<Listing> take_listing() &&;
  /// The same as words and text.
  Result<EmittedProgram> finish() &&;

 private:
  friend class HeldGp;
  friend class HeldFp;
  friend class Loop;
  friend class OuterLoop;
  friend class WalkLoop;
  friend class SweepLoop;
  friend class RegionScope;

  Gp take_gp(std::string_view purpose);
  Fp take_fp(std::string_view purpose);
  void open_loop(Gp counter, std::uint64_t count, std::string_view what);
  void close_loop(Gp counter);
  void append(const Instruction& instruction, std::string_view comment = {});

  Listing listing_;
  std::array<bool, 16> taken_gp_{};
  std::array<bool, 8> taken_fp_{};
  std::optional<Error> error_;
};

}  // namespace plena
