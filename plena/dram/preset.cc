#include "plena/dram/preset.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace plena::dram {
namespace {

// HBM2, 8 Gb; the row count is the public preset's (hbm.md: it makes 2 GiB a channel).
constexpr Organisation kHbm2 = {.stack_ids = 1, .rows = 65'536};
// HBM3, 16 Gb, 8-high.
constexpr Organisation kHbm3 = {.stack_ids = 2, .rows = 16'384};

// hbm.md, "HBM timing facts". HBM2's nRTW is nCL + nBL + 2 - nCWL.
constexpr Timings kHbm2_1600 = {.nBL = 2,
                                .nCL = 10,
                                .nCWL = 4,
                                .nRCDRD = 10,
                                .nRCDWR = 8,
                                .nRP = 10,
                                .nRAS = 24,
                                .nRC = 34,
                                .nWR = 12,
                                .nRTP = 4,
                                .nCCDS = 2,
                                .nCCDL = 4,
                                .nCCDR = 0,
                                .nRRDS = 4,
                                .nRRDL = 4,
                                .nWTRS = 5,
                                .nWTRL = 6,
                                .nRTW = 10,
                                .nFAW = 12,
                                .nPPD = 0,
                                .nRFC = 280,
                                .nRFCpb = 128,
                                .nRREFD = 7,
                                .nREFI = 3120,
                                .nREFIpb = 98,
                                .nRFMab = 0,
                                .nRFMpb = 0};

constexpr Timings kHbm2_2000 = {.nBL = 2,
                                .nCL = 14,
                                .nCWL = 5,
                                .nRCDRD = 14,
                                .nRCDWR = 12,
                                .nRP = 14,
                                .nRAS = 34,
                                .nRC = 48,
                                .nWR = 16,
                                .nRTP = 5,
                                .nCCDS = 2,
                                .nCCDL = 4,
                                .nCCDR = 0,
                                .nRRDS = 4,
                                .nRRDL = 4,
                                .nWTRS = 6,
                                .nWTRL = 8,
                                .nRTW = 13,
                                .nFAW = 15,
                                .nPPD = 0,
                                .nRFC = 350,
                                .nRFCpb = 160,
                                .nRREFD = 8,
                                .nREFI = 3900,
                                .nREFIpb = 122,
                                .nRFMab = 0,
                                .nRFMpb = 0};

constexpr Timings kHbm2_2400 = {.nBL = 2,
                                .nCL = 17,
                                .nCWL = 6,
                                .nRCDRD = 17,
                                .nRCDWR = 14,
                                .nRP = 17,
                                .nRAS = 40,
                                .nRC = 57,
                                .nWR = 19,
                                .nRTP = 6,
                                .nCCDS = 2,
                                .nCCDL = 4,
                                .nCCDR = 0,
                                .nRRDS = 5,
                                .nRRDL = 5,
                                .nWTRS = 8,
                                .nWTRL = 10,
                                .nRTW = 15,
                                .nFAW = 19,
                                .nPPD = 0,
                                .nRFC = 421,
                                .nRFCpb = 193,
                                .nRREFD = 10,
                                .nREFI = 4682,
                                .nREFIpb = 147,
                                .nRFMab = 0,
                                .nRFMpb = 0};

constexpr Timings kHbm3_6400 = {.nBL = 2,
                                .nCL = 20,
                                .nCWL = 10,
                                .nRCDRD = 31,
                                .nRCDWR = 15,
                                .nRP = 26,
                                .nRAS = 45,
                                .nRC = 72,
                                .nWR = 33,
                                .nRTP = 9,
                                .nCCDS = 2,
                                .nCCDL = 4,
                                .nCCDR = 3,
                                .nRRDS = 4,
                                .nRRDL = 5,
                                .nWTRS = 7,
                                .nWTRL = 10,
                                .nRTW = 20,
                                .nFAW = 24,
                                .nPPD = 2,
                                .nRFC = 560,
                                .nRFCpb = 320,
                                .nRREFD = 8,
                                .nREFI = 6240,
                                .nREFIpb = 195,
                                .nRFMab = 560,
                                .nRFMpb = 320};

constexpr std::array kPresets = {
    DramPreset{.name = "hbm2-1600",
               .standard = Standard::Hbm2,
               .tck_ps = 1250,
               .organisation = kHbm2,
               .timings = kHbm2_1600},
    DramPreset{.name = "hbm2-2000",
               .standard = Standard::Hbm2,
               .tck_ps = 1000,
               .organisation = kHbm2,
               .timings = kHbm2_2000},
    DramPreset{.name = "hbm2-2400",
               .standard = Standard::Hbm2,
               .tck_ps = 833,
               .organisation = kHbm2,
               .timings = kHbm2_2400},
    DramPreset{.name = "hbm3-6400",
               .standard = Standard::Hbm3,
               .tck_ps = 625,
               .ticks_per_ck = 2,
               .organisation = kHbm3,
               .timings = kHbm3_6400},
    // The default memory without its banks.
    DramPreset{.name = "ideal",
               .standard = Standard::Hbm2,
               .tck_ps = 1000,
               .ideal = true,
               .organisation = kHbm2,
               .timings = kHbm2_2000},
};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

std::span<const DramPreset> dram_presets() {
  return kPresets;
}

Result<DramPreset> find_dram_preset(std::string_view name) {
  const std::string wanted = lower_case(name);
  std::string known;
  for (const DramPreset& preset : kPresets) {
    if (preset.name == wanted) return preset;
    known += known.empty() ? "" : ", ";
    known += preset.name;
  }
  return fail_with_hint(ErrorCode::Usage, fmt::format("unknown HBM preset '{}'", name),
                        fmt::format("known presets: {}", known));
}

}  // namespace plena::dram
