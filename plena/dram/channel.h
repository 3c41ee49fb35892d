// One channel of the memory: its two queues, its refreshes and its scheduler.
//
// It does not tick. It keeps the earliest tick at which its column slot and its row slot can have
// anything to do and goes from one such tick to the next; between them nothing can happen. What
// the slots choose is described at policy.h and, for the reference policies, tick by tick in the
// README of the public reference measurements.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "plena/dram/address_map.h"
#include "plena/dram/command.h"
#include "plena/dram/device_timing.h"
#include "plena/dram/policy.h"
#include "plena/dram/request_queue.h"
#include "plena/dram/statistics.h"

namespace plena::dram {

/// A request that is done, or will be at a tick already certain: a read when its last datum is
/// there, a write when its command is sent.
struct Completion {
  std::uint64_t id = 0;
  Tick accepted = 0;
  Tick finished = 0;
  bool is_write = false;

  friend bool operator==(const Completion&, const Completion&) = default;
};

/// Completions nobody has taken yet. A vector that never shrinks, whose growth stays out of the
/// way.
class CompletionList {
 public:
  Completion& add() {
    if (count_ == completions_.size()) [[unlikely]]
      grow();
    return completions_[count_++];
  }
  [[nodiscard]] std::span<const Completion> all() const { return {completions_.data(), count_}; }
  void clear() { count_ = 0; }

 private:
  void grow();

  std::vector<Completion> completions_;
  std::size_t count_ = 0;
};

struct ChannelSettings {
  DramPreset preset;
  Policy policy;
  RefreshMode refresh = RefreshMode::AllBank;
  std::uint32_t read_queue = 32;   // requests
  std::uint32_t write_queue = 32;  // requests
};

template <class S>
class Channel {
 public:
  explicit Channel(const ChannelSettings& settings, std::uint32_t number = 0);

  /// Everything up to and including `tick` happens.
  void advance_to(Tick tick) {
    if (tick - origin_ > kOriginReach) [[unlikely]]
      advance_far(tick);
    const auto until = static_cast<ShortTick>(tick - origin_);
    if (until <= now_) return;
    while (next_wake() <= until) step(next_wake());
    now_ = until;
  }

  /// Advances until the queue has room and then to a rising clock edge; never more than the
  /// queued requests need. Returns now(), or kNever if nothing can happen any more: a fault of the
  /// scheduler.
  Tick advance_until_room(bool is_write);

  /// The next tick at which anything can happen without new requests; kNever if nothing ever.
  [[nodiscard]] Tick next_event() const {
    const ShortTick next = next_wake();
    return next == kShortNever ? kNever : origin_ + next;
  }

  [[nodiscard]] bool has_room(bool is_write) const { return !queue(is_write).full(); }

  /// Hands a request over at tick now(); false, and no effect, when its queue is full.
  bool submit(const BurstPlace& place, bool is_write, std::uint64_t id) {
    if (absorb(place, is_write, id)) return true;
    if (!has_room(is_write)) return false;
    accept(place, is_write, id);
    return true;
  }

  /// A read of what is about to be written is answered from the write queue, a write to it merged
  /// into it, whether or not there is room; false, and no effect, for any other request.
  bool absorb(const BurstPlace& place, bool is_write, std::uint64_t id) {
    return (queue(true).waiting() & only(place.bank)) != 0 &&
           queue(true).holds(place.bank, place.row, place.column) && absorb(is_write, id);
  }
  /// Hands over a request that was not absorbed, at now(), to a queue that has room.
  [[gnu::always_inline]] void accept(const BurstPlace& place, bool is_write, std::uint64_t id) {
    const unsigned bank = place.bank;
    const bool open = device_.is_open(bank);
    const std::uint32_t open_row = device_.open_row(bank);
    PendingRequest& request =
        queue(is_write).push(bank, place.row, order_of(next_number_++, bank), open, open_row);
    request.id = id;
    request.accepted = now_;
    request.column = place.column;
    request.is_write = is_write;
    request.counted = false;
    ++unfinished_;
    check_mode_at(now_ + 1);
    if (is_write != serves_writes(bank)) return;
    ShortTick& wake = open && open_row == place.row ? column_wake_ : row_wake_;
    wake = std::min(wake, now_ + 1);
  }

  [[nodiscard]] Tick now() const { return origin_ + now_; }
  [[nodiscard]] std::uint32_t queued(bool is_write) const { return queue(is_write).size(); }
  /// Accepted requests without a completion yet.
  [[nodiscard]] std::uint64_t unfinished() const { return unfinished_; }

