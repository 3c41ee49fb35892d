// What the devices behind one channel allow: which rows are open and from which tick on each
// command may be sent. It knows every rule of constraints.tsv and nothing of requests.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "plena/dram/channel_state.h"
#include "plena/dram/command.h"
#include "plena/dram/gaps.h"
#include "plena/dram/shape.h"
#include "plena/dram/short_ticks.h"

namespace plena::dram {

/// Banks whose row was opened so recently that its columns cannot be read, or written, yet. Rows
/// become reachable in the order in which they were opened, all after the same time.
class SettlingBanks {
 public:
  explicit SettlingBanks(const std::array<ShortTick, 2>& activate_column)
      : activate_column_(activate_column) {}

  void add(unsigned bank, ShortTick activated) {
    drop_until(false, activated);
    drop_until(true, activated);
    opened_[end_ % kMaxBanks] = {activated, bank};
    ++end_;
    banks_[0] |= only(bank);
    banks_[1] |= only(bank);
  }
  /// At `tick`, which never goes back.
  [[nodiscard]] BankSet banks(bool is_write, ShortTick tick) {
    drop_until(is_write, tick);
    return banks_[is_write];
  }
  [[nodiscard]] BankSet banks(bool is_write) const { return banks_[is_write]; }
  /// When the next one can be reached.
  [[nodiscard]] ShortTick next(bool is_write) const {
    return opened_[first_[is_write] % kMaxBanks].tick + activate_column_[is_write];
  }
  void shift_origin(ShortTick by) {
    for (Opened& one : opened_) one.tick = std::max(one.tick - by, kShortLongAgo);
  }

 private:
  struct Opened {
    ShortTick tick = kShortLongAgo;
    unsigned bank = 0;
  };

  void drop_until(bool is_write, ShortTick tick) {
    unsigned& first = first_[is_write];
    for (; first != end_; ++first) {
      const Opened& one = opened_[first % kMaxBanks];
      if (one.tick + activate_column_[is_write] > tick) break;
      banks_[is_write] &= ~only(one.bank);
    }
  }

  std::array<ShortTick, 2> activate_column_;  // by is_write
  std::array<Opened, kMaxBanks> opened_{};    // a ring; numbers count on for ever
  std::array<unsigned, 2> first_{};           // not reachable yet, by is_write
  unsigned end_ = 0;
  std::array<BankSet, 2> banks_{};
};

template <class S>
class DeviceTiming {
 public:
  explicit DeviceTiming(const DramPreset& preset);

  [[nodiscard]] const Gaps& gaps() const { return gaps_; }

  /// Banks with an open row.
  [[nodiscard]] BankSet open_banks() const { return open_banks_; }
  [[nodiscard]] bool is_open(unsigned bank) const { return (open_banks_ >> bank & 1) != 0; }
  /// The row a bank has open; meaningless for a closed bank.
  [[nodiscard]] std::uint32_t open_row(unsigned bank) const { return open_row_[bank]; }

  /// The first tick at which `command` may be sent, as far as earlier commands are concerned.
  /// The bank's state must suit the command: a row command other than a precharge wants a closed
  /// bank (a refresh of all, closed banks), the others an open one.
  [[nodiscard]] ShortTick earliest(Command command, unsigned bank) const;

  /// Sends a command at a tick that is not before earliest(). `row` matters for Activate only.
  void send(Command command, unsigned bank, ShortTick tick, std::uint32_t row = 0);

  /// From now on ticks count from `by` later.
  void shift_origin(ShortTick by);

  // The state as it is at a tick `at` (channel_state.h). Equal states act alike.

  /// What banks share.
  void save_shared(ShortTick at, StateWords& words) const;
  void load_shared(ShortTick at, StateReader& words);
  void save_banks(BankSet banks, ShortTick at, RowNames& rows, StateWords& words) const;
  /// By bank; ticks count from `origin` in here.
  void copy_banks(Tick origin, BankState* banks) const;
  void load_banks(ShortTick at, Tick origin, const BankState* banks);
  /// From then on nothing that banks share holds anything up.
  [[nodiscard]] ShortTick settled() const;
  /// How long an activate in the past matters to its bank.
  [[nodiscard]] ShortTick open_row_reach() const {
    return std::max({gaps_.activate_activate - gaps_.precharge_activate, gaps_.activate_column[0],
                     gaps_.activate_column[1]});
  }

