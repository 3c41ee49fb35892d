// The memories this product knows: organisation and timing parameters of each, as public DRAM
// models publish them. Plain tables; what the parameters mean for commands is in gaps.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "plena/base/error.h"

namespace plena::dram {

enum class Standard : std::uint8_t { Hbm2, Hbm3 };

/// What one channel is made of. Sizes are powers of two.
struct Organisation {
  std::uint32_t pseudo_channels = 2;
  std::uint32_t stack_ids = 1;    // a pseudo-channel
  std::uint32_t bank_groups = 4;  // a stack id
  std::uint32_t banks_per_group = 4;
  std::uint32_t rows = 0;
  std::uint32_t bursts_per_row = 32;
  std::uint32_t burst_bytes = 32;

  [[nodiscard]] std::uint32_t banks() const {
    return pseudo_channels * stack_ids * bank_groups * banks_per_group;
  }
  [[nodiscard]] std::uint64_t channel_bytes() const {
    return std::uint64_t{banks()} * rows * bursts_per_row * burst_bytes;
  }
};

/// Parameters in tCK, by their JEDEC names. They count from the end of one command to the end of
/// the other (hbm.md), so only gaps.h may compare them with command starts.
struct Timings {
  std::int32_t nBL, nCL, nCWL;
  std::int32_t nRCDRD, nRCDWR, nRP, nRAS, nRC;
  std::int32_t nWR, nRTP;
  std::int32_t nCCDS, nCCDL, nCCDR;  // nCCDR: between stack ids, HBM3 reads; 0: no such rule
  std::int32_t nRRDS, nRRDL;
  std::int32_t nWTRS, nWTRL, nRTW;
  std::int32_t nFAW;
  std::int32_t nPPD;  // 0: no such rule
  std::int32_t nRFC, nRFCpb, nRREFD;
  std::int32_t nREFI, nREFIpb;
  std::int32_t nRFMab, nRFMpb;  // refresh management; 0: no such command
};

struct DramPreset {
  std::string_view name;  // as on the command line: "hbm2-2000"
  Standard standard = Standard::Hbm2;
  std::int32_t tck_ps = 0;
  std::int32_t ticks_per_ck = 1;
  std::uint32_t default_channels = 8;
  bool ideal = false;  // fixed latency and peak bandwidth instead of banks (ideal_memory.h)
  Organisation organisation;
  Timings timings;

  /// 10⁹ bytes a second of one channel: each pseudo-channel moves a burst every nBL.
  [[nodiscard]] double peak_gbps() const {
    return 1000.0 * organisation.burst_bytes * organisation.pseudo_channels /
           (static_cast<double>(timings.nBL) * tck_ps);
  }
  [[nodiscard]] double tick_ps() const { return static_cast<double>(tck_ps) / ticks_per_ck; }
};

/// hbm2-1600, hbm2-2000, hbm2-2400, hbm3-6400, ideal.
std::span<const DramPreset> dram_presets();

inline constexpr std::string_view kDefaultPreset = "hbm2-2000";

/// By name, letter case ignored; an unknown name is a Usage error that lists the known ones.
Result<DramPreset> find_dram_preset(std::string_view name);

}  // namespace plena::dram
