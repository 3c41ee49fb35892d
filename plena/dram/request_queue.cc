#include "plena/dram/request_queue.h"

namespace plena::dram {

RequestQueue::RequestQueue(std::uint32_t capacity)
    : capacity_(capacity), entries_(capacity), free_(capacity) {
  for (std::uint32_t slot = 0; slot < capacity; ++slot) free_[slot] = static_cast<Slot>(slot);
}

void RequestQueue::clear() {
  size_ = 0;
  waiting_ = hits_ = misses_ = 0;
  banks_.fill({});
  for (std::uint32_t slot = 0; slot < capacity_; ++slot) free_[slot] = static_cast<Slot>(slot);
}

bool RequestQueue::holds(unsigned bank, std::uint32_t row, std::uint8_t column) const {
  for (Slot slot = banks_[bank].head; slot != kNone; slot = entries_[slot].next) {
    const PendingRequest& waiting = entries_[slot].request;
    if (waiting.row == row && waiting.column == column) return true;
  }
  return false;
}

void RequestQueue::find_hit_and_miss(unsigned bank, std::uint32_t row) {
  bool hit = false;
  bool miss = false;
  for (Slot slot = banks_[bank].head; slot != kNone && !(hit && miss); slot = entries_[slot].next) {
    if (entries_[slot].request.row == row) {
      if (!hit) set_hit(bank, slot);
      hit = true;
    } else {
      if (!miss) set_miss(bank, slot);
      miss = true;
    }
  }
}

void RequestQueue::shift_origin(ShortTick by) {
  for (Entry& entry : entries_) entry.request.shift_origin(by);
}

}  // namespace plena::dram