  // The same for the commands a scheduler weighs all the time, in parts: a command may be sent
  // when all its parts allow it.

  [[nodiscard]] ShortTick column_bus_free() const { return column_bus_free_; }
  [[nodiscard]] ShortTick row_bus_free() const { return row_bus_free_; }

  /// Open banks whose columns can be read or written at `tick`, the column bus apart; closed
  /// banks may be among them. `tick` never goes back.
  [[nodiscard]] BankSet column_ready(bool is_write, ShortTick tick) {
    const auto groups =
        static_cast<GroupSet>(not_after<S::kGroups>(column_ready_[is_write].data(), tick));
    return S::banks_of(groups) & ~settling_.banks(is_write, tick);
  }
  /// Banks whose rows were still being opened when column_ready() was last called.
  [[nodiscard]] BankSet settling(bool is_write) const { return settling_.banks(is_write); }
  /// When the first of them, there being one, is open.
  [[nodiscard]] ShortTick next_settled(bool is_write) const { return settling_.next(is_write); }

  /// The first tick at which column_ready() holds for one bank.
  [[nodiscard]] ShortTick earliest_column(bool is_write, unsigned bank) const {
    return std::max(activated_[bank] + gaps_.activate_column[is_write],
                    column_ready_[is_write][S::group(bank)]);
  }

  /// Banks that are closed and may be activated, or are open and may be precharged, at `tick` as
  /// far as the bank itself is concerned.
  [[nodiscard]] BankSet row_ready(ShortTick tick) const {
    return not_after<S::kBanks>(row_ready_.data(), tick);
  }
  [[nodiscard]] ShortTick earliest_row(unsigned bank) const { return row_ready_[bank]; }

  /// What else an activate waits for: any of the pseudo-channel, and one of the group activated
  /// last (which is as far as a long gap between activates reaches).
  [[nodiscard]] ShortTick activate_ready(unsigned pseudo_channel) const {
    return activate_ready_[pseudo_channel];
  }
  [[nodiscard]] unsigned last_activated_group(unsigned pseudo_channel) const {
    return last_activated_group_[pseudo_channel];
  }
  [[nodiscard]] ShortTick last_activated_group_ready(unsigned pseudo_channel) const {
    return last_activates_[pseudo_channel][3] + gaps_.activate_activate_group;
  }
  /// What else a precharge waits for.
  [[nodiscard]] ShortTick precharge_ready(unsigned pseudo_channel) const {
    return precharge_ready_[pseudo_channel];
  }
  /// When a row was opened whose request still waits, however long ago: its order among others.
  void set_activated(unsigned bank, ShortTick tick) { activated_[bank] = tick; }
  /// When the row of an open bank was opened.
  [[nodiscard]] ShortTick activated(unsigned bank) const { return activated_[bank]; }

  void activate(unsigned bank, std::uint32_t row, ShortTick tick);
  void precharge(unsigned bank, ShortTick tick);
  void column(bool is_write, unsigned bank, ShortTick tick);

 private:
  template <std::size_t kCount>
  using Ticks = std::array<ShortTick, kCount>;

  // From a column command in one group to the next in another of the pseudo-channel:
  // [next is_write][group][other group].
  using ColumnGaps =
      std::array<std::array<Ticks<S::kGroupsPerPseudoChannel>, S::kGroupsPerPseudoChannel>, 2>;

  // Every shared tick before which something may not be sent.
  template <class Device, class Visit>
  static void visit_shared(Device& device, Visit&& visit);
  [[nodiscard]] ShortTick activate_reach() const {
    return std::max(gaps_.four_activates, gaps_.activate_activate_group);
  }
  void fill_column_gaps();
  [[nodiscard]] ShortTick earliest_activate(unsigned bank) const;
  [[nodiscard]] ShortTick earliest_precharge_all(unsigned pseudo_channel) const;
  [[nodiscard]] ShortTick earliest_refresh_all(unsigned pseudo_channel) const;
  [[nodiscard]] ShortTick earliest_refresh_bank(unsigned bank) const;

