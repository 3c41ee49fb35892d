// The machine's own time over a generation, for people and as JSON.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "plena/runtime/machine_time.h"
#include "plena/timing/report.h"

namespace plena {

/// Time to first token, tokens a second, what binds them, and energy where the profile has it:
/// three or four lines that end in a newline. `report` is of the same steps.
std::string to_text(const MachineTime& time, const TimingReport& report);

nlohmann::ordered_json to_json(const MachineTime& time, const TimingReport& report);

}  // namespace plena
