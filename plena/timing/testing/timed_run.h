// For the tests of this room: small programs as text, run on a machine with a clock.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "plena/timing/ideal_hbm.h"
#include "plena/timing/timing.h"

namespace plena {

/// What a run looked like in time.
struct TimedRun {
  std::vector<Cycle> issues;     // of each instruction that retired, in program order
  std::vector<Cycle> completes;  // transfers: when the last row arrived
  std::vector<std::uint64_t> stalls;
  std::vector<Cause> causes;  // of the stalls
  Cycle total = 0;
  std::unique_ptr<Timing> timing;
};

struct TimedRunOptions {
  TimingProfile profile;
  IdealHbmSettings hbm;
  std::function<std::unique_ptr<HbmModel>()> make_memory;  // instead of that ideal one
  Settings settings;
  Dialect dialect;
  bool listen = true;  // without, a run has nothing but its accounts and its total
};

/// Options of a run with a built-in profile on the specification's machine and the ideal memory.
TimedRunOptions run_with(const std::string& profile);

/// Runs a program, as words or as assembly text, from reset to its end or its trap.
TimedRun timed_run(const std::vector<std::uint32_t>& words, const TimedRunOptions& options);
TimedRun timed_run(std::string_view text, const TimedRunOptions& options);

}  // namespace plena
