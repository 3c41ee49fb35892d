#include "plena/timing/emulator_hbm.h"

#include <algorithm>

namespace plena {

namespace {

constexpr std::uint64_t kBlock = 64;  // bytes of an access

// The numbers of the blocks that bytes lie in.
void append_blocks(std::uint64_t address, std::uint64_t bytes, std::vector<std::uint64_t>& blocks) {
  if (bytes == 0) return;
  for (std::uint64_t block = address / kBlock; block <= (address + bytes - 1) / kBlock; ++block)
    blocks.push_back(block);
}

}  // namespace

Ticket EmulatorHbm::start(const TransferStart& start, const TransferRows& rows) {
  wait_until(clock_.tick_at(start.issue + start.before));
  if (rows.write) {
    store(rows);
  } else {
    load(rows);
  }
  complete_ = std::max(start.issue, clock_.cycle_at(now_)) + start.after;
  return 0;
}

// All blocks of all rows race; the scales of a row lie in one block.
void EmulatorHbm::load(const TransferRows& rows) {
  std::vector<std::uint64_t> blocks;
  for (std::uint32_t index = 0; index < rows.count; ++index) {
    const HbmRow row = rows.row(index);
    append_blocks(row.element_address, row.element_bytes, blocks);
    append_blocks(row.scale_address, row.scale_bytes, blocks);
  }
  read(blocks);
}

// Row after row, block after block: read, change, write back.
void EmulatorHbm::store(const TransferRows& rows) {
  for (std::uint32_t index = 0; index < rows.count; ++index) {
    const HbmRow row = rows.row(index);
    store_bytes(row.element_address, row.element_bytes);
    store_bytes(row.scale_address, row.scale_bytes);
  }
}

void EmulatorHbm::store_bytes(std::uint64_t address, std::uint64_t bytes) {
  std::vector<std::uint64_t> blocks;
  append_blocks(address, bytes, blocks);
  for (const std::uint64_t block : blocks) {
    read({block});
    write(block);
  }
}

// A load begins and ends with idle channels, so that its time follows from their state, from the
// banks its requests go to, and from which of them share a row.
void EmulatorHbm::read(const std::vector<std::uint64_t>& blocks) {
  traffic_.read += blocks.size() * kBlock / kBurstBytes;
  const bool idle = std::ranges::all_of(channels_, &EmulatorChannel::idle);
  if (!remembers_ || !idle) {
    simulate_read(blocks);
    return;
  }
  const EmulatorClocks before{now_, next_};
  if (const auto after = streams_.recall(channels_, before, blocks)) {
    now_ = after->now;
    next_ = after->next;
    return;
  }
  simulate_read(blocks);
  if (std::ranges::all_of(channels_, &EmulatorChannel::idle))
    streams_.remember(channels_, before, {now_, next_});
}

// Blocks are offered in order; one that is refused holds up the others and tries again a
// nanosecond later. Ends with the tick that finishes the last one.
void EmulatorHbm::simulate_read(const std::vector<std::uint64_t>& blocks) {
  std::size_t offered = 0;
  std::size_t finished = 0;
  for (;;) {
    while (offered < blocks.size()) {
      const EmulatorPlace place = emulator_place(blocks[offered]);
      if (!channels_[place.half].offer_read(blocks[offered], place, next_)) break;
      ++offered;
    }
    if (finished == blocks.size()) return;
    now_ = std::max(now_, next_);
    finished += tick();
    if (finished == blocks.size()) return;
  }
}

// A write is done when its queue has taken it.
void EmulatorHbm::write(std::uint64_t block) {
  traffic_.written += kBlock / kBurstBytes;
  const EmulatorPlace place = emulator_place(block);
  while (!channels_[place.half].offer_write(block, place, next_))
    wait_until(std::max(now_, next_) + 1);
}

// Ticks before an instant happen; the one at the instant is still to come.
void EmulatorHbm::wait_until(std::uint64_t instant) {
  now_ = std::max(now_, instant);
  while (next_ < now_) {
    if (std::ranges::all_of(channels_, &EmulatorChannel::idle)) {
      next_ = now_;
      return;
    }
    tick();
  }
}

// Reads that are done with it.
std::size_t EmulatorHbm::tick() {
  ++next_;
  std::size_t done = 0;
  for (EmulatorChannel& channel : channels_) {
    if (!channel.idle() && channel.tick(next_)) ++done;
  }
  return done;
}

}  // namespace plena
