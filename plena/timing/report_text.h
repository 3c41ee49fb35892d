// A timing report as text for people and as JSON for programs.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "plena/timing/report.h"

namespace plena {

/// One line: cycles, time, HBM traffic, the binding bound.
std::string summary(const TimingReport& report);

/// Totals, bounds, causes, units, the ten most expensive instructions and loops, regions. `program`
/// gives disassembly and source lines.
std::string to_text(const TimingReport& report, const Program& program, const Dialect& dialect);

/// The same with every number, and every instruction that ran.
nlohmann::ordered_json to_json(const TimingReport& report, const Program& program,
                               const Dialect& dialect);

}  // namespace plena
