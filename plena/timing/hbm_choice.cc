#include "plena/timing/hbm_choice.h"

#include "plena/timing/dram_hbm.h"
#include "plena/timing/emulator_hbm.h"
#include "plena/timing/ideal_hbm.h"

namespace plena {

Status choose_hbm_preset(TimingProfile& profile, std::string_view preset) {
  auto found = dram::find_dram_preset(preset);
  if (!found) return tl::unexpected(found.error());
  if (profile.memory == MemoryRules::PlenaRs) {
    return fail_with_hint(ErrorCode::Usage,
                          fmt::format("the profile {} has a memory of its own", profile.name),
                          "leave --hbm-preset out, or take the profile serial");
  }
  profile.hbm.preset = *found;
  profile.hbm.channels = found->default_channels;
  return {};
}

Result<std::unique_ptr<HbmModel>> make_hbm(const TimingProfile& profile) {
  if (profile.memory == MemoryRules::PlenaRs)
    return std::unique_ptr<HbmModel>(std::make_unique<EmulatorHbm>(profile.clock_mhz));
  const dram::DramPreset& preset = profile.hbm.preset;
  if (preset.ideal) {
    const auto settings = ideal_settings(profile.hbm);
    if (ClockRatio(settings.tick_fs, profile.clock_mhz).tick_per_cycle())
      return std::unique_ptr<HbmModel>(std::make_unique<IdealHbm>(settings, profile.clock_mhz));
  }
  auto controller = dram::Controller::make(profile.hbm);
  if (!controller) return forward_error(controller);
  return std::unique_ptr<HbmModel>(
      std::make_unique<DramHbm>(std::move(*controller), profile.clock_mhz));
}

}  // namespace plena
