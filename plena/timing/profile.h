// Timing profiles: what each instruction costs and how instructions overlap, as data.
//
// Four are part of the product (profiles/*.toml, embedded when it is built); a user may write one
// in the same form, whole or with `base = "pipelined"` and only what differs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plena/base/error.h"
#include "plena/config/settings.h"
#include "plena/dram/controller.h"
#include "plena/isa/instruction.h"
#include "plena/timing/expression.h"

namespace plena {

enum class Overlap : std::uint8_t {
  Serial,     // each instruction issues when the one before is complete
  Pipelined,  // one issue a cycle in program order, rules 1 to 7 of timing.md
  Ideal,      // data dependences and HBM bandwidth only
};
std::string_view overlap_name(Overlap overlap);

enum class MemoryRules : std::uint8_t {
  Hbm,      // rule 6: bursts in the background, rows delivered one by one
  PlenaRs,  // the public emulator's: blocking accesses of 64 bytes
};

/// What the instructions of one class cost.
struct ClassCost {
  CycleExpression latency;   // cycles from issue to result; beside the memory's, for H-type
  CycleExpression interval;  // cycles until the unit takes the next one
  std::optional<CycleExpression> latency_into_f0;  // of arithmetic and reductions with rd = f0
  std::optional<double> picojoules;                // an instruction
};

struct TimingProfile {
  std::string name;
  std::string description;
  Overlap overlap = Overlap::Pipelined;
  MemoryRules memory = MemoryRules::Hbm;
  std::uint32_t clock_mhz = 1000;
  std::uint32_t queue_depth = 8;                       // transfers a unit
  std::optional<double> picojoules_per_byte;           // moved to or from HBM
  dram::DramSettings hbm;                              // the memory, where its rules are rule 6
  std::array<std::uint16_t, kOpcodeCount> class_of{};  // by opcode, indexes classes
  std::vector<ClassCost> classes;

  [[nodiscard]] const ClassCost& cost(Op op) const {
    return classes[class_of[static_cast<std::size_t>(op)]];
  }
  [[nodiscard]] bool has_energy() const;
};

/// Names of the built-in profiles: serial, pipelined, ideal, plena-rs.
std::span<const std::string_view> built_in_profiles();

/// A built-in profile by its name, or one from a file (a name with a `/` or ending in .toml).
Result<TimingProfile> load_profile(const std::string& name_or_path);

/// The same for text at hand; `file` is what errors call it. Every instruction of the machine has
/// exactly one class, in the text or in its base; anything else is an error with its place.
Result<TimingProfile> parse_profile(std::string_view text, const std::string& file);

/// What one instruction costs on a machine of these settings.
struct InstructionCost {
  std::uint32_t latency = 0;
  std::uint32_t interval = 0;
  double picojoules = 0;
};

/// Evaluates the class of an instruction. Latencies run from 0 (1 where instructions overlap) to
/// kLongestLatency, intervals from 1 to the latency; outside is an error at the expression.
Result<InstructionCost> instruction_cost(const TimingProfile& profile, const Settings& settings,
                                         const Instruction& instruction);
inline constexpr std::int64_t kLongestLatency = 0x7FFFFFFF;

/// Candidates of a V_TOPK with this policy (semantics 8).
constexpr std::uint32_t top_k_lanes(std::uint8_t policy) {
  return policy == 0 ? 32 : 128;
}
/// Lanes it picks.
constexpr std::uint32_t top_k_picks(std::uint8_t policy) {
  return policy == 0 ? 4 : 8;
}

}  // namespace plena
