// The options that put a clock on a run: --timing and --hbm-preset (cli.md).
#pragma once

#include <memory>
#include <string>

#include "plena/cli/context.h"
#include "plena/timing/timing.h"

namespace plena {

struct TimingOptions {
  std::string profile = "none";
  std::string hbm_preset;  // empty: the profile's memory

  [[nodiscard]] bool wanted() const { return profile != "none"; }
};

void add_timing_options(CLI::App& command, TimingOptions& options);

/// The clock that was asked for, or null. An --hbm-preset without a clock is an error.
Result<std::unique_ptr<Timing>> make_clock(const TimingOptions& options,
                                           const std::vector<Instruction>& instructions,
                                           const Settings& settings, const Dialect& dialect);

}  // namespace plena
