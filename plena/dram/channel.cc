#include "plena/dram/channel.h"

#include <algorithm>

namespace plena::dram {
namespace {

// The smallest of some orders, given by bank.
template <class Order>
std::uint64_t oldest_of(BankSet banks, const Order& order) {
  std::uint64_t oldest = order(first_of(banks));
  for (banks &= banks - 1; banks != 0; banks &= banks - 1)
    oldest = std::min(oldest, order(first_of(banks)));
  return oldest;
}

// So many percent of a queue; with 99 hundredths more, the next whole number up.
std::uint32_t share_of(std::uint32_t queue, std::uint32_t percent, std::uint32_t hundredths = 0) {
  return (queue * percent + hundredths) / 100;
}

}  // namespace

void CompletionList::grow() {
  completions_.resize(2 * completions_.size() + 64);
}

template <class S>
Channel<S>::Channel(const ChannelSettings& settings, std::uint32_t number)
    : number_(number),
      drain_above_(share_of(settings.write_queue, settings.policy.turns.drain_above_percent)),
      drain_between_hits_above_(
          share_of(settings.write_queue, settings.policy.turns.drain_between_hits_above_percent)),
      drain_below_(share_of(settings.write_queue, settings.policy.turns.drain_below_percent, 99)),
      policy_(settings.policy),
      refresh_mode_(settings.refresh),
      queues_{RequestQueue(settings.read_queue), RequestQueue(settings.write_queue)},
      device_(settings.preset) {
  if (refresh_mode_ == RefreshMode::AllBank) refresh_due_ = device_.gaps().refresh_all_interval;
  if (refresh_mode_ == RefreshMode::PerBank) refresh_due_ = device_.gaps().refresh_bank_interval;
  check_mode_at(1);
}

template <class S>
Tick Channel<S>::advance_until_room(bool is_write) {
  const RequestQueue& requests = queue(is_write);
  if (now_ > kOriginReach) [[unlikely]]
    shift_origin();
  while (requests.full()) {
    if (next_wake() == kShortNever) [[unlikely]]
      return kNever;
    step(next_wake());
  }
  constexpr Tick kPerCk = S::kTicksPerCk;
  if constexpr (kPerCk > 1) advance_to((now() + kPerCk - 1) & -kPerCk);
  return now();
}

template <class S>
void Channel<S>::advance_far(Tick tick) {
  while (tick - origin_ > kOriginReach) {
    while (next_wake() <= kOriginReach) step(next_wake());
    now_ = std::max(now_, kOriginReach);
    shift_origin();
  }
}

// By an even number, so that rising edges stay odd ticks.
template <class S>
void Channel<S>::shift_origin() {
  const ShortTick by = now_ & ~1;
  origin_ += by;
  now_ -= by;
  device_.shift_origin(by);
  for (RequestQueue& requests : queues_) requests.shift_origin(by);
  for (PendingRequest& request : activated_) request.shift_origin(by);
  for (ShortTick* wake : {&column_wake_, &row_wake_, &refresh_due_, &mode_check_})
    if (*wake != kShortNever) *wake -= by;
}

template <class S>
bool Channel<S>::absorb(bool is_write, std::uint64_t id) {
  ++unfinished_;
  ++counts(is_write).from_queue;
  finish({.id = id, .accepted = now_}, is_write, now_ + 1);
  return true;
}

template <class S>
void Channel<S>::housekeeping(ShortTick tick) {
  if (refresh_due_ <= tick) add_due_refreshes(tick);
  if (mode_check_ <= tick) {
    mode_check_ = kShortNever;
    if (!stopped() && mode_would_change()) change_mode(tick);
  }
}

template <class S>
BankSet Channel<S>::wanted_write_banks(bool drain) const {
  BankSet writes = drain ? ~BankSet{0} : 0;
  if (!policy_.turns.split) return writes;
  for (unsigned pseudo_channel = 0; pseudo_channel < kPseudoChannels; ++pseudo_channel) {
    const BankSet all = S::banks_of_pseudo_channel(pseudo_channel);
    if ((queue(drain).waiting() & all) == 0 && (queue(!drain).waiting() & all) != 0) writes ^= all;
  }
  return writes;
}

template <class S>
void Channel<S>::change_mode(ShortTick tick) {
  const bool drain = wants_drain();
  if (drain != draining_) served_in_turn_ = 0;
  draining_ = drain;
  write_banks_ = wanted_write_banks(draining_);
  column_wake_ = std::min(column_wake_, tick);
  row_wake_ = std::min(row_wake_, tick);
}

template <class S>
template <bool kWrite>
[[gnu::always_inline]] inline void Channel<S>::send_column(PendingRequest& request,
                                                           ShortTick tick) {
  const unsigned bank = request.bank;
  if (!request.counted) ++counts(kWrite).rows.hits;
  device_.column(kWrite, bank, tick);
  record(kWrite ? Command::Write : Command::Read, bank, tick, request.row, request.column);
  finish(request, kWrite, kWrite ? tick : tick + device_.gaps().read_latency);
  column_wake_ = next_column_after_send();
  // A refresh or precharge that waited for this request may be due.
  if (!refreshes_.empty()) row_wake_ = std::min(row_wake_, tick + 1);
  if ((queue(serves_writes(bank)).misses() & only(bank)) != 0)
    row_wake_ = std::min(row_wake_, device_.earliest_row(bank));
}

template <class S>
bool Channel<S>::send_activated(ShortTick tick) {
  BankSet ready = 0;
  if (activated_banks_[0] != 0) ready |= activated_banks_[0] & device_.column_ready(false, tick);
  if (activated_banks_[1] != 0) ready |= activated_banks_[1] & device_.column_ready(true, tick);
  if (ready == 0) return false;
  const unsigned bank = oldest_activated(ready);
  PendingRequest& request = activated_[bank];
  activated_banks_[request.is_write] &= ~only(bank);
  request.is_write ? send_column<true>(request, tick) : send_column<false>(request, tick);
  return true;
}

// Of requests accepted together, the one whose row was opened first.
template <class S>
unsigned Channel<S>::oldest_activated(BankSet banks) const {
  unsigned oldest = first_of(banks);
  for (banks &= banks - 1; banks != 0; banks &= banks - 1) {
    const unsigned bank = first_of(banks);
    const ShortTick younger_by = activated_[oldest].accepted - activated_[bank].accepted;
    if (younger_by > 0 || (younger_by == 0 && device_.activated(bank) < device_.activated(oldest)))
      oldest = bank;
  }
  return oldest;
}

// The order of the oldest request with an open row whose column command is ready, or the highest
// number.
template <class S>
template <bool kWrite>
[[gnu::always_inline]] inline std::uint64_t Channel<S>::oldest_ready_hit(ShortTick tick) {
  const RequestQueue& requests = queue(kWrite);
  const BankSet served = kWrite ? write_banks_ : ~write_banks_;
  const BankSet hits = requests.hits() & served & ~stopped_hits();
  if (hits == 0) return kNoOrder;
  const BankSet ready = hits & device_.column_ready(kWrite, tick);
  if (ready == 0) return kNoOrder;
  return oldest_of(ready, [&](unsigned bank) { return requests.hit_order(bank); });
}

template <class S>
template <bool kWrite>
[[gnu::always_inline]] inline void Channel<S>::send_hit_of(unsigned bank, ShortTick tick) {
  RequestQueue& requests = queue(kWrite);
  PendingRequest& request = requests.hit(bank);
  leave_queue(request, kWrite, tick);
  requests.drop_hit(bank, device_.open_row(bank));
  send_column<kWrite>(request, tick);
}

template <class S>
[[gnu::always_inline]] inline bool Channel<S>::send_hit(ShortTick tick) {
  const std::uint64_t read = oldest_ready_hit<false>(tick);
  const std::uint64_t write = oldest_ready_hit<true>(tick);
  if (read < write) {
    send_hit_of<false>(bank_of_order(read), tick);
  } else if (write != kNoOrder) {
    send_hit_of<true>(bank_of_order(write), tick);
  } else {
    return false;
  }
  // The row slot of this tick looks at the mode again.
  if (mode_would_change()) {
    change_mode(tick);
    column_wake_ = device_.column_bus_free();
  }
  return true;
}

// Not before this tick; exact but for banks whose row is still being opened.
template <class S>
ShortTick Channel<S>::next_column() const {
  ShortTick next = kShortNever;
  for (const bool is_write : {false, true}) {
    BankSet banks = activated_banks_[is_write];
    banks |= queue(is_write).hits() & (is_write ? write_banks_ : ~write_banks_) & ~stopped_hits();
    if (banks == 0) continue;
    const BankSet settling = device_.settling(is_write);
    if ((banks & settling) != 0) next = std::min(next, device_.next_settled(is_write));
    for (banks &= ~settling; banks != 0; banks &= banks - 1)
      next = std::min(next, device_.earliest_column(is_write, first_of(banks)));
  }
  return next;
}

// The same, quickly, after a column command: rows that were just opened are all there may be.
template <class S>
[[gnu::always_inline]] inline ShortTick Channel<S>::next_column_after_send() const {
  const ShortTick free = device_.column_bus_free();
  if ((queue(false).hits() | queue(true).hits()) != 0) return free;
  ShortTick next = kShortNever;
  for (const bool is_write : {false, true}) {
    const BankSet banks = activated_banks_[is_write];
    if (banks == 0) continue;
    if ((banks & ~device_.settling(is_write)) != 0) return free;
    next = std::min(next, device_.next_settled(is_write));
  }
  return std::max(next, free);
}

template <class S>
[[gnu::always_inline]] inline void Channel<S>::column_slot(ShortTick tick) {
  const ShortTick possible = S::on_rising_edge(std::max(tick, device_.column_bus_free()));
  if (possible > tick) {
    column_wake_ = possible;
    return;
  }
  if ((activated_banks_[0] | activated_banks_[1]) != 0 && send_activated(tick)) return;
  if (send_hit(tick)) return;
  column_wake_ = next_column();
}

// One tick, in the order of the reference controller: refreshes fall due, the column slot, the
// row slot.
template <class S>
void Channel<S>::step(ShortTick tick) {
  now_ = tick;
  if (std::min(refresh_due_, mode_check_) <= tick) [[unlikely]]
    housekeeping(tick);
  if (column_wake_ <= tick) column_slot(tick);
  if (row_wake_ <= tick) row_slot(tick);
}

template <class S>
void Channel<S>::row_slot(ShortTick tick) {
  if (device_.row_bus_free() > tick) {
    row_wake_ = device_.row_bus_free();
    return;
  }
  row_wake_ = kShortNever;
  const bool sent =
      (!refreshes_.empty() && send_refresh(tick)) || (!stopped() && send_row_command(tick));
  if (sent) row_wake_ = device_.row_bus_free();
}

// Sends the row command of the oldest request whose row command is ready; else notes when one may
// be.
template <class S>
bool Channel<S>::send_row_command(ShortTick tick) {
  const BankSet waiting = in_turn(queue(false).waiting(), queue(true).waiting());
  const BankSet misses = in_turn(queue(false).misses(), queue(true).misses());
  const BankSet closed = waiting & ~device_.open_banks() & ~stopped_banks_;
  const BankSet open = misses & ~(activated_banks_[0] | activated_banks_[1]) & ~stopped_banks_;
  if ((closed | open) == 0) return false;
  const BankSet in_time = device_.row_ready(tick);
  BankSet ready = (activates(tick, closed) | precharges(tick, open)) & in_time;
  if (policy_.row_hold == RowHold::Older) {
    const BankSet contested = ready & open & in_turn(queue(false).hits(), queue(true).hits());
    if (contested != 0) ready &= ~held_open(contested);
  }
  if (ready == 0) {
    for (BankSet later = (closed | open) & ~in_time; later != 0; later &= later - 1)
      row_wake_ = std::min(row_wake_, device_.earliest_row(first_of(later)));
    return false;
  }
  const unsigned bank = bank_of_order(oldest_row(ready));
  if (device_.is_open(bank)) {
    precharge(bank, tick);
  } else {
    activate(bank, tick);
  }
  return true;
}

template <class S>
std::uint64_t Channel<S>::oldest_row(BankSet banks) const {
  const auto read_order = [&](unsigned bank) { return queue(false).row_order(bank); };
  if ((banks & write_banks_) == 0) return oldest_of(banks, read_order);
  std::uint64_t oldest = kNoOrder;
  for (const bool is_write : {false, true}) {
    const BankSet served = banks & (is_write ? write_banks_ : ~write_banks_);
    if (served == 0) continue;
    const RequestQueue& requests = queue(is_write);
    oldest = std::min(oldest,
                      oldest_of(served, [&](unsigned bank) { return requests.row_order(bank); }));
  }
  return oldest;
}

// Of the closed banks those that nothing but themselves keeps from being activated at `tick`.
template <class S>
BankSet Channel<S>::activates(ShortTick tick, BankSet closed) {
  for (unsigned pseudo_channel = 0; pseudo_channel < kPseudoChannels; ++pseudo_channel) {
    const BankSet all = S::banks_of_pseudo_channel(pseudo_channel);
    if ((closed & all) == 0) continue;
    const ShortTick ready =
        S::on_rising_edge(std::max(tick, device_.activate_ready(pseudo_channel)));
    if (ready > tick) {
      closed &= ~all;
      row_wake_ = std::min(row_wake_, ready);
      continue;
    }
    const ShortTick group_ready =
        S::on_rising_edge(device_.last_activated_group_ready(pseudo_channel));
    if (group_ready > tick) {
      closed &= ~S::banks_of(GroupSet{1} << device_.last_activated_group(pseudo_channel));
      row_wake_ = std::min(row_wake_, group_ready);
    }
  }
  return closed;
}

// Of the open banks those that nothing but themselves keeps from being precharged at `tick`.
template <class S>
BankSet Channel<S>::precharges(ShortTick tick, BankSet open) {
  for (unsigned pseudo_channel = 0; pseudo_channel < kPseudoChannels; ++pseudo_channel) {
    const BankSet all = S::banks_of_pseudo_channel(pseudo_channel);
    const ShortTick ready = device_.precharge_ready(pseudo_channel);
    if (ready <= tick || (open & all) == 0) continue;
    open &= ~all;
    row_wake_ = std::min(row_wake_, ready);
  }
  return open;
}

// Of open banks with a hit and a miss, those that the hit, accepted no later, keeps open.
template <class S>
BankSet Channel<S>::held_open(BankSet banks) const {
  BankSet held = 0;
  for (; banks != 0; banks &= banks - 1) {
    const unsigned bank = first_of(banks);
    const RequestQueue& requests = queue(serves_writes(bank));
    if (requests.hit(bank).accepted <= requests.miss(bank).accepted) held |= only(bank);
  }
  return held;
}

template <class S>
void Channel<S>::activate(unsigned bank, ShortTick tick) {
  const bool is_write = serves_writes(bank);
  RequestQueue& requests = queue(is_write);
  PendingRequest& request = activated_[bank];
  request = requests.oldest(bank);
  requests.drop_oldest(bank);
  leave_queue(request, is_write, tick);
  if (!request.counted) ++counts(is_write).rows.misses;
  request.counted = true;
  activated_banks_[is_write] |= only(bank);
  device_.activate(bank, request.row, tick);
  record(Command::Activate, bank, tick, request.row, request.column);
  for (RequestQueue& both : queues_) both.opened(bank, request.row);
  column_wake_ = std::min(column_wake_, device_.earliest_column(is_write, bank));
  check_mode_at(tick + 1);
}

template <class S>
void Channel<S>::precharge(unsigned bank, ShortTick tick) {
  PendingRequest& request = queue(serves_writes(bank)).miss(bank);
  if (!request.counted) ++counts(request.is_write).rows.conflicts;
  request.counted = true;
  record(Command::Precharge, bank, tick);
  device_.precharge(bank, tick);
  for (RequestQueue& both : queues_) both.closed(bank);
}

template <class S>
void Channel<S>::add_due_refreshes(ShortTick tick) {
  row_wake_ = tick;
  if (refresh_mode_ == RefreshMode::AllBank) {
    for (unsigned pseudo_channel = 0; pseudo_channel < kPseudoChannels; ++pseudo_channel)
      add_refresh(S::bank(pseudo_channel, 0), S::banks_of_pseudo_channel(pseudo_channel));
    refresh_due_ += device_.gaps().refresh_all_interval;
    return;
  }
  const unsigned half = S::kBanksPerPseudoChannel;
  if (S::kTicksPerCk == 1) {
    // HBM2: the banks of the one pseudo-channel, then those of the other.
    const unsigned bank = S::bank(refresh_number_ / half, refresh_number_ % half);
    add_refresh(bank, only(bank));
    refresh_number_ = (refresh_number_ + 1) % (2 * half);
    refresh_due_ += device_.gaps().refresh_bank_interval;
    return;
  }
  // HBM3: the same bank of both pseudo-channels, the second a tick later.
  const unsigned bank = S::bank(refresh_second_half_ ? 1 : 0, refresh_number_);
  add_refresh(bank, only(bank));
  if (refresh_second_half_) refresh_number_ = (refresh_number_ + 1) % half;
  refresh_due_ += refresh_second_half_ ? device_.gaps().refresh_bank_interval - 1 : 1;
  refresh_second_half_ = !refresh_second_half_;
}

template <class S>
void Channel<S>::add_refresh(unsigned bank, BankSet covered) {
  refreshes_.push_back({.bank = bank, .covered = covered, .due = order_of(next_number_, 0)});
  update_stopped_banks();
}

template <class S>
void Channel<S>::update_stopped_banks() {
  stopped_banks_ = 0;
  for (const PendingRefresh& refresh : refreshes_) stopped_banks_ |= refresh.covered;
  if (policy_.refresh_stop == RefreshStop::Channel && !refreshes_.empty())
    stopped_banks_ = ~BankSet{0};
}

// Banks with a hit in turn that was accepted before the refresh fell due.
template <class S>
BankSet Channel<S>::hits_before(const PendingRefresh& refresh) const {
  BankSet before = 0;
  for (const bool is_write : {false, true}) {
    const RequestQueue& requests = queue(is_write);
    BankSet hits = requests.hits() & (is_write ? write_banks_ : ~write_banks_) & refresh.covered;
    for (; hits != 0; hits &= hits - 1) {
      const unsigned bank = first_of(hits);
      if (requests.hit_order(bank) < refresh.due) before |= only(bank);
    }
  }
  return before;
}

// Banks whose hits wait for a pending refresh.
template <class S>
BankSet Channel<S>::find_stopped_hits() const {
  BankSet stopped = stopped_banks_;
  if (policy_.refresh_after_hits)
    for (const PendingRefresh& refresh : refreshes_) stopped &= ~hits_before(refresh);
  return stopped;
}

template <class S>
bool Channel<S>::send_refresh(ShortTick tick) {
  const std::size_t tried = policy_.refresh_stop == RefreshStop::Channel ? 1 : refreshes_.size();
  for (std::size_t index = 0; index < tried; ++index)
    if (try_refresh(index, tick)) return true;
  return false;
}

// Sends the next command of a pending refresh if it is ready, else notes when it may be.
template <class S>
bool Channel<S>::try_refresh(std::size_t index, ShortTick tick) {
  const PendingRefresh refresh = refreshes_[index];
  const bool all = refresh_mode_ == RefreshMode::AllBank;
  const BankSet open = device_.open_banks() & refresh.covered;
  Command command = all ? Command::RefreshAll : Command::RefreshBank;
  if (open != 0) {
    // Woken again by the column command of a request it waits for.
    if (((activated_banks_[0] | activated_banks_[1]) & refresh.covered) != 0) return false;
    if (policy_.refresh_after_hits && hits_before(refresh) != 0) return false;
    command = all ? Command::PrechargeAll : Command::Precharge;
  }
  ShortTick ready = std::max(tick, device_.earliest(command, refresh.bank));
  if (open == 0) ready = S::on_rising_edge(ready);
  if (ready > tick) {
    row_wake_ = std::min(row_wake_, ready);
    return false;
  }
  record(command, refresh.bank, tick);
  device_.send(command, refresh.bank, tick);
  if (open != 0) {
    for (BankSet closed = open; closed != 0; closed &= closed - 1)
      for (RequestQueue& requests : queues_) requests.closed(first_of(closed));
    return true;
  }
  refreshes_.erase(refreshes_.begin() + static_cast<std::ptrdiff_t>(index));
  update_stopped_banks();
  column_wake_ = std::min(column_wake_, tick + 1);
  check_mode_at(tick + 1);
  return true;
}

template <class S>
void Channel<S>::append_to_log(Command command, unsigned bank, ShortTick tick, std::uint32_t row,
                               std::uint8_t column) {
  log_->push_back({.tick = origin_ + tick,
                   .channel = number_,
                   .command = command,
                   .bank = static_cast<std::uint8_t>(bank),
                   .column = column,
                   .row = row});
}

template class Channel<Hbm2>;
template class Channel<Hbm3>;

}  // namespace plena::dram
