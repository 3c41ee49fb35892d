#include "plena/runtime/machine_time.h"

#include <algorithm>

namespace plena {

std::optional<double> MachineTime::cycles_per_token() const {
  if (tokens == 0) return std::nullopt;
  return static_cast<double>(decode) / static_cast<double>(tokens);
}

std::optional<double> MachineTime::bytes_per_token() const {
  if (tokens == 0) return std::nullopt;
  return static_cast<double>(decode_bytes) / static_cast<double>(tokens);
}

std::optional<double> MachineTime::tokens_per_second() const {
  if (tokens == 0 || decode == 0) return std::nullopt;
  return static_cast<double>(tokens) / seconds(static_cast<double>(decode));
}

MachineTime machine_time(std::span<const StepEnd> steps, std::size_t prompt,
                         std::uint32_t clock_mhz) {
  MachineTime time{.clock_mhz = clock_mhz};
  if (steps.empty()) return time;
  const std::size_t first = std::clamp<std::size_t>(prompt, 1, steps.size());
  time.steps = steps.size();
  time.total = steps.back().cycles;
  time.first_token = steps[first - 1].cycles;
  time.tokens = steps.size() - first;
  time.decode = time.total - time.first_token;
  time.decode_bytes = steps.back().hbm_bytes - steps[first - 1].hbm_bytes;
  return time;
}

}  // namespace plena
