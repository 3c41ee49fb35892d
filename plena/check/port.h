// From the dialect plena-rs to the specification: which switches a program's result depends on,
// instruction by instruction, and a program that means the same without them (semantics 8).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plena/base/error.h"
#include "plena/config/settings.h"
#include "plena/isa/dialect.h"

namespace plena {

/// What became of one dependence.
enum class PortOutcome : std::uint8_t {
  Rewritten,      // the new program does the same without the switch
  Rounding,       // only the order of a sum differs: other last bits
  DataDependent,  // the same unless the values are of the kind that is named
  NotRewritten,   // the result differs, and nothing was found that would mean the same
  Unknown,        // an address is not known, so that neither can be said
};
std::string_view port_outcome_name(PortOutcome outcome);

struct PortFinding {
  std::uint64_t pc = 0;  // of the original program
  RsSwitch rs_switch{};
  PortOutcome outcome{};
  std::string explanation;
};

struct PortedProgram {
  std::vector<std::uint32_t> words;
  std::vector<std::uint64_t> position;  // of each original instruction in `words`
  std::vector<PortFinding> findings;    // by pc
  std::vector<std::string> notes;       // about the whole program: settings and images
  Dialect target;                       // the specification and the extensions `words` need

  /// The same memories, but for what Rounding and DataDependent findings name.
  [[nodiscard]] bool equivalent() const;
  [[nodiscard]] bool has(PortOutcome outcome) const;
};

/// Ports a program that runs under plena-rs on a machine of these settings. An Error is a program
/// that plena-rs refuses to load.
Result<PortedProgram> port_program(const std::vector<std::uint32_t>& words,
                                   const Settings& settings);

}  // namespace plena
