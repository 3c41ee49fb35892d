#include "plena/dram/controller.h"

#include <algorithm>

namespace plena::dram {
namespace {

constexpr std::uint32_t kMaxQueue = 4096;

Status check_queue(std::string_view which, std::uint32_t requests) {
  if (requests >= 1 && requests <= kMaxQueue) return {};
  return fail(ErrorCode::Settings, "HBM {} queue of {} requests: 1 to {} are possible", which,
              requests, kMaxQueue);
}

}  // namespace

Result<Controller> Controller::make(const DramSettings& settings) {
  auto map =
      AddressMap::make(settings.preset, settings.map, settings.channels, settings.interleave_bytes);
  if (!map) return forward_error(map);
  for (const auto& status :
       {check_queue("read", settings.read_queue), check_queue("write", settings.write_queue)})
    if (!status) return tl::unexpected<Error>(status.error());
  return Controller(settings, *map);
}

Controller::Controller(const DramSettings& settings, const AddressMap& map)
    : settings_(settings),
      map_(map),
      capacity_bytes_(settings.capacity_bytes != 0
                          ? settings.capacity_bytes
                          : settings.channels * settings.preset.organisation.channel_bytes()),
      ticks_per_ck_(settings.preset.ticks_per_ck) {
  const ChannelSettings channel{.preset = settings.preset,
                                .policy = settings.policy,
                                .refresh = settings.refresh,
                                .read_queue = settings.read_queue,
                                .write_queue = settings.write_queue};
  const auto fill = [&]<class S>(std::vector<Channel<S>>& channels) {
    channels.reserve(settings.channels);
    for (std::uint32_t number = 0; number < settings.channels; ++number)
      channels.emplace_back(channel, number);
  };
  if (settings.preset.ideal) {
    channels_.emplace<std::vector<IdealMemory>>().emplace_back(settings.preset, settings.channels);
  } else if (settings.preset.standard == Standard::Hbm2) {
    fill(channels_.emplace<std::vector<Channel<Hbm2>>>());
  } else {
    fill(channels_.emplace<std::vector<Channel<Hbm3>>>());
  }
}

double Controller::peak_gbps() const {
  return settings_.preset.peak_gbps() * settings_.channels;
}

Tick Controller::room_at(const Request& request) {
  return with_channel(map_.place(request.address).channel,
                      [&](auto& channel) { return channel.advance_until_room(request.is_write); });
}

void Controller::advance_to(Tick tick) {
  for_each_channel([&](auto& channel) { channel.advance_to(tick); });
}

Tick Controller::next_event() const {
  Tick next = kNever;
  for_each_channel([&](const auto& channel) { next = std::min(next, channel.next_event()); });
  return next;
}

std::uint64_t Controller::unfinished() const {
  std::uint64_t requests = 0;
  for_each_channel([&](const auto& channel) { requests += channel.unfinished(); });
  return requests;
}

void Controller::finish_all() {
  for_each_channel([](auto& channel) {
    while (channel.unfinished() != 0 && channel.next_event() != kNever)
      channel.advance_to(channel.next_event());
  });
}

bool Controller::at_rest() const {
  bool rests = !settings_.preset.ideal;
  for_each_hbm_channel([&](const auto& channel) { rests = rests && channel.at_rest(); });
  return rests;
}

Tick Controller::refresh_due() const {
  Tick due = kNever;
  for_each_hbm_channel([&](const auto& channel) { due = std::min(due, channel.refresh_due()); });
  return due;
}

Tick Controller::now() const {
  Tick now = 0;
  for_each_hbm_channel([&](const auto& channel) { now = std::max(now, channel.now()); });
  return now;
}

Tick Controller::settled() const {
  Tick settled = 0;
  for_each_hbm_channel(
      [&](const auto& channel) { settled = std::max(settled, channel.settled()); });
  return settled;
}

void Controller::save(const StateMoment& moment, std::vector<RowNames>& names,
                      const NameRequest& name, StateWords& words) const {
  std::size_t number = 0;
  for_each_hbm_channel(
      [&](const auto& channel) { channel.save(moment, names[number++], name, words); });
}

Tick Controller::open_row_reach() const {
  Tick reach = 0;
  for_each_hbm_channel([&](const auto& channel) { reach = channel.open_row_reach(); });
  return reach;
}

void Controller::save_banks(const std::vector<BankSet>& banks, Tick at,
                            std::vector<RowNames>& names, StateWords& words) const {
  std::size_t number = 0;
  for_each_hbm_channel([&](const auto& channel) {
    channel.save_banks(banks[number], at, names[number], words);
    ++number;
  });
}

void Controller::banks_at_work(std::vector<BankSet>& banks) const {
  banks.clear();
  for_each_hbm_channel([&](const auto& channel) { banks.push_back(channel.banks_at_work()); });
}

void Controller::load(const StateMoment& moment, const std::vector<BankState>& banks,
                      const FindRequest& find, StateReader& words) {
  const BankState* of_channel = banks.data();
  for_each_hbm_channel([&](auto& channel) {
    channel.load(moment, of_channel, find, words);
    of_channel += kMaxBanks;
  });
}

void Controller::copy_banks(std::vector<BankState>& banks) const {
  banks.resize(std::size_t{settings_.channels} * kMaxBanks);
  BankState* of_channel = banks.data();
  for_each_hbm_channel([&](const auto& channel) {
    channel.copy_banks(of_channel);
    of_channel += kMaxBanks;
  });
}

ActivityCounts Controller::activity() const {
  ActivityCounts all;
  for_each_hbm_channel([&](const auto& channel) { all += ActivityCounts(channel.statistics()); });
  return all;
}

ChannelStatistics Controller::statistics() const {
  ChannelStatistics all;
  for_each_channel([&](const auto& channel) { all.merge(channel.statistics()); });
  return all;
}

std::vector<ChannelStatistics> Controller::statistics_by_channel() const {
  std::vector<ChannelStatistics> each;
  for_each_channel([&](const auto& channel) { each.push_back(channel.statistics()); });
  return each;
}

std::uint32_t Controller::queued(std::uint32_t channel, bool is_write) const {
  return std::visit([&](const auto& channels) { return channels[channel].queued(is_write); },
                    channels_);
}

void Controller::set_log(CommandLog* log) {
  for_each_channel([&](auto& channel) { channel.set_log(log); });
}

}  // namespace plena::dram
