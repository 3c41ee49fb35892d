#include "plena/dram/device_timing.h"

#include <span>
#include <utility>

namespace plena::dram {

template <class S>
DeviceTiming<S>::DeviceTiming(const DramPreset& preset)
    : gaps_(preset), settling_(gaps_.activate_column) {
  fill_column_gaps();
  for (Ticks<S::kGroups>& ticks : column_ready_) ticks.fill(kShortLongAgo);
  row_ready_.fill(kShortLongAgo);
  activate_ready_.fill(kShortLongAgo);
  precharge_ready_.fill(kShortLongAgo);
  precharge_all_ready_.fill(kShortLongAgo);
  refresh_bank_ready_.fill(kShortLongAgo);
  activated_.fill(kShortLongAgo);
  for (Ticks<4>& ticks : last_activates_) ticks.fill(kShortLongAgo);
}

template <class S>
void DeviceTiming<S>::fill_column_gaps() {
  const unsigned groups = S::kGroupsPerPseudoChannel;
  for (unsigned from = 0; from < groups; ++from) {
    for (unsigned to = 0; to < groups; ++to) {
      const bool same_group = from == to;
      const bool same_stack = S::stack(from) == S::stack(to);
      for (const bool is_write : {false, true}) {
        column_gaps_[is_write][is_write][from][to] =
            same_group ? gaps_.column_column_group[is_write] : gaps_.column_column[is_write];
      }
      if (!same_stack) column_gaps_[0][0][from][to] = gaps_.read_read_stack;
      column_gaps_[0][1][from][to] = gaps_.read_write;
      column_gaps_[1][0][from][to] = same_group ? gaps_.write_read_group : gaps_.write_read;
    }
  }
}

template <class S>
void DeviceTiming<S>::shift_origin(ShortTick by) {
  const auto shift = [by](std::span<ShortTick> ticks) {
    for (ShortTick& tick : ticks) tick = std::max(tick - by, kShortLongAgo);
  };
  shift({&column_bus_free_, 1});
  shift({&row_bus_free_, 1});
  for (Ticks<S::kGroups>& ticks : column_ready_) shift(ticks);
  shift(row_ready_);
  shift(activate_ready_);
  shift(precharge_ready_);
  shift(precharge_all_ready_);
  shift(refresh_bank_ready_);
  shift(activated_);
  for (Ticks<4>& ticks : last_activates_) shift(ticks);
  settling_.shift_origin(by);
}

template <class S>
template <class Device, class Visit>
void DeviceTiming<S>::visit_shared(Device& device, Visit&& visit) {
  visit(device.column_bus_free_);
  visit(device.row_bus_free_);
  for (auto& ticks : device.column_ready_)
    for (auto& tick : ticks) visit(tick);
  for (auto* ticks : {&device.activate_ready_, &device.precharge_ready_,
                      &device.precharge_all_ready_, &device.refresh_bank_ready_})
    for (auto& tick : *ticks) visit(tick);
}

// One word where everything lies so far back that it holds nothing up any more.
template <class S>
void DeviceTiming<S>::save_shared(ShortTick at, StateWords& words) const {
  const std::size_t begin = words.size();
  bool busy = false;
  append_word(words, 1);
  visit_shared(*this, [&](ShortTick tick) {
    append_word(words, std::max(tick - at, 0));
    busy |= tick > at;
  });
  for (unsigned pseudo_channel = 0; pseudo_channel < kPseudoChannels; ++pseudo_channel) {
    for (const ShortTick tick : last_activates_[pseudo_channel]) {
      append_word(words, std::max(tick - at, -activate_reach()));
      busy |= tick > at - activate_reach();
    }
    const bool holds = last_activated_group_ready(pseudo_channel) > at;
    append_word(words,
                holds ? static_cast<std::int32_t>(last_activated_group_[pseudo_channel]) : 0);
  }
  if (busy) return;
  words.resize(begin);
  append_word(words, 0);
}

template <class S>
void DeviceTiming<S>::load_shared(ShortTick at, StateReader& words) {
  const bool busy = words.next() != 0;
  visit_shared(*this, [&](ShortTick& tick) { tick = busy ? at + words.next() : kShortLongAgo; });
  for (unsigned pseudo_channel = 0; pseudo_channel < kPseudoChannels; ++pseudo_channel) {
    for (ShortTick& tick : last_activates_[pseudo_channel])
      tick = busy ? at + words.next() : kShortLongAgo;
    last_activated_group_[pseudo_channel] = busy ? static_cast<unsigned>(words.next()) : 0;
  }
}

// A word for a closed bank, another two for an open one.
template <class S>
void DeviceTiming<S>::save_banks(BankSet banks, ShortTick at, RowNames& rows,
                                 StateWords& words) const {
  for (; banks != 0; banks &= banks - 1) {
    const unsigned bank = first_of(banks);
    const bool open = is_open(bank);
    append_word(words, 2 * std::max(row_ready_[bank] - at, 0) + (open ? 1 : 0));
    if (!open) continue;
    append_word(words, rows.of(bank, open_row_[bank]));
    append_word(words, std::max(activated_[bank] - at, -open_row_reach()));
  }
}

template <class S>
void DeviceTiming<S>::copy_banks(Tick origin, BankState* banks) const {
  for (unsigned bank = 0; bank < S::kBanks; ++bank) {
    banks[bank] = {.open_row = is_open(bank) ? open_row_[bank] : kNoRow,
                   .ready = origin + row_ready_[bank],
                   .activated = origin + activated_[bank]};
  }
}

template <class S>
void DeviceTiming<S>::load_banks(ShortTick at, Tick origin, const BankState* banks) {
  const auto within = [&](Tick tick) {
    return static_cast<ShortTick>(std::max<Tick>(tick - origin, kShortLongAgo));
  };
  std::array<std::pair<ShortTick, unsigned>, kMaxBanks> settling;
  std::size_t count = 0;
  open_banks_ = 0;
  for (unsigned bank = 0; bank < S::kBanks; ++bank) {
    row_ready_[bank] = within(banks[bank].ready);
    activated_[bank] = within(banks[bank].activated);
    if (banks[bank].open_row == kNoRow) continue;
    open_banks_ |= only(bank);
    open_row_[bank] = banks[bank].open_row;
    const ShortTick settled =
        activated_[bank] + std::max(gaps_.activate_column[0], gaps_.activate_column[1]);
    if (settled > at) settling[count++] = {activated_[bank], bank};
  }
  settling_ = SettlingBanks(gaps_.activate_column);
  std::sort(settling.begin(), settling.begin() + count);
  for (std::size_t i = 0; i < count; ++i) settling_.add(settling[i].second, settling[i].first);
}

template <class S>
ShortTick DeviceTiming<S>::settled() const {
  ShortTick latest = kShortLongAgo;
  visit_shared(*this, [&](ShortTick tick) { latest = std::max(latest, tick); });
  for (const Ticks<4>& ticks : last_activates_)
    for (const ShortTick tick : ticks) latest = std::max(latest, tick + activate_reach());
  return latest;
}

template <class S>
ShortTick DeviceTiming<S>::earliest(Command command, unsigned bank) const {
  const unsigned pseudo_channel = S::pseudo_channel(bank);
  switch (command) {
    case Command::Read:
    case Command::ReadAutoPrecharge:
      return S::on_rising_edge(std::max(column_bus_free_, earliest_column(false, bank)));
    case Command::Write:
    case Command::WriteAutoPrecharge:
      return S::on_rising_edge(std::max(column_bus_free_, earliest_column(true, bank)));
    case Command::Activate:
      return S::on_rising_edge(earliest_activate(bank));
    case Command::Precharge:
      return std::max({row_bus_free_, precharge_ready_[pseudo_channel],
                       is_open(bank) ? row_ready_[bank] : kShortLongAgo});
    case Command::PrechargeAll:
      return std::max(row_bus_free_, earliest_precharge_all(pseudo_channel));
    case Command::RefreshAll:
    case Command::ManageRefreshAll:
      return S::on_rising_edge(std::max(row_bus_free_, earliest_refresh_all(pseudo_channel)));
    case Command::RefreshBank:
    case Command::ManageRefreshBank:
      return S::on_rising_edge(std::max(row_bus_free_, earliest_refresh_bank(bank)));
  }
  return kShortNever;
}

template <class S>
void DeviceTiming<S>::send(Command command, unsigned bank, ShortTick tick, std::uint32_t row) {
  const unsigned pseudo_channel = S::pseudo_channel(bank);
  switch (command) {
    case Command::Read:
      return column(false, bank, tick);
    case Command::Write:
      return column(true, bank, tick);
    case Command::ReadAutoPrecharge:
      column(false, bank, tick);
      return close_after_column(bank);
    case Command::WriteAutoPrecharge:
      column(true, bank, tick);
      return close_after_column(bank);
    case Command::Activate:
      return activate(bank, row, tick);
    case Command::Precharge:
      return precharge(bank, tick);
    case Command::PrechargeAll:
      return precharge_all(pseudo_channel, tick);
    case Command::RefreshAll:
      return refresh_all(pseudo_channel, tick, gaps_.refresh_all_activate,
                         gaps_.refresh_all_precharge);
    case Command::ManageRefreshAll:
      return refresh_all(pseudo_channel, tick, gaps_.manage_all_activate,
                         gaps_.manage_all_precharge);
    case Command::RefreshBank:
      return refresh_bank(bank, tick, gaps_.refresh_bank_activate);
    case Command::ManageRefreshBank:
      return refresh_bank(bank, tick, gaps_.manage_bank_activate);
  }
}

template <class S>
ShortTick DeviceTiming<S>::earliest_activate(unsigned bank) const {
  const unsigned pseudo_channel = S::pseudo_channel(bank);
  const ShortTick ready =
      std::max({row_bus_free_, row_ready_[bank], activate_ready_[pseudo_channel]});
  if (S::group(bank) != last_activated_group_[pseudo_channel]) return ready;
  return std::max(ready, last_activated_group_ready(pseudo_channel));
}

template <class S>
ShortTick DeviceTiming<S>::earliest_precharge_all(unsigned pseudo_channel) const {
  ShortTick ready =
      std::max(precharge_ready_[pseudo_channel], precharge_all_ready_[pseudo_channel]);
  const BankSet covered = S::banks_of_pseudo_channel(pseudo_channel);
  for (BankSet open = open_banks_ & covered; open != 0; open &= open - 1)
    ready = std::max(ready, row_ready_[first_of(open)]);
  return ready;
}

// A refresh waits for every bank as an activate of it would, only longer by what the activate is
// the longer command.
template <class S>
ShortTick DeviceTiming<S>::earliest_refresh_all(unsigned pseudo_channel) const {
  ShortTick ready = kShortLongAgo;
  for (BankSet banks = S::banks_of_pseudo_channel(pseudo_channel); banks != 0; banks &= banks - 1)
    ready = std::max(ready, row_ready_[first_of(banks)]);
  return ready + gaps_.refresh_after_activate_rule;
}

template <class S>
ShortTick DeviceTiming<S>::earliest_refresh_bank(unsigned bank) const {
  return std::max(row_ready_[bank] + gaps_.refresh_after_activate_rule,
                  refresh_bank_ready_[S::pseudo_channel(bank)]);
}

// An automatic precharge happens as soon as a precharge of its own might have.
template <class S>
void DeviceTiming<S>::close_after_column(unsigned bank) {
  open_banks_ &= ~only(bank);
  row_ready_[bank] = std::max(row_ready_[bank] + gaps_.precharge_activate,
                              activated_[bank] + gaps_.activate_activate);
}

template <class S>
void DeviceTiming<S>::precharge_all(unsigned pseudo_channel, ShortTick tick) {
  const BankSet covered = S::banks_of_pseudo_channel(pseudo_channel);
  for (BankSet open = open_banks_ & covered; open != 0; open &= open - 1)
    precharge(first_of(open), tick);
  for (BankSet banks = covered; banks != 0; banks &= banks - 1) {
    ShortTick& ready = row_ready_[first_of(banks)];
    ready = std::max(ready, tick + gaps_.precharge_activate);
  }
  row_bus_free_ = tick + gaps_.row_bus_other;
  precharge_ready_[pseudo_channel] = tick + gaps_.precharge_precharge_channel;
}

template <class S>
void DeviceTiming<S>::refresh_all(unsigned pseudo_channel, ShortTick tick, ShortTick to_activate,
                                  ShortTick to_precharge) {
  row_bus_free_ = tick + gaps_.row_bus_other;
  precharge_all_ready_[pseudo_channel] = tick + to_precharge;
  activate_ready_[pseudo_channel] = std::max(activate_ready_[pseudo_channel], tick + to_activate);
}

template <class S>
void DeviceTiming<S>::refresh_bank(unsigned bank, ShortTick tick, ShortTick to_activate) {
  const unsigned pseudo_channel = S::pseudo_channel(bank);
  row_bus_free_ = tick + gaps_.row_bus_other;
  row_ready_[bank] = std::max(row_ready_[bank], tick + to_activate);
  activate_ready_[pseudo_channel] =
      std::max(activate_ready_[pseudo_channel], tick + gaps_.refresh_bank_activate_channel);
  refresh_bank_ready_[pseudo_channel] =
      std::max(refresh_bank_ready_[pseudo_channel], tick + gaps_.refresh_bank_refresh_bank_channel);
}

template class DeviceTiming<Hbm2>;
template class DeviceTiming<Hbm3>;

}  // namespace plena::dram
