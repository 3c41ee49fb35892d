// What a generation takes on the machine itself, from the clock of its steps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "plena/runtime/session.h"

namespace plena {

struct MachineTime {
  std::uint32_t clock_mhz = 0;
  std::uint64_t steps = 0;
  Cycle total = 0;           // of all steps
  Cycle first_token = 0;     // the prompt: until the logits of the first token that is sampled
  std::uint64_t tokens = 0;  // after the prompt, a step each unless texts step together
  Cycle decode = 0;          // of those steps together
  std::uint64_t decode_bytes = 0;

  [[nodiscard]] double seconds(double cycles) const { return cycles / (1e6 * clock_mhz); }
  /// Nothing where only the prompt was run.
  [[nodiscard]] std::optional<double> cycles_per_token() const;
  [[nodiscard]] std::optional<double> bytes_per_token() const;
  [[nodiscard]] std::optional<double> tokens_per_second() const;
};

/// `prompt` of the steps, at least 1 where there are any, are the prompt's.
MachineTime machine_time(std::span<const StepEnd> steps, std::size_t prompt,
                         std::uint32_t clock_mhz);

}  // namespace plena
