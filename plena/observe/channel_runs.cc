#include "plena/observe/channel_runs.h"

#include <algorithm>
#include <utility>

namespace plena {

namespace {

// Reads that are further apart than this belong to different runs: a pause one would want to see.
constexpr Cycle kPause = 16;

}  // namespace

ChannelRuns::ChannelRuns(const dram::DramSettings& settings)
    : pseudo_channels_(settings.preset.organisation.pseudo_channels),
      burst_ticks_(
          static_cast<std::uint64_t>(settings.preset.timings.nBL * settings.preset.ticks_per_ck)),
      refresh_ticks_(
          static_cast<std::uint64_t>(settings.preset.timings.nRFC * settings.preset.ticks_per_ck)),
      open_(std::size_t{settings.channels} * pseudo_channels_),
      activates_(open_.size()) {
  // Bank groups are numbered through the channel, pseudo-channel highest (shape.h).
  const dram::Organisation& organisation = settings.preset.organisation;
  const std::uint32_t groups = organisation.stack_ids * organisation.bank_groups;
  for (std::uint32_t bank = 0; bank < organisation.banks(); ++bank)
    pseudo_of_[bank] = static_cast<std::uint8_t>(bank % (groups * pseudo_channels_) / groups);
}

std::optional<ChannelRun> ChannelRuns::add(const dram::CommandRecord& command,
                                           const ClockRatio& clock) {
  using dram::Command;
  const std::uint32_t pseudo_channel = pseudo_of_[command.bank];
  const std::size_t place = std::size_t{command.channel} * pseudo_channels_ + pseudo_channel;
  std::optional<ChannelRun>& open = open_[place];
  const bool refresh = command.command == Command::RefreshAll;
  if (command.command == Command::Activate) ++activates_[place];
  if (!refresh && !is_column(command.command)) return std::nullopt;

  const auto tick = static_cast<std::uint64_t>(command.tick);
  const Cycle begin = clock.cycle_at(tick);
  const Cycle end = clock.cycle_at(tick + (refresh ? refresh_ticks_ : burst_ticks_));
  const bool write =
      command.command == Command::Write || command.command == Command::WriteAutoPrecharge;
  const auto kind = refresh ? ChannelRun::Kind::Refresh
                    : write ? ChannelRun::Kind::Write
                            : ChannelRun::Kind::Read;
  const std::uint64_t activates = std::exchange(activates_[place], 0);
  if (open && open->kind == kind && !refresh && begin <= open->end + kPause) {
    open->end = end;
    ++open->bursts;
    open->activates += activates;
    return std::nullopt;
  }
  std::optional<ChannelRun> ended = std::exchange(
      open,
      ChannelRun{command.channel, pseudo_channel, kind, begin, end, refresh ? 0U : 1U, activates});
  // Cycles are coarser than ticks where the memory is the faster clock.
  if (ended) ended->end = std::min(ended->end, begin);
  return ended;
}

}  // namespace plena
