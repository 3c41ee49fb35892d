// One queue of a channel (its reads or its writes): who waits for which bank, and for every bank
// the oldest request that hits the open row and the oldest that does not.
//
// Both are kept up to date while requests come and go, so that a scheduler looks at sets of
// banks, never at the whole queue.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "plena/dram/shape.h"
#include "plena/dram/tick.h"

namespace plena::dram {

/// A request's place in the order of acceptance, smaller is older, with its bank packed in: the
/// smallest of some orders also says which bank it is.
constexpr std::uint64_t order_of(std::uint64_t number, unsigned bank) {
  return number * kMaxBanks + bank;
}
/// Younger than any request.
inline constexpr std::uint64_t kNoOrder = ~std::uint64_t{0};
constexpr unsigned bank_of_order(std::uint64_t order) {
  return static_cast<unsigned>(order % kMaxBanks);
}

/// A request on its way through a channel.
struct PendingRequest {
  std::uint64_t id = 0;
  std::uint64_t order = 0;  // order_of()
  ShortTick accepted = 0;
  std::uint32_t row = 0;
  std::uint8_t bank = 0;
  std::uint8_t column = 0;
  bool is_write = false;
  bool counted = false;  // as row hit, miss or conflict

  /// From now on ticks count from `by` later. What is left of a request long gone stays in range.
  void shift_origin(ShortTick by) { accepted = std::max(accepted, -kOriginReach) - by; }
};

class RequestQueue {
 public:
  using Slot = std::uint16_t;
  static constexpr Slot kNone = 0xFFFF;

  explicit RequestQueue(std::uint32_t capacity);

  [[nodiscard]] std::uint32_t capacity() const { return capacity_; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool full() const { return size_ == capacity_; }

  /// Banks somebody waits for; with a request for their open row; with one for another row.
  [[nodiscard]] BankSet waiting() const { return waiting_; }
  [[nodiscard]] BankSet hits() const { return hits_; }
  [[nodiscard]] BankSet misses() const { return misses_; }

  /// The oldest hit and the oldest miss of a bank in hits() or misses().
  [[nodiscard]] PendingRequest& hit(unsigned bank) { return entries_[banks_[bank].hit].request; }
  [[nodiscard]] PendingRequest& miss(unsigned bank) { return entries_[banks_[bank].miss].request; }
  [[nodiscard]] const PendingRequest& hit(unsigned bank) const {
    return entries_[banks_[bank].hit].request;
  }
  [[nodiscard]] const PendingRequest& miss(unsigned bank) const {
    return entries_[banks_[bank].miss].request;
  }
  /// The oldest request of a bank in waiting().
  [[nodiscard]] PendingRequest& oldest(unsigned bank) {
    return entries_[banks_[bank].head].request;
  }
  [[nodiscard]] std::uint64_t hit_order(unsigned bank) const { return hit_order_[bank]; }
  /// Of the oldest request that needs a row command: the oldest of a closed bank, else its miss.
  [[nodiscard]] std::uint64_t row_order(unsigned bank) const { return row_order_[bank]; }

  [[nodiscard]] bool holds(unsigned bank, std::uint32_t row, std::uint8_t column) const;

  /// Adds a request younger than all others and returns it with bank, row and order filled in;
  /// `open` says whether its bank has `open_row` open. The queue is not full.
  PendingRequest& push(unsigned bank, std::uint32_t row, std::uint64_t order, bool open,
                       std::uint32_t open_row);

  /// Takes out hit() of a bank that has `open_row` open.
  void drop_hit(unsigned bank, std::uint32_t open_row);
  /// Takes out oldest() of a closed bank, whose row is being opened for it.
  void drop_oldest(unsigned bank) { unlink(bank, banks_[bank].head); }

  /// A bank opened a row, or closed it.
  void opened(unsigned bank, std::uint32_t row) {
    if ((waiting_ & only(bank)) != 0) find_hit_and_miss(bank, row);
  }
  void closed(unsigned bank);

  /// From now on ticks count from `by` later.
  void shift_origin(ShortTick by);

  /// Every request, bank by bank, each bank's by age.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (BankSet banks = waiting_; banks != 0; banks &= banks - 1) {
      for (Slot slot = banks_[first_of(banks)].head; slot != kNone; slot = entries_[slot].next)
        visit(entries_[slot].request);
    }
  }
  void clear();

