// The memory controller: all channels of a memory behind one door.
//
// A source hands requests over in order, at clock edges; the controller answers with completions.
// Nothing here runs by itself: time moves when the caller says so, and only as far. Equal calls
// give equal results; a Controller can be copied, and the copy goes on from where it stands.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include "plena/dram/address_map.h"
#include "plena/dram/channel.h"
#include "plena/dram/ideal_memory.h"
#include "plena/dram/policy.h"
#include "plena/dram/preset.h"
#include "plena/dram/statistics.h"

namespace plena::dram {

struct DramSettings {
  DramPreset preset;
  std::uint32_t channels = 8;
  std::uint32_t interleave_bytes = 256;  // neighbouring bytes that share a channel
  MapKind map = MapKind::Mop;
  Policy policy = kOpenPolicy;
  RefreshMode refresh = RefreshMode::AllBank;
  std::uint32_t read_queue = 32;     // requests a channel
  std::uint32_t write_queue = 32;    // requests a channel
  std::uint64_t capacity_bytes = 0;  // 0: what the preset's channels hold
};

/// One burst of 32 bytes; the address is rounded down to its burst.
struct Request {
  std::uint64_t address = 0;  // below the capacity
  std::uint64_t id = 0;       // the caller's; comes back with the completion
  bool is_write = false;
};

class Controller {
 public:
  /// Fails when a setting makes no sense (not a power of two, an empty queue, ...).
  static Result<Controller> make(const DramSettings& settings);

  [[nodiscard]] const DramSettings& settings() const { return settings_; }
  [[nodiscard]] std::uint64_t capacity_bytes() const { return capacity_bytes_; }
  [[nodiscard]] Tick ticks_per_ck() const { return ticks_per_ck_; }
  /// 10⁹ bytes a second, all channels.
  [[nodiscard]] double peak_gbps() const;

  /// Offers a request at the clock edge `tick`, a multiple of ticks_per_ck() not before any
  /// earlier one. True: accepted. False: its channel's queue is full, and it stays the caller's.
  bool try_submit(const Request& request, Tick tick);

  /// Hands a request over as soon as its queue has room, at the earliest at the clock edge
  /// `earliest`; returns the edge at which it was accepted, or kNever if it never can be. No other
  /// request may be handed over at an edge before that.
  Tick submit(const Request& request, Tick earliest);

  /// After a refusal: lets the refusing channel go on until its queue has room for the request
  /// and returns the clock edge at which it can be accepted, or kNever if it never can be.
  Tick room_at(const Request& request);

  /// Everything up to and including `tick` happens in every channel.
  void advance_to(Tick tick);

  /// The next tick at which anything can happen without new requests; kNever if nothing ever.
  /// Refreshes happen for ever: with one of the refresh modes there is always a next event.
  [[nodiscard]] Tick next_event() const;

  /// Accepted requests whose completion is not known yet.
  [[nodiscard]] std::uint64_t unfinished() const;

  /// Lets time go on until every accepted request has a completion. Should requests be unfinished()
  /// afterwards, they never finish: a fault of the scheduler.
  void finish_all();

  /// Calls `take` with every completion that became known since the last call, a channel at a
  /// time, each channel's in the order of their last commands. `finished` may lie in the future.
  template <class Take>
  void take_completions(Take&& take) {
    for_each_channel([&](auto& channel) {
      for (const Completion& completion : channel.completions()) take(completion);
      channel.clear_completions();
    });
  }

  // A memory's whole state, so that what a run of requests does to one can be done to another at
  // once. The ideal memory has none.

