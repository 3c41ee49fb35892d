// The watch of dispatch() that counts instructions, keeps loop frames and tells an observer.
#pragma once

#include <optional>

#include <fmt/format.h>

#include "plena/sim/dispatch.h"

namespace plena {

/// What a watched run does around an instruction beyond executing it: it counts the instructions of
/// loops, keeps to a budget, and tells an observer. `Told` is Observer or, where the loop is to
/// call it without a detour, the final class of one.
template <class Told>
class ObserverWatch {
 public:
  static constexpr bool kActive = true;
  static constexpr bool kTakesPairs = false;

  ObserverWatch(Execution& x, const RunOptions& options, Told* observer)
      : x_(x),
        observer_(observer),
        budget_(options.max_instructions),
        left_(options.max_instructions),
        loop_limit_(x.program.settings.max_loop_instructions),
        counts_loops_(x.program.counts_loops),
        rs_loops_(x.program.dialect.has(RsSwitch::Loops)) {}

  // A reason to stop before the instruction at `pc`, if there is one.
  [[gnu::always_inline]] std::optional<Stop> before(std::uint64_t pc) {
    if (budget_ != 0 && left_-- == 0) [[unlikely]]
      return budget_is_spent(pc);
    if (counts_loops_ && exceeds_limit()) [[unlikely]]
      return loop_is_too_long(pc);
    if (observer_ != nullptr) observer_->about_to_run(x_.machine, pc, x_.program.decoded[pc]);
    return std::nullopt;
  }

  void before_call(std::uint64_t /*pc*/, const Prepared& /*instruction*/) {}

  [[gnu::always_inline]] void after(std::uint64_t pc) {
    if (counts_loops_ && !rs_loops_) count_loop(pc);
    if (observer_ != nullptr) observer_->retired(x_.machine, pc, x_.program.decoded[pc]);
  }

  void after_integer(std::uint64_t pc) { after(pc); }
  void after_special(std::uint64_t pc) { after(pc); }
  void after_nothing(std::uint64_t pc) { after(pc); }
  void after_loop_start(std::uint64_t pc) { after(pc); }
  void after_loop_end(std::uint64_t pc) { after(pc); }
  void passed(std::uint64_t /*first*/, std::uint64_t /*last*/) {}
  void finish() {}

 private:
  // The limit counts for the innermost loop, under rs-loops for every active one; there an
  // instruction counts when it is dispatched.
  bool exceeds_limit() {
    auto& loops = x_.machine.loops;
    if (!rs_loops_) return !loops.empty() && loops.back().instructions >= loop_limit_;
    for (LoopFrame& loop : loops) {
      if (++loop.instructions > loop_limit_) return true;
    }
    return false;
  }

  // Out of the way of the loop.
  [[gnu::cold]] [[gnu::noinline]] Stop budget_is_spent(std::uint64_t pc) const {
    return dispatch_detail::trapped_with(pc, TrapCause::InstructionBudget,
                                         fmt::format("{} instructions have run", budget_),
                                         "--max-instructions stops here");
  }
  [[gnu::cold]] [[gnu::noinline]] Stop loop_is_too_long(std::uint64_t pc) const {
    return dispatch_detail::trapped_with(
        pc, TrapCause::LoopLimit, fmt::format("an iteration has run {} instructions", loop_limit_),
        "MAX_LOOP_INSTRUCTIONS limits an iteration of a loop (semantics 6.11)");
  }

  // START counts for the loop around it, END for its own iteration, which it closes. Where a
  // handler keeps the frames (Code::Jump), it has moved them already; the loop around is then the
  // one below a new frame.
  void count_loop(std::uint64_t pc) {
    auto& loops = x_.machine.loops;
    const Prepared& i = x_.program.code[pc];
    if (i.code == Code::Jump) {
      const bool starts = x_.program.decoded[pc].op == Op::C_LOOP_START;
      if (starts && loops.size() > 1) ++loops[loops.size() - 2].instructions;
      return;
    }
    if (i.code == Code::LoopEnd) {
      if (x_.machine.gp[i.rd] > 0) {
        loops.back().instructions = 0;
      } else {
        loops.pop_back();
      }
      return;
    }
    if (!loops.empty()) ++loops.back().instructions;
    if (i.code == Code::LoopStart) loops.push_back({static_cast<std::uint32_t>(pc), i.rd, 0});
  }

  Execution& x_;
  Told* observer_;        // may be null
  std::uint64_t budget_;  // 0: none
  std::uint64_t left_;    // of it
  std::uint64_t loop_limit_;
  bool counts_loops_;
  bool rs_loops_;
};

}  // namespace plena