  /// No request is left, and nothing will change but by new requests and refreshes.
  [[nodiscard]] bool at_rest() const {
    return unfinished_ == 0 && refreshes_.empty() && mode_check_ == kShortNever;
  }
  /// When the next refresh falls due; kNever if none ever does.
  [[nodiscard]] Tick refresh_due() const {
    return refresh_due_ == kShortNever ? kNever : origin_ + refresh_due_;
  }
  /// Appends the state (channel_state.h) but for that of the banks. now() is not before the tick
  /// ahead of the moment, and refreshes are of all banks or none.
  void save(const StateMoment& moment, RowNames& rows, const NameRequest& name,
            StateWords& words) const;
  /// Appends the state of some banks.
  void save_banks(BankSet banks, Tick at, RowNames& rows, StateWords& words) const {
    device_.save_banks(banks, static_cast<ShortTick>(at - origin_), rows, words);
  }
  /// Those whose state decides what becomes of the requests that are here.
  [[nodiscard]] BankSet banks_at_work() const {
    if (!refreshes_.empty()) return S::kAllBanks;
    return queue(false).waiting() | queue(true).waiting() | activated_banks_[0] |
           activated_banks_[1];
  }
  /// Goes on from a saved state and the state of all banks, statistics and log apart. Completions
  /// have been taken.
  void load(const StateMoment& moment, const BankState* banks, const FindRequest& find,
            StateReader& words);
  /// From then on what was sent holds nothing up but for its bank.
  [[nodiscard]] Tick settled() const { return origin_ + device_.settled(); }
  [[nodiscard]] Tick open_row_reach() const { return device_.open_row_reach(); }
  void copy_banks(BankState* banks) const { device_.copy_banks(origin_, banks); }

  /// Since the last clear_completions(), in the order their last commands were sent.
  [[nodiscard]] std::span<const Completion> completions() const { return completions_.all(); }
  void clear_completions() { completions_.clear(); }
  [[nodiscard]] const ChannelStatistics& statistics() const { return statistics_; }

  /// Every command from now on is appended to `log`; null: none. The log must outlive the channel.
  void set_log(CommandLog* log) { log_ = log; }

 private:
  struct PendingRefresh {
    unsigned bank = 0;  // all-bank: one of its pseudo-channel
    BankSet covered = 0;
    std::uint64_t due = 0;  // order of the first request accepted after it fell due
  };

  [[nodiscard]] const RequestQueue& queue(bool is_write) const { return queues_[is_write]; }
  [[nodiscard]] RequestQueue& queue(bool is_write) { return queues_[is_write]; }
  [[nodiscard]] DirectionStatistics& counts(bool is_write) {
    return statistics_.direction[is_write];
  }

  [[nodiscard]] ShortTick next_wake() const {
    return std::min(std::min(column_wake_, row_wake_), std::min(refresh_due_, mode_check_));
  }
  void advance_far(Tick tick);
  void shift_origin();

  bool absorb(bool is_write, std::uint64_t id);
  void step(ShortTick tick);
  void housekeeping(ShortTick tick);

  // Column slot.
  void column_slot(ShortTick tick);
  bool send_activated(ShortTick tick);
  bool send_hit(ShortTick tick);
  template <bool kWrite>
  [[nodiscard]] std::uint64_t oldest_ready_hit(ShortTick tick);
  template <bool kWrite>
  void send_hit_of(unsigned bank, ShortTick tick);
  template <bool kWrite>
  void send_column(PendingRequest& request, ShortTick tick);
  [[nodiscard]] unsigned oldest_activated(BankSet banks) const;
  [[nodiscard]] ShortTick next_column() const;
  [[nodiscard]] ShortTick next_column_after_send() const;

  // Row slot.
  void row_slot(ShortTick tick);
  bool send_row_command(ShortTick tick);
  [[nodiscard]] BankSet activates(ShortTick tick, BankSet closed);
  [[nodiscard]] BankSet precharges(ShortTick tick, BankSet open);
  [[nodiscard]] std::uint64_t oldest_row(BankSet banks) const;
  [[nodiscard]] BankSet held_open(BankSet banks) const;
  void activate(unsigned bank, ShortTick tick);
  void precharge(unsigned bank, ShortTick tick);

  // Refresh.
  void add_due_refreshes(ShortTick tick);
  void add_refresh(unsigned bank, BankSet covered);
  void update_stopped_banks();
  [[nodiscard]] BankSet hits_before(const PendingRefresh& refresh) const;
  [[nodiscard]] BankSet stopped_hits() const {
    return stopped_banks_ == 0 ? 0 : find_stopped_hits();
  }
  [[nodiscard]] BankSet find_stopped_hits() const;
  bool send_refresh(ShortTick tick);
  bool try_refresh(std::size_t index, ShortTick tick);
  [[nodiscard]] bool stopped() const { return stopped_banks_ == ~BankSet{0}; }

