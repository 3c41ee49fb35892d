// The dispatch loop. One source, compiled twice: a run nobody watches, and one that counts
// instructions, keeps loop frames or tells an observer.
#include "plena/sim/engine.h"

#include <fmt/format.h>

#include "plena/sim/prepared.h"

namespace plena {

void Observer::about_to_run(const Machine& /*machine*/, std::uint64_t /*pc*/,
                            const Instruction& /*instruction*/) {}
void Observer::moved_row(const HbmRow& /*row*/) {}

namespace {

// How often a running loop looks whether it should stop: every so many backward jumps.
constexpr std::uint32_t kJumpsBetweenPolls = 1U << 14;

Stop trapped(Execution& x, std::uint64_t pc) {
  x.fault.pc = pc;
  return {StopReason::Trapped, std::move(x.fault)};
}

Stop trapped_with(std::uint64_t pc, TrapCause cause, std::string values, std::string rule) {
  return {StopReason::Trapped, Trap{cause, pc, std::move(values), std::move(rule)}};
}

// What a watched run does around an instruction beyond executing it.
class Watch {
 public:
  Watch(Execution& x, const RunOptions& options)
      : x_(x), options_(options), left_(options.max_instructions) {}

  // A reason to stop before the instruction at `pc`, if there is one.
  std::optional<Stop> before(std::uint64_t pc) {
    if (options_.max_instructions != 0 && left_-- == 0) {
      return trapped_with(pc, TrapCause::InstructionBudget,
                          fmt::format("{} instructions have run", options_.max_instructions),
                          "--max-instructions stops here");
    }
    if (x_.program.counts_loops && exceeds_limit()) {
      return trapped_with(pc, TrapCause::LoopLimit,
                          fmt::format("an iteration has run {} instructions",
                                      x_.program.settings.max_loop_instructions),
                          "MAX_LOOP_INSTRUCTIONS limits an iteration of a loop (semantics 6.11)");
    }
    if (options_.observer != nullptr)
      options_.observer->about_to_run(x_.machine, pc, x_.program.decoded[pc]);
    return std::nullopt;
  }

  void after(std::uint64_t pc) {
    if (x_.program.counts_loops) count_loop(pc);
    if (options_.observer != nullptr)
      options_.observer->retired(x_.machine, pc, x_.program.decoded[pc]);
  }

  // The limit counts for the innermost loop, under rs-loops for every active one; there an
  // instruction counts when it is dispatched.
  bool exceeds_limit() {
    auto& loops = x_.machine.loops;
    const std::uint64_t limit = x_.program.settings.max_loop_instructions;
    if (!x_.program.dialect.has(RsSwitch::Loops))
      return !loops.empty() && loops.back().instructions >= limit;
    for (LoopFrame& loop : loops) {
      if (++loop.instructions > limit) return true;
    }
    return false;
  }

