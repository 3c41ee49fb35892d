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
///   finish()             the run stops
template <class Watch>
Stop dispatch(Execution& x, const RunOptions& options, Watch watch) {
  using namespace dispatch_detail;
  Machine& m = x.machine;
  const Prepared* const code = x.program.code.data();
  const Prepared* p = code + m.pc;
  std::uint64_t retired = m.retired;
  std::uint32_t jumps_left = kJumpsBetweenPolls;

  // Inlined everywhere, or what it refers to could not live in registers.
  const auto leave = [&](Stop stop) __attribute__((always_inline)) {
    if constexpr (Watch::kActive) watch.finish();
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
    if constexpr (Watch::kActive) {                                         \
      if (p->code != Code::Halt) {                                          \
        if (auto stop = watch.before(static_cast<std::uint64_t>(p - code))) \
          return leave(std::move(*stop));                                   \
      }                                                                     \
    }                                                                       \
    goto* kLabels[static_cast<std::size_t>(p->code)];                       \
  } while (false)
#define PLENA_RETIRE(told, next)                                                    \
  do {                                                                              \
    ++retired;                                                                      \
    if constexpr (Watch::kActive) watch.told(static_cast<std::uint64_t>(p - code)); \
    p = (next);                                                                     \
    PLENA_DISPATCH();                                                               \
  } while (false)
#define PLENA_BEFORE_CALL() \
  if constexpr (Watch::kActive) watch.before_call(static_cast<std::uint64_t>(p - code), *p)

  PLENA_DISPATCH();

halt:
  return leave({});
call:
  PLENA_BEFORE_CALL();
  if (!p->handler(x, *p)) return leave(trapped(x, static_cast<std::uint64_t>(p - code)));
  PLENA_RETIRE(after, p + 1);
jump:
  PLENA_BEFORE_CALL();
  x.next_pc = static_cast<std::uint64_t>(p - code);
  if (!p->handler(x, *p)) return leave(trapped(x, static_cast<std::uint64_t>(p - code)));
  PLENA_RETIRE(after, code + x.next_pc);
break_point:
  return leave(
      trapped_with(static_cast<std::uint64_t>(p - code), TrapCause::Breakpoint, "",
                   "C_BREAK stops the run; it retires when execution continues (semantics 6.12)"));
nothing:
  PLENA_RETIRE(after_nothing, p + 1);
loop_start:
  m.gp[p->rd] = p->imm;
  PLENA_RETIRE(after_loop_start, p + 1);
loop_end: {
  // A counter the body has brought to 0 stays there and the loop is left (semantics 6.11).
  std::uint32_t& counter = m.gp[p->rd];
  if (counter <= 1) {
    counter = 0;
    PLENA_RETIRE(after_loop_end, p + 1);
  }
  --counter;
  if (--jumps_left == 0) [[unlikely]] {
    jumps_left = kJumpsBetweenPolls;
    if (options.interrupted != nullptr && options.interrupted->load(std::memory_order_relaxed)) {
      ++retired;
      if constexpr (Watch::kActive) watch.after_loop_end(static_cast<std::uint64_t>(p - code));
      p = code + p->partner + 1;
      return leave({StopReason::Interrupted, std::nullopt});
    }
  }
  PLENA_RETIRE(after_loop_end, code + p->partner + 1);
}
add_int:
  m.gp[p->rd] = m.gp[p->rs1] + m.gp[p->rs2];
  PLENA_RETIRE(after_integer, p + 1);
addi_int:
  m.gp[p->rd] = m.gp[p->rs1] + p->imm;
  PLENA_RETIRE(after_integer, p + 1);
sub_int:
  m.gp[p->rd] = m.gp[p->rs1] - m.gp[p->rs2];
  PLENA_RETIRE(after_integer, p + 1);
mul_int:
  m.gp[p->rd] = m.gp[p->rs1] * m.gp[p->rs2];
  PLENA_RETIRE(after_integer, p + 1);
load_immediate:
  m.gp[p->rd] = p->imm;
  PLENA_RETIRE(after_integer, p + 1);
set_address:
  m.a[p->rd] = std::uint64_t{m.gp[p->rs1]} << 32 | m.gp[p->rs2];
  m.a_set = static_cast<std::uint16_t>(m.a_set | 1U << p->rd);
  PLENA_RETIRE(after_special, p + 1);
set_scale:
  m.scale = m.gp[p->rd];
  m.scale_set = true;
  PLENA_RETIRE(after_special, p + 1);
set_stride:
  m.stride = m.gp[p->rd];
  m.stride_set = true;
  PLENA_RETIRE(after_special, p + 1);
set_mask:
  m.v_mask = m.gp[p->rd];
  PLENA_RETIRE(after_special, p + 1);

#undef PLENA_RETIRE
#undef PLENA_BEFORE_CALL
#undef PLENA_DISPATCH
}

}  // namespace plena
