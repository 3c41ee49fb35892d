// The dispatch loop as a template: compiled once for every way to watch a run, so that what watches
// is inside the loop and a run nobody watches pays nothing. For the engine, and for rooms that
// bring a loop of their own (Observer::own_loop).
#pragma once

#include <optional>
#include <utility>

#include "plena/sim/prepared.h"

namespace plena {

namespace dispatch_detail {

// How often a running loop looks whether it should stop: every so many backward jumps.
inline constexpr std::uint32_t kJumpsBetweenPolls = 1U << 14;

inline Stop trapped(Execution& x, std::uint64_t pc) {
  x.fault.pc = pc;
  return {StopReason::Trapped, std::move(x.fault)};
}

inline Stop trapped_with(std::uint64_t pc, TrapCause cause, std::string values, std::string rule) {
  return {StopReason::Trapped, Trap{cause, pc, std::move(values), std::move(rule)}};
}

}  // namespace dispatch_detail

/// Watches nothing.
struct NoWatch {
  static constexpr bool kActive = false;
  static constexpr bool kTakesPairs = true;
};

/// Runs from machine.pc. `watch` is a copy, so that it can live in registers. One that is active is
/// told of every instruction:
///   before(pc)           may return a reason to stop instead
///   before_call(pc, i)   a handler is about to execute it; its registers are still as they were
///   after(pc)            a handler retired it
///   after_integer(pc)    the loop itself retired it: arithmetic on gp
///   after_special(pc)    C_SET_*
///   after_nothing(pc)    an instruction without effect
///   after_loop_start(pc), after_loop_end(pc)
///   passed(first, last)  all from first to last have retired, before a jump or the end of the run
///   finish()             the run stops
/// Pairs take one step only where kTakesPairs: before() is not called for the second.
template <class Watch>
Stop dispatch(Execution& x, const RunOptions& options, Watch watch) {
  using namespace dispatch_detail;
  Machine& m = x.machine;
  const Prepared* const code =
      (Watch::kTakesPairs && options.fuse ? x.program.fused : x.program.code).data();
  const Prepared* p = code + m.pc;
  // Instructions retired before `segment`; all from there up to `p` have retired since.
  std::uint64_t retired = m.retired;
  const Prepared* segment = p;
  std::uint32_t jumps_left = kJumpsBetweenPolls;

  // Inlined everywhere, or what it refers to could not live in registers.
  const auto leave = [&](Stop stop) __attribute__((always_inline)) {
    if constexpr (Watch::kActive) {
      if (p != segment)
        watch.passed(static_cast<std::uint64_t>(segment - code),
                     static_cast<std::uint64_t>(p - code) - 1);
      watch.finish();
    }
    m.pc = static_cast<std::uint64_t>(p - code);
    m.retired = retired + static_cast<std::uint64_t>(p - segment);
    return stop;
  };
  // The instruction at `p` retires and goes on at `to`.
  const auto jump_to = [&](const Prepared* to) __attribute__((always_inline)) {
    if constexpr (Watch::kActive)
      watch.passed(static_cast<std::uint64_t>(segment - code),
                   static_cast<std::uint64_t>(p - code));
    retired += static_cast<std::uint64_t>(p - segment) + 1;
    p = segment = to;
  };

  // Order of enum Code.
  static const void* const kLabels[kCodeCount] = {&&halt,
                                                  &&call,
                                                  &&jump,
                                                  &&break_point,
                                                  &&nothing,
                                                  &&loop_start,
                                                  &&loop_end,
                                                  &&add_int,
                                                  &&addi_int,
                                                  &&sub_int,
                                                  &&mul_int,
                                                  &&load_immediate,
                                                  &&set_address,
                                                  &&set_scale,
                                                  &&set_stride,
                                                  &&set_mask,
#define PLENA_PAIR_LABEL(first, second) &&first##_##second,
                                                  PLENA_FUSED_PAIRS(PLENA_PAIR_LABEL)
#undef PLENA_PAIR_LABEL
  };

#define PLENA_DISPATCH()                                                    \
  do {                                                                      \
    if constexpr (Watch::kActive) {                                         \
      if (p->code != Code::Halt) {                                          \
        if (auto stop = watch.before(static_cast<std::uint64_t>(p - code))) \
          return leave(std::move(*stop));                                   \
      }                                                                     \
    }                                                                       \
    goto* kLabels[static_cast<std::size_t>(p->code)];                       \
  } while (false)
#define PLENA_TELL(told) \
  if constexpr (Watch::kActive) watch.told(static_cast<std::uint64_t>(p - code))
#define PLENA_RETIRE(told) \
  do {                     \
    PLENA_TELL(told);      \
    ++p;                   \
    PLENA_DISPATCH();      \
  } while (false)
#define PLENA_BEFORE_CALL() \
  if constexpr (Watch::kActive) watch.before_call(static_cast<std::uint64_t>(p - code), *p)

  PLENA_DISPATCH();

halt:
  return leave({});
call:
  PLENA_BEFORE_CALL();
  if (!p->handler(x, *p)) return leave(trapped(x, static_cast<std::uint64_t>(p - code)));
  PLENA_RETIRE(after);
jump:
  PLENA_BEFORE_CALL();
  x.next_pc = static_cast<std::uint64_t>(p - code);
  if (!p->handler(x, *p)) return leave(trapped(x, static_cast<std::uint64_t>(p - code)));
  PLENA_TELL(after);
  if (code + x.next_pc <= p) --jumps_left;  // loops of the dialect plena-rs end here
  jump_to(code + x.next_pc);
  if (jumps_left == 0) [[unlikely]] {
    jumps_left = kJumpsBetweenPolls;
    if (options.interrupted != nullptr && options.interrupted->load(std::memory_order_relaxed))
      return leave({StopReason::Interrupted, std::nullopt});
  }
  PLENA_DISPATCH();
break_point:
  return leave(
      trapped_with(static_cast<std::uint64_t>(p - code), TrapCause::Breakpoint, "",
                   "C_BREAK stops the run; it retires when execution continues (semantics 6.12)"));
nothing:
  PLENA_RETIRE(after_nothing);
loop_start:
  m.gp[p->rd] = p->imm;
  PLENA_RETIRE(after_loop_start);
loop_end: {
  // A counter the body has brought to 0 stays there and the loop is left (semantics 6.11).
  std::uint32_t& counter = m.gp[p->rd];
  if (counter <= 1) {
    counter = 0;
    PLENA_RETIRE(after_loop_end);
  }
  --counter;
  if (--jumps_left == 0) [[unlikely]] {
    jumps_left = kJumpsBetweenPolls;
    if (options.interrupted != nullptr && options.interrupted->load(std::memory_order_relaxed)) {
      PLENA_TELL(after_loop_end);
      jump_to(code + p->partner + 1);
      return leave({StopReason::Interrupted, std::nullopt});
    }
  }
  PLENA_TELL(after_loop_end);
  jump_to(code + p->partner + 1);
  PLENA_DISPATCH();
}
add_int:
  m.gp[p->rd] = m.gp[p->rs1] + m.gp[p->rs2];
  PLENA_RETIRE(after_integer);
addi_int:
  m.gp[p->rd] = m.gp[p->rs1] + p->imm;
  PLENA_RETIRE(after_integer);
sub_int:
  m.gp[p->rd] = m.gp[p->rs1] - m.gp[p->rs2];
  PLENA_RETIRE(after_integer);
mul_int:
  m.gp[p->rd] = m.gp[p->rs1] * m.gp[p->rs2];
  PLENA_RETIRE(after_integer);
load_immediate:
  m.gp[p->rd] = p->imm;
  PLENA_RETIRE(after_integer);
set_address:
  m.a[p->rd] = std::uint64_t{m.gp[p->rs1]} << 32 | m.gp[p->rs2];
  m.a_set = static_cast<std::uint16_t>(m.a_set | 1U << p->rd);
  PLENA_RETIRE(after_special);
set_scale:
  m.scale = m.gp[p->rd];
  m.scale_set = true;
  PLENA_RETIRE(after_special);
set_stride:
  m.stride = m.gp[p->rd];
  m.stride_set = true;
  PLENA_RETIRE(after_special);
set_mask:
  m.v_mask = m.gp[p->rd];
  PLENA_RETIRE(after_special);

// Pairs: the first, then straight on to the second, without a look at what it is. Each can be
// entered at its second, which is there as it is; where the first traps, the second has not begun.
#define PLENA_FIRST_add_int                  \
  m.gp[p->rd] = m.gp[p->rs1] + m.gp[p->rs2]; \
  PLENA_TELL(after_integer)
#define PLENA_FIRST_addi_int           \
  m.gp[p->rd] = m.gp[p->rs1] + p->imm; \
  PLENA_TELL(after_integer)
#define PLENA_FIRST_call                                                                  \
  PLENA_BEFORE_CALL();                                                                    \
  if (!p->handler(x, *p)) return leave(trapped(x, static_cast<std::uint64_t>(p - code))); \
  PLENA_TELL(after)
#define PLENA_PAIR(first, second)         \
  first##_##second : PLENA_FIRST_##first; \
  ++p;                                    \
  goto second;
  PLENA_FUSED_PAIRS(PLENA_PAIR)
#undef PLENA_PAIR
#undef PLENA_FIRST_call
#undef PLENA_FIRST_addi_int
#undef PLENA_FIRST_add_int

#undef PLENA_RETIRE
#undef PLENA_TELL
#undef PLENA_BEFORE_CALL
#undef PLENA_DISPATCH
}

}  // namespace plena
