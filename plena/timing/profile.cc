#include "plena/timing/profile.h"

#include <algorithm>
#include <array>

#include "plena/base/files.h"
#include "plena/base/near_miss.h"
#include "plena/timing/built_in_profiles.h"

namespace plena {

namespace {

// The value of one expression, which lies in `smallest` … `largest`.
Result<std::uint32_t> cycles(const CycleExpression& expression, const CostNames& names,
                             std::int64_t smallest, std::int64_t largest, std::string_view what,
                             std::string_view mnemonic) {
  const auto value = expression.evaluate(names);
  if (!value) return tl::unexpected(value.error());
  if (*value < smallest || *value > largest) {
    return tl::unexpected(Error{ErrorCode::Settings,
                                fmt::format("the {} of {} comes out as {} cycles; {} to {} make "
                                            "sense here",
                                            what, mnemonic, *value, smallest, largest),
                                expression.place(),
                                {}});
  }
  return static_cast<std::uint32_t>(*value);
}

// Whether the destination is an f register that an arithmetic result goes to.
bool writes_f0(const Instruction& instruction) {
  if (instruction.rd != 0) return false;
  for (const Operand& operand : row_of(instruction.op).operands()) {
    if (operand.field == Field::Rd && operand.kind == OperandKind::Fp)
      return operand.access != Access::Read;
  }
  return false;
}

}  // namespace

std::string_view overlap_name(Overlap overlap) {
  switch (overlap) {
    case Overlap::Serial:
      return "serial";
    case Overlap::Pipelined:
      return "pipelined";
    case Overlap::Ideal:
      return "ideal";
  }
  return "";
}

bool TimingProfile::has_energy() const {
  return picojoules_per_byte.has_value() ||
         std::ranges::any_of(classes, [](const ClassCost& c) { return c.picojoules.has_value(); });
}

std::span<const std::string_view> built_in_profiles() {
  static constexpr std::array<std::string_view, 4> kNames = {"serial", "pipelined", "ideal",
                                                             "plena-rs"};
  return kNames;
}

Result<TimingProfile> load_profile(const std::string& name_or_path) {
  const auto names = built_in_profiles();
  const bool is_path =
      name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".toml");
  if (!is_path) {
    const std::string_view text = built_in_profile_text(name_or_path);
    if (text.empty()) {
      std::string hint = did_you_mean(name_or_path, names);
      if (hint.empty()) hint = fmt::format("one of {}, or a profile file", fmt::join(names, ", "));
      return fail_with_hint(ErrorCode::Usage,
                            fmt::format("no timing profile is called {}", name_or_path), hint);
    }
    return parse_profile(text, name_or_path);
  }
  const auto text = read_text(name_or_path);
  if (!text) return tl::unexpected(text.error());
  return parse_profile(*text, name_or_path);
}

Result<InstructionCost> instruction_cost(const TimingProfile& profile, const Settings& settings,
                                         const Instruction& instruction) {
  const ClassCost& cost = profile.cost(instruction.op);
  const std::string_view mnemonic = row_of(instruction.op).mnemonic;
  const CostNames names{&settings,
                        instruction.op == Op::V_TOPK ? top_k_lanes(instruction.select) : 0};
  const bool into_f0 = cost.latency_into_f0.has_value() && writes_f0(instruction);
  const std::int64_t smallest = profile.overlap == Overlap::Serial ? 0 : 1;
  const auto latency = cycles(into_f0 ? *cost.latency_into_f0 : cost.latency, names, smallest,
                              kLongestLatency, "latency", mnemonic);
  if (!latency) return tl::unexpected(latency.error());
  // An instruction that keeps its unit longer than it takes would make a serial run the faster one.
  const std::int64_t longest = std::max<std::int64_t>(*latency, 1);
  const auto interval = cycles(cost.interval, names, 1, longest, "interval", mnemonic);
  if (!interval) return tl::unexpected(interval.error());
  return InstructionCost{*latency, *interval, cost.picojoules.value_or(0.0)};
}

}  // namespace plena