  // START counts for the loop around it, END for its own iteration, which it closes. Where a
  // handler keeps the frames (Code::Jump), it has moved them already; the loop around is then the
  // one below a new frame.
  void count_loop(std::uint64_t pc) {
    auto& loops = x_.machine.loops;
    const Prepared& i = x_.program.code[pc];
    if (x_.program.dialect.has(RsSwitch::Loops)) return;
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

 private:
  Execution& x_;
  const RunOptions& options_;
  std::uint64_t left_;
};

template <bool kWatched>
Stop dispatch(Execution& x, const RunOptions& options) {
  Machine& m = x.machine;
  const Prepared* const code = x.program.code.data();
  const Prepared* p = code + m.pc;
  std::uint64_t retired = m.retired;
  std::uint32_t jumps_left = kJumpsBetweenPolls;
  Watch watch(x, options);

  const auto leave = [&](Stop stop) {
    m.pc = static_cast<std::uint64_t>(p - code);
    m.retired = retired;
    return stop;
  };

  // Order of enum Code.
  static const void* const kLabels[kCodeCount] = {
      &&halt,        &&call,      &&jump,       &&break_point, &&nothing, &&loop_start,
      &&loop_end,    &&add_int,   &&addi_int,   &&sub_int,     &&mul_int, &&load_immediate,
      &&set_address, &&set_scale, &&set_stride, &&set_mask};

#define PLENA_DISPATCH()                                                    \
  do {                                                                      \
    if constexpr (kWatched) {                                               \
      if (p->code != Code::Halt) {                                          \
        if (auto stop = watch.before(static_cast<std::uint64_t>(p - code))) \
          return leave(std::move(*stop));                                   \
      }                                                                     \
    }                                                                       \
    goto* kLabels[static_cast<std::size_t>(p->code)];                       \
  } while (false)
#define PLENA_RETIRE(next)                                                     \
  do {                                                                         \
    ++retired;                                                                 \
    if constexpr (kWatched) watch.after(static_cast<std::uint64_t>(p - code)); \
    p = (next);                                                                \
    PLENA_DISPATCH();                                                          \
  } while (false)

  PLENA_DISPATCH();

halt:
  return leave({});
call:
  if (!p->handler(x, *p)) return leave(trapped(x, static_cast<std::uint64_t>(p - code)));
  PLENA_RETIRE(p + 1);
jump:
  x.next_pc = static_cast<std::uint64_t>(p - code);
  if (!p->handler(x, *p)) return leave(trapped(x, static_cast<std::uint64_t>(p - code)));
  PLENA_RETIRE(code + x.next_pc);
break_point:
  return leave(
      trapped_with(static_cast<std::uint64_t>(p - code), TrapCause::Breakpoint, "",
                   "C_BREAK stops the run; it retires when execution continues (semantics 6.12)"));
nothing:
  PLENA_RETIRE(p + 1);
loop_start:
  m.gp[p->rd] = p->imm;
  PLENA_RETIRE(p + 1);
loop_end: {
  // A counter the body has brought to 0 stays there and the loop is left (semantics 6.11).
  std::uint32_t& counter = m.gp[p->rd];
  if (counter <= 1) {
    counter = 0;
    PLENA_RETIRE(p + 1);
  }
  --counter;
  if (--jumps_left == 0) [[unlikely]] {
    jumps_left = kJumpsBetweenPolls;
    if (options.interrupted != nullptr && options.interrupted->load(std::memory_order_relaxed)) {
      ++retired;
      if constexpr (kWatched) watch.after(static_cast<std::uint64_t>(p - code));
      p = code + p->partner + 1;
      return leave({StopReason::Interrupted, std::nullopt});
    }
  }
  PLENA_RETIRE(code + p->partner + 1);
}
add_int:
  m.gp[p->rd] = m.gp[p->rs1] + m.gp[p->rs2];
  PLENA_RETIRE(p + 1);
addi_int:
  m.gp[p->rd] = m.gp[p->rs1] + p->imm;
  PLENA_RETIRE(p + 1);
sub_int:
  m.gp[p->rd] = m.gp[p->rs1] - m.gp[p->rs2];
  PLENA_RETIRE(p + 1);
mul_int:
  m.gp[p->rd] = m.gp[p->rs1] * m.gp[p->rs2];
  PLENA_RETIRE(p + 1);
load_immediate:
  m.gp[p->rd] = p->imm;
  PLENA_RETIRE(p + 1);
set_address:
  m.a[p->rd] = std::uint64_t{m.gp[p->rs1]} << 32 | m.gp[p->rs2];
  m.a_set = static_cast<std::uint16_t>(m.a_set | 1U << p->rd);
  PLENA_RETIRE(p + 1);
set_scale:
  m.scale = m.gp[p->rd];
  m.scale_set = true;
  PLENA_RETIRE(p + 1);
set_stride:
  m.stride = m.gp[p->rd];
  m.stride_set = true;
  PLENA_RETIRE(p + 1);
set_mask:
  m.v_mask = m.gp[p->rd];
  PLENA_RETIRE(p + 1);

#undef PLENA_RETIRE
#undef PLENA_DISPATCH
}

}  // namespace

Stop run(Machine& machine, const PreparedProgram& program, const RunOptions& options) {
  if (machine.pc >= program.code.size()) machine.pc = program.code.size() - 1;
  Execution x(machine, program);
  x.observer = options.observer;
  const bool watched =
      options.observer != nullptr || options.max_instructions != 0 || program.counts_loops;
  return watched ? dispatch<true>(x, options) : dispatch<false>(x, options);
}

void resume_after_break(Machine& machine, const PreparedProgram& program) {
  if (machine.pc >= program.decoded.size() || program.code[machine.pc].code != Code::Break) return;
  // Under rs-loops it was counted when it was dispatched.
  const bool counts = program.counts_loops && !program.dialect.has(RsSwitch::Loops);
  if (counts && !machine.loops.empty()) ++machine.loops.back().instructions;
  ++machine.pc;
  ++machine.retired;
}

}  // namespace plena
