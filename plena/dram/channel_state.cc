// A channel's state in words (channel_state.h): its turns, its device, its requests.
#include "plena/dram/channel_state.h"

#include <algorithm>
#include <utility>

#include "plena/dram/channel.h"

namespace plena::dram {
namespace {

// Of a request in one word: where it waits, its kind, whether it was counted, and a write's column,
// since what asks for the same burst meets it. Columns of reads are nothing to anybody.
std::int32_t kind_word(const PendingRequest& request) {
  const int column = request.is_write ? request.column : 0;
  return request.bank | (request.is_write ? 1 << 6 : 0) | (request.counted ? 1 << 7 : 0) |
         column << 8;
}

// What a request was like when it was saved.
struct SavedRequest {
  unsigned bank = 0;
  bool is_write = false;
  bool counted = false;
  ShortTick accepted = 0;
  RequestName name;
};

void save_request(const PendingRequest& request, ShortTick at, const NameRequest& name,
                  StateWords& words) {
  const auto [transfer, burst] = name(request.id);
  for (const std::int32_t word : {kind_word(request), at - request.accepted, transfer, burst})
    append_word(words, word);
}

SavedRequest load_request(ShortTick at, StateReader& words) {
  SavedRequest saved;
  const auto kind = static_cast<unsigned>(words.next());
  saved.bank = kind & 63U;
  saved.is_write = (kind >> 6 & 1U) != 0;
  saved.counted = (kind >> 7 & 1U) != 0;
  saved.accepted = at - words.next();
  saved.name.transfer = words.next();
  saved.name.burst = words.next();
  return saved;
}

void fill_in(PendingRequest& request, const SavedRequest& saved, const NamedRequest& found) {
  request.id = found.id;
  request.accepted = saved.accepted;
  request.row = found.place.row;
  request.column = found.place.column;
  request.bank = found.place.bank;
  request.is_write = saved.is_write;
  request.counted = saved.counted;
}

// Writes in turn: nowhere, everywhere, or in the banks that follow.
enum WriteBanks : std::int32_t { kNowhere, kEverywhere, kSome };

}  // namespace

template <class S>
void Channel<S>::save(const StateMoment& moment, RowNames& rows, const NameRequest& name,
                      StateWords& words) const {
  const auto at = static_cast<ShortTick>(moment.at - origin_);
  append_word(words, now_ + 1 - at);
  append_word(words, refresh_due() == kNever
                         ? 0
                         : static_cast<std::int32_t>(refresh_due() - moment.refresh_due));
  save_turns(at, words);
  device_.save_shared(at, words);
  save_requests(at, rows, name, words);
}

template <class S>
void Channel<S>::load(const StateMoment& moment, const BankState* banks, const FindRequest& find,
                      StateReader& words) {
  origin_ = moment.at & ~Tick{1};
  const auto at = static_cast<ShortTick>(moment.at - origin_);
  now_ = at - 1 + words.next();
  const std::int32_t refresh_after = words.next();
  refresh_due_ = moment.refresh_due == kNever
                     ? kShortNever
                     : static_cast<ShortTick>(moment.refresh_due - origin_ + refresh_after);
  load_turns(at, words);
  device_.load_shared(at, words);
  device_.load_banks(at, origin_, banks);
  load_queues(at, find, words);
  load_activated(at, find, words);
  // Looking too early does no harm.
  column_wake_ = row_wake_ = now_ + 1;
}

// How many were served in this turn matters up to the limit of the turn.
template <class S>
void Channel<S>::save_turns(ShortTick at, StateWords& words) const {
  const std::uint32_t most = draining_ ? policy_.turns.drain_at_most : policy_.turns.reads_at_least;
  append_word(words,
              static_cast<std::int32_t>(2 * std::min(served_in_turn_, most) + (draining_ ? 1 : 0)));
  append_word(words, mode_check_ == kShortNever ? -1 : mode_check_ - at);
  append_word(words, write_banks_ == 0 ? kNowhere : ~write_banks_ == 0 ? kEverywhere : kSome);
  if (write_banks_ == 0 || ~write_banks_ == 0) return;
  append_word(words, static_cast<std::int32_t>(write_banks_));
  append_word(words, static_cast<std::int32_t>(write_banks_ >> 32));
}

template <class S>
void Channel<S>::load_turns(ShortTick at, StateReader& words) {
  const auto served = static_cast<std::uint32_t>(words.next());
  draining_ = served % 2 != 0;
  served_in_turn_ = served / 2;
  const std::int32_t mode_check = words.next();
  mode_check_ = mode_check < 0 ? kShortNever : at + mode_check;
  const std::int32_t writes = words.next();
  write_banks_ = writes == kNowhere ? 0 : ~BankSet{0};
  if (writes != kSome) return;
  write_banks_ = static_cast<std::uint32_t>(words.next());
  write_banks_ |= BankSet{static_cast<std::uint32_t>(words.next())} << 32;
}

// Oldest first, so that numbers need not be told: how many are older than each refresh says all.
template <class S>
void Channel<S>::save_requests(ShortTick at, RowNames& rows, const NameRequest& name,
                               StateWords& words) const {
  std::vector<const PendingRequest*> requests;
  requests.reserve(queues_[0].size() + queues_[1].size());
  for (const RequestQueue& queue : queues_)
    queue.for_each([&](const PendingRequest& request) { requests.push_back(&request); });
  std::ranges::sort(requests, {}, &PendingRequest::order);
  append_word(words, static_cast<std::int32_t>(requests.size()));
  for (const PendingRequest* request : requests) {
    append_word(words, rows.of(request->bank, request->row));
    save_request(*request, at, name, words);
  }
  append_word(words, static_cast<std::int32_t>(refreshes_.size()));
  for (const PendingRefresh& refresh : refreshes_) {
    append_word(words, static_cast<std::int32_t>(refresh.bank));
    append_word(words, static_cast<std::int32_t>(
                           std::ranges::lower_bound(requests, refresh.due, {},
                                                    [](const auto* r) { return r->order; }) -
                           requests.begin()));
  }
  for (BankSet banks = activated_banks_[0] | activated_banks_[1]; banks != 0; banks &= banks - 1) {
    const unsigned bank = first_of(banks);
    append_word(words, 1);
    append_word(words, at - device_.activated(bank));
    save_request(activated_[bank], at, name, words);
  }
  append_word(words, 0);
}

template <class S>
void Channel<S>::load_queues(ShortTick at, const FindRequest& find, StateReader& words) {
  for (RequestQueue& queue : queues_) queue.clear();
  const std::int32_t count = words.next();
  unfinished_ = static_cast<std::uint64_t>(count);
  for (next_number_ = 0; next_number_ < unfinished_; ++next_number_) {
    words.next();  // its row's name
    const SavedRequest saved = load_request(at, words);
    const NamedRequest found = find(saved.name);
    const unsigned bank = saved.bank;
    PendingRequest& request = queue(saved.is_write)
                                  .push(bank, found.place.row, order_of(next_number_, bank),
                                        device_.is_open(bank), device_.open_row(bank));
    fill_in(request, saved, found);
  }
  refreshes_.clear();
  for (std::int32_t left = words.next(); left != 0; --left) {
    const auto bank = static_cast<unsigned>(words.next());
    refreshes_.push_back({.bank = bank,
                          .covered = S::banks_of_pseudo_channel(S::pseudo_channel(bank)),
                          .due = order_of(static_cast<std::uint64_t>(words.next()), 0)});
  }
  update_stopped_banks();
}

template <class S>
void Channel<S>::load_activated(ShortTick at, const FindRequest& find, StateReader& words) {
  activated_banks_ = {};
  while (words.next() != 0) {
    const ShortTick opened = at - words.next();
    const SavedRequest saved = load_request(at, words);
    PendingRequest& request = activated_[saved.bank];
    request.order = 0;  // it is in no queue any more
    fill_in(request, saved, find(saved.name));
    activated_banks_[saved.is_write] |= only(saved.bank);
    device_.set_activated(saved.bank, opened);
    ++unfinished_;
  }
}

#define PLENA_STATE_OF(Standard)                                                                  \
  template void Channel<Standard>::save(const StateMoment&, RowNames&, const NameRequest&,        \
                                        StateWords&) const;                                       \
  template void Channel<Standard>::load(const StateMoment&, const BankState*, const FindRequest&, \
                                        StateReader&);                                            \
  template void Channel<Standard>::save_turns(ShortTick, StateWords&) const;                      \
  template void Channel<Standard>::load_turns(ShortTick, StateReader&);                           \
  template void Channel<Standard>::save_requests(ShortTick, RowNames&, const NameRequest&,        \
                                                 StateWords&) const;                              \
  template void Channel<Standard>::load_queues(ShortTick, const FindRequest&, StateReader&);      \
  template void Channel<Standard>::load_activated(ShortTick, const FindRequest&, StateReader&)

PLENA_STATE_OF(Hbm2);
PLENA_STATE_OF(Hbm3);

}  // namespace plena::dram