 private:
  struct Entry {
    PendingRequest request;
    Slot previous = kNone;  // of the same bank, by age
    Slot next = kNone;
  };
  struct BankList {
    Slot head = kNone;
    Slot tail = kNone;
    Slot hit = kNone;
    Slot miss = kNone;
  };

  void unlink(unsigned bank, Slot slot);
  void set_hit(unsigned bank, Slot slot);
  void set_miss(unsigned bank, Slot slot);
  void find_hit_and_miss(unsigned bank, std::uint32_t row);

  std::uint32_t capacity_;
  std::uint32_t size_ = 0;
  BankSet waiting_ = 0;
  BankSet hits_ = 0;
  BankSet misses_ = 0;
  std::array<BankList, kMaxBanks> banks_{};
  std::array<std::uint64_t, kMaxBanks> hit_order_{};
  std::array<std::uint64_t, kMaxBanks> row_order_{};
  std::vector<Entry> entries_;
  std::vector<Slot> free_;  // [capacity], the first capacity - size of them valid
};

inline void RequestQueue::set_hit(unsigned bank, Slot slot) {
  banks_[bank].hit = slot;
  hits_ |= only(bank);
  hit_order_[bank] = entries_[slot].request.order;
}

inline void RequestQueue::set_miss(unsigned bank, Slot slot) {
  banks_[bank].miss = slot;
  misses_ |= only(bank);
  row_order_[bank] = entries_[slot].request.order;
}

inline PendingRequest& RequestQueue::push(unsigned bank, std::uint32_t row, std::uint64_t order,
                                          bool open, std::uint32_t open_row) {
  ++size_;
  const Slot slot = free_[capacity_ - size_];
  BankList& list = banks_[bank];
  Entry& entry = entries_[slot];
  entry.request.row = row;
  entry.request.order = order;
  entry.request.bank = static_cast<std::uint8_t>(bank);
  entry.previous = list.tail;
  entry.next = kNone;
  if (list.tail == kNone) {
    list.head = slot;
    waiting_ |= only(bank);
    row_order_[bank] = order;
  } else {
    entries_[list.tail].next = slot;
  }
  list.tail = slot;
  if (open) {
    if (row == open_row) {
      if ((hits_ & only(bank)) == 0) set_hit(bank, slot);
    } else if ((misses_ & only(bank)) == 0) {
      set_miss(bank, slot);
    }
  }
  return entry.request;
}

inline void RequestQueue::unlink(unsigned bank, Slot slot) {
  const Entry& entry = entries_[slot];
  BankList& list = banks_[bank];
  (entry.previous == kNone ? list.head : entries_[entry.previous].next) = entry.next;
  (entry.next == kNone ? list.tail : entries_[entry.next].previous) = entry.previous;
  if (list.head == kNone) waiting_ &= ~only(bank);
  free_[capacity_ - size_] = slot;
  --size_;
}

inline void RequestQueue::drop_hit(unsigned bank, std::uint32_t open_row) {
  const Slot slot = banks_[bank].hit;
  Slot next = entries_[slot].next;
  while (next != kNone && entries_[next].request.row != open_row) next = entries_[next].next;
  unlink(bank, slot);
  if (next == kNone) {
    hits_ &= ~only(bank);
  } else {
    set_hit(bank, next);
  }
}

inline void RequestQueue::closed(unsigned bank) {
  hits_ &= ~only(bank);
  misses_ &= ~only(bank);
  if ((waiting_ & only(bank)) != 0) row_order_[bank] = oldest(bank).order;
}

}  // namespace plena::dram
