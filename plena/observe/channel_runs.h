// The commands of HBM channels gathered into stretches that can be drawn: a run of reads, a run of
// writes, a refresh. One command a slice would bury everything else.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "plena/dram/controller.h"
#include "plena/dram/shape.h"
#include "plena/timing/clock_ratio.h"

namespace plena {

/// What one pseudo-channel did from `begin` to `end`.
struct ChannelRun {
  enum class Kind : std::uint8_t { Read, Write, Refresh };

  std::uint32_t channel = 0;
  std::uint32_t pseudo_channel = 0;
  Kind kind{};
  Cycle begin = 0;
  Cycle end = 0;
  std::uint64_t bursts = 0;
  std::uint64_t activates = 0;  // rows opened since the run before
};

class ChannelRuns {
 public:
  explicit ChannelRuns(const dram::DramSettings& settings);

  /// `told(run)` follows for each run that ended: runs of a pseudo-channel in order, without
  /// overlap.
  template <class Told>
  void add(const dram::CommandRecord& command, const ClockRatio& clock, Told&& told) {
    if (command.command == dram::Command::Precharge) return;
    if (auto ended = add(command, clock)) told(*ended);
  }
  template <class Told>
  void finish(Told&& told) {
    for (std::optional<ChannelRun>& run : open_) {
      if (run) told(*run);
      run.reset();
    }
  }

 private:
  std::optional<ChannelRun> add(const dram::CommandRecord& command, const ClockRatio& clock);

  std::uint32_t pseudo_channels_;                          // a channel
  std::array<std::uint8_t, dram::kMaxBanks> pseudo_of_{};  // by bank
  std::uint64_t burst_ticks_;
  std::uint64_t refresh_ticks_;
  std::vector<std::optional<ChannelRun>> open_;  // by channel and pseudo-channel
  std::vector<std::uint64_t> activates_;         // likewise, since the open run began
};

}  // namespace plena
