#include "plena/cli/timing_options.h"

#include "plena/timing/hbm_choice.h"

namespace plena {

void add_timing_options(CLI::App& command, TimingOptions& options) {
  constexpr const char* kGroup = "Timing";
  command
      .add_option(
          "--timing", options.profile,
          "Count cycles: serial, pipelined, ideal, plena-rs or a profile file; default none")
      ->type_name("PROFILE")
      ->group(kGroup);
  command
      .add_option("--hbm-preset", options.hbm_preset,
                  "Memory of the clock: hbm2-1600, hbm2-2000, hbm2-2400, hbm3-6400 or ideal; "
                  "default hbm2-2000")
      ->type_name("NAME")
      ->group(kGroup);
}

Result<std::unique_ptr<Timing>> make_clock(const TimingOptions& options,
                                           const std::vector<Instruction>& instructions,
                                           const Settings& settings, const Dialect& dialect) {
  if (!options.wanted()) {
    if (options.hbm_preset.empty()) return std::unique_ptr<Timing>();
    return fail_with_hint(ErrorCode::Usage, "--hbm-preset has no effect without a clock",
                          "add --timing pipelined");
  }
  auto profile = load_profile(options.profile);
  if (!profile) return forward_error(profile);
  if (!options.hbm_preset.empty()) {
    if (auto chosen = choose_hbm_preset(*profile, options.hbm_preset); !chosen)
      return tl::unexpected(chosen.error());
  }
  auto hbm = make_hbm(*profile);
  if (!hbm) return forward_error(hbm);
  return Timing::create(*profile, std::move(*hbm), instructions, settings, dialect);
}

}  // namespace plena
