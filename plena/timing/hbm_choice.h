// Which memory a clock has: the profile's own, or a preset that takes its place.
#pragma once

#include <memory>
#include <string_view>

#include "plena/timing/hbm_model.h"
#include "plena/timing/profile.h"

namespace plena {

/// Puts a preset (hbm2-1600, hbm2-2000, hbm2-2400, hbm3-6400, ideal) in the place of the profile's
/// own memory. An unknown name is an error, and so is a preset for the emulator's memory.
Status choose_hbm_preset(TimingProfile& profile, std::string_view preset);

/// The memory of a profile. The ideal one of a machine that is not faster than the memory's clock
/// answers from a few numbers a transfer; all others are simulated burst by burst.
Result<std::unique_ptr<HbmModel>> make_hbm(const TimingProfile& profile);

}  // namespace plena