  void close_after_column(unsigned bank);
  void precharge_all(unsigned pseudo_channel, ShortTick tick);
  void refresh_all(unsigned pseudo_channel, ShortTick tick, ShortTick to_activate,
                   ShortTick to_precharge);
  void refresh_bank(unsigned bank, ShortTick tick, ShortTick to_activate);

  Gaps gaps_;
  alignas(16) std::array<ColumnGaps, 2> column_gaps_{};  // by is_write of the first

  BankSet open_banks_ = 0;
  std::array<std::uint32_t, S::kBanks> open_row_{};
  SettlingBanks settling_;

  // First ticks at which something may be sent again.
  ShortTick column_bus_free_ = 0;
  ShortTick row_bus_free_ = 0;
  alignas(16) std::array<Ticks<S::kGroups>, 2> column_ready_;  // by is_write
  alignas(16) Ticks<S::kBanks> row_ready_;
  Ticks<kPseudoChannels> activate_ready_;
  Ticks<kPseudoChannels> precharge_ready_;
  Ticks<kPseudoChannels> precharge_all_ready_;
  Ticks<kPseudoChannels> refresh_bank_ready_;
  // When something was sent.
  Ticks<S::kBanks> activated_;
  std::array<Ticks<4>, kPseudoChannels> last_activates_;  // oldest first
  std::array<unsigned, kPseudoChannels> last_activated_group_{};
};

template <class S>
[[gnu::always_inline]] inline void DeviceTiming<S>::column(bool is_write, unsigned bank,
                                                           ShortTick tick) {
  column_bus_free_ = tick + gaps_.column_bus;
  constexpr unsigned kGroups = S::kGroupsPerPseudoChannel;
  const unsigned group = S::group(bank);
  const unsigned first = group - group % kGroups;
  const ColumnGaps& gaps = column_gaps_[is_write];
  for (const bool next : {false, true})
    raise_to<kGroups>(column_ready_[next].data() + first, tick, gaps[next][group - first].data());
  row_ready_[bank] = std::max(row_ready_[bank], tick + gaps_.column_precharge[is_write]);
}

template <class S>
[[gnu::always_inline]] inline void DeviceTiming<S>::activate(unsigned bank, std::uint32_t row,
                                                             ShortTick tick) {
  const unsigned pseudo_channel = S::pseudo_channel(bank);
  open_banks_ |= only(bank);
  open_row_[bank] = row;
  activated_[bank] = tick;
  settling_.add(bank, tick);
  row_bus_free_ = tick + gaps_.row_bus_activate;
  row_ready_[bank] = tick + gaps_.activate_precharge;
  last_activated_group_[pseudo_channel] = S::group(bank);
  Ticks<4>& last = last_activates_[pseudo_channel];
  last = {last[1], last[2], last[3], tick};
  activate_ready_[pseudo_channel] =
      std::max(tick + gaps_.activate_activate_channel, last[0] + gaps_.four_activates);
  refresh_bank_ready_[pseudo_channel] =
      std::max(refresh_bank_ready_[pseudo_channel], tick + gaps_.activate_refresh_bank_channel);
}

template <class S>
inline void DeviceTiming<S>::precharge(unsigned bank, ShortTick tick) {
  open_banks_ &= ~only(bank);
  row_bus_free_ = tick + gaps_.row_bus_other;
  row_ready_[bank] =
      std::max(tick + gaps_.precharge_activate, activated_[bank] + gaps_.activate_activate);
  precharge_ready_[S::pseudo_channel(bank)] = tick + gaps_.precharge_precharge_channel;
}

extern template class DeviceTiming<Hbm2>;
extern template class DeviceTiming<Hbm3>;

}  // namespace plena::dram