  [[nodiscard]] BurstPlace place(std::uint64_t address) const { return map_.place(address); }
  /// Bytes from a burst to the one in its place of the next row, where neighbouring bytes share a
  /// channel only within a row.
  [[nodiscard]] std::uint64_t row_period() const { return map_.row_period(); }
  /// Whether states can be saved: there are banks, refreshed all at once or not at all.
  [[nodiscard]] bool has_states() const {
    return !settings_.preset.ideal && settings_.refresh != RefreshMode::PerBank &&
           std::uint64_t{settings_.interleave_bytes} * settings_.channels <= map_.row_period();
  }
  /// No request is left in any channel (channel.h).
  [[nodiscard]] bool at_rest() const;
  /// When the first refresh falls due; kNever if none ever does.
  [[nodiscard]] Tick refresh_due() const;
  /// The latest tick a channel has come to.
  [[nodiscard]] Tick now() const;
  /// From then on what was sent holds nothing up but for its bank.
  [[nodiscard]] Tick settled() const;
  /// How long an activate in the past matters to its bank.
  [[nodiscard]] Tick open_row_reach() const;
  /// Appends the state of every channel (channel_state.h) but for that of the banks; `names` by
  /// channel, empty so far.
  void save(const StateMoment& moment, std::vector<RowNames>& names, const NameRequest& name,
            StateWords& words) const;
  /// Appends the state of some banks, by channel.
  void save_banks(const std::vector<BankSet>& banks, Tick at, std::vector<RowNames>& names,
                  StateWords& words) const;
  /// By channel, the banks whose state decides what becomes of the requests that are here.
  void banks_at_work(std::vector<BankSet>& banks) const;
  /// The state of all banks, by kMaxBanks * channel + bank.
  void copy_banks(std::vector<BankState>& banks) const;
  void load(const StateMoment& moment, const std::vector<BankState>& banks, const FindRequest& find,
            StateReader& words);
  /// Adds up what all channels have counted, the latencies apart.
  [[nodiscard]] ActivityCounts activity() const;

  /// Of all channels together.
  [[nodiscard]] ChannelStatistics statistics() const;
  [[nodiscard]] std::vector<ChannelStatistics> statistics_by_channel() const;
  /// Requests in a channel's queue at the tick it has been advanced to.
  [[nodiscard]] std::uint32_t queued(std::uint32_t channel, bool is_write) const;

  /// Records every command from now on; null: none. The ideal memory has no commands.
  void set_log(CommandLog* log);

 private:
  explicit Controller(const DramSettings& settings, const AddressMap& map);

  template <class Do>
  auto with_channel(std::uint32_t number, Do&& act) {
    if (auto* hbm2 = std::get_if<std::vector<Channel<Hbm2>>>(&channels_)) [[likely]]
      return act((*hbm2)[number]);
    if (auto* hbm3 = std::get_if<std::vector<Channel<Hbm3>>>(&channels_))
      return act((*hbm3)[number]);
    return act(std::get<std::vector<IdealMemory>>(channels_).front());
  }
  template <class Do>
  void for_each_channel(Do&& act) {
    std::visit(
        [&](auto& channels) {
          for (auto& channel : channels) act(channel);
        },
        channels_);
  }
  template <class Do>
  void for_each_channel(Do&& act) const {
    std::visit(
        [&](const auto& channels) {
          for (const auto& channel : channels) act(channel);
        },
        channels_);
  }

  // The same for channels that have banks.
  template <class Do>
  void for_each_hbm_channel(Do&& act) const {
    std::visit(
        [&]<class C>(const std::vector<C>& channels) {
          if constexpr (!std::is_same_v<C, IdealMemory>)
            for (const C& channel : channels) act(channel);
        },
        channels_);
  }

  template <class Do>
  void for_each_hbm_channel(Do&& act) {
    std::visit(
        [&]<class C>(std::vector<C>& channels) {
          if constexpr (!std::is_same_v<C, IdealMemory>)
            for (C& channel : channels) act(channel);
        },
        channels_);
  }

  DramSettings settings_;
  AddressMap map_;
  std::uint64_t capacity_bytes_ = 0;
  Tick ticks_per_ck_ = 1;
  std::variant<std::vector<Channel<Hbm2>>, std::vector<Channel<Hbm3>>, std::vector<IdealMemory>>
      channels_;
};

inline bool Controller::try_submit(const Request& request, Tick tick) {
  const BurstPlace place = map_.place(request.address);
  return with_channel(place.channel, [&](auto& channel) {
    channel.advance_to(tick);
    return channel.submit(place, request.is_write, request.id);
  });
}

inline Tick Controller::submit(const Request& request, Tick earliest) {
  const BurstPlace place = map_.place(request.address);
  return with_channel(place.channel, [&](auto& channel) {
    channel.advance_to(earliest);
    while (!channel.submit(place, request.is_write, request.id)) {
      earliest = channel.advance_until_room(request.is_write);
      if (earliest == kNever) [[unlikely]]
        break;
    }
    return earliest;
  });
}

}  // namespace plena::dram