  // States.
  void save_turns(ShortTick at, StateWords& words) const;
  void load_turns(ShortTick at, StateReader& words);
  void save_requests(ShortTick at, RowNames& rows, const NameRequest& name,
                     StateWords& words) const;
  void load_queues(ShortTick at, const FindRequest& find, StateReader& words);
  void load_activated(ShortTick at, const FindRequest& find, StateReader& words);

  // Reading or writing.
  [[nodiscard]] bool serves_writes(unsigned bank) const { return (write_banks_ & only(bank)) != 0; }
  [[nodiscard]] BankSet in_turn(BankSet of_reads, BankSet of_writes) const {
    return (of_reads & ~write_banks_) | (of_writes & write_banks_);
  }
  [[nodiscard]] bool wants_drain() const;
  [[nodiscard]] BankSet wanted_write_banks(bool drain) const;
  // With one kind alone, which is most of the time, the turn is that kind's everywhere.
  [[nodiscard]] bool mode_would_change() const {
    const bool reads = queue(false).size() != 0;
    const bool writes = queue(true).size() != 0;
    if (!(reads && writes)) return draining_ == reads || write_banks_ != (reads ? 0 : ~BankSet{0});
    const bool drain = wants_drain();
    return drain != draining_ || (policy_.turns.split && wanted_write_banks(drain) != write_banks_);
  }
  void check_mode_at(ShortTick tick) { mode_check_ = mode_would_change() ? tick : kShortNever; }
  void change_mode(ShortTick tick);

  void leave_queue(const PendingRequest& request, bool is_write, ShortTick tick) {
    counts(is_write).queued_ticks += tick - request.accepted;
    if (is_write == draining_) ++served_in_turn_;
  }
  [[gnu::always_inline]] void finish(const PendingRequest& request, bool is_write,
                                     ShortTick finished) {
    --unfinished_;
    counts(is_write).latency.add(finished - request.accepted);
    completions_.add() = {request.id, origin_ + request.accepted, origin_ + finished, is_write};
  }
  void record(Command command, unsigned bank, ShortTick tick, std::uint32_t row = 0,
              std::uint8_t column = 0) {
    ++statistics_.commands[static_cast<std::size_t>(command)];
    if (log_ != nullptr) append_to_log(command, bank, tick, row, column);
  }
  void append_to_log(Command command, unsigned bank, ShortTick tick, std::uint32_t row,
                     std::uint8_t column);

  // Fixed.
  std::uint32_t number_;
  std::uint32_t drain_above_;  // requests
  std::uint32_t drain_between_hits_above_;
  std::uint32_t drain_below_;
  Policy policy_;
  RefreshMode refresh_mode_;

  // State. Ticks count from the origin.
  bool draining_ = false;             // writes are in turn, not reads
  bool refresh_second_half_ = false;  // HBM3 per-bank: of the second pseudo-channel
  unsigned refresh_number_ = 0;       // per-bank: the next one, in refresh order
  std::uint32_t served_in_turn_ = 0;  // requests in turn that left their queue since the turn
  ShortTick now_ = 0;
  // When to look again: never later than the first tick at which something can happen.
  ShortTick column_wake_ = kShortNever;
  ShortTick row_wake_ = kShortNever;
  ShortTick refresh_due_ = kShortNever;
  ShortTick mode_check_ = kShortNever;
  Tick origin_ = 0;
  std::uint64_t next_number_ = 0;  // of an accepted request
  std::uint64_t unfinished_ = 0;
  BankSet stopped_banks_ = 0;  // no new requests for these until refreshed
  BankSet write_banks_ = 0;    // banks whose writes are served now; those of all others wait
  // Requests whose row was opened for them and whose column command is still to come: at most one
  // a bank, since its row stays open until then.
  std::array<BankSet, 2> activated_banks_{};  // by is_write
  std::array<PendingRequest, kMaxBanks> activated_{};
  std::vector<PendingRefresh> refreshes_;  // pending, oldest first
  std::array<RequestQueue, 2> queues_;     // by is_write
  DeviceTiming<S> device_;

  CompletionList completions_;
  ChannelStatistics statistics_;
  CommandLog* log_ = nullptr;
};

template <class S>
bool Channel<S>::wants_drain() const {
  const RequestQueue& writes = queue(true);
  const TurnRules& turns = policy_.turns;
  if (queue(false).size() == 0) return true;
  if (!draining_) {
    const bool between_hits = writes.size() > drain_between_hits_above_ && queue(false).hits() == 0;
    return (writes.size() > drain_above_ || between_hits) &&
           served_in_turn_ >= turns.reads_at_least;
  }
  if (turns.drain_at_most != 0 && served_in_turn_ >= turns.drain_at_most) return false;
  return writes.size() >= drain_below_ || (turns.drain_hits && writes.hits() != 0);
}

extern template class Channel<Hbm2>;
extern template class Channel<Hbm3>;

}  // namespace plena::dram
