#include "plena/timing/emulator_channel.h"

#include <algorithm>

namespace plena {

namespace {

// Preset HBM2_2Gbps, in ticks. nBL counts for latency and turnarounds, half of it for the bus.
constexpr std::uint64_t nBL = 4, nCL = 7, nRCD = 7, nRP = 7, nRAS = 17, nRC = 19, nWR = 8;
constexpr std::uint64_t nRTP = 3, nCWL = 2, nCCDL = 2, nRRDS = 2, nRRDL = 3, nWTRS = 3, nWTRL = 4;
constexpr std::uint64_t nFAW = 15;
constexpr std::uint64_t kBus = nBL / 2;
constexpr std::uint64_t kActivateTicks = 2;  // of the row command bus
constexpr std::uint64_t kReadToWrite = nCL + nBL + 2 - nCWL;

constexpr std::size_t kQueue = 33;  // it is full when it holds more than 32
// Writes start above 80 % of 32 or without reads, and stop below 20 % where there are reads.
constexpr std::size_t kStartWriting = 25;
constexpr std::size_t kStopWriting = 7;

constexpr std::uint64_t kNever = ~std::uint64_t{0};  // an activation that did not happen

void raise(std::uint64_t& ready, std::uint64_t to) {
  ready = std::max(ready, to);
}

}  // namespace

// Two column bits (which of the block's requests), channel, pseudo-channel, bank group, bank, three
// column bits, row; the column is xored over the parts above it.
EmulatorPlace emulator_place(std::uint64_t block) {
  const auto take = [&](unsigned bits) {
    const std::uint64_t value = block & ((std::uint64_t{1} << bits) - 1);
    block >>= bits;
    return static_cast<unsigned>(value);
  };
  const unsigned channel = take(3);
  unsigned pseudo_channel = take(1);
  unsigned group = take(2);
  const unsigned bank = take(2);
  const unsigned column = take(3);
  const unsigned half = (channel >> 2 ^ column) & 1;
  pseudo_channel ^= column >> 1 & 1;
  group ^= column >> 2 & 1;
  group += 4 * pseudo_channel;
  return {static_cast<std::uint8_t>(half), static_cast<std::uint8_t>(group),
          static_cast<std::uint8_t>(4 * group + bank), static_cast<std::uint32_t>(block)};
}

EmulatorChannel::EmulatorChannel() {
  open_row_.fill(-1);
  for (auto& latest : activates_) latest.fill(kNever);
}

const EmulatorChannel::Ready& EmulatorChannel::ready_of(Part part, unsigned index) const {
  switch (part) {
    case Part::PseudoChannel:
      return pseudo_channel_[index];
    case Part::Group:
      return group_[index];
    case Part::Bank:
      return bank_[index];
    default:
      return channel_;
  }
}

// Nothing reaches farther into the future than 255 ticks, or from farther in the past than nFAW.
EmulatorChannel::PartState EmulatorChannel::state(Part part, unsigned index,
                                                  std::uint64_t clock) const {
  PartState state = 0;
  unsigned shift = 0;
  const auto add = [&](std::uint64_t byte) {
    state |= byte << shift;
    shift += 8;
  };
  for (const std::uint64_t at : ready_of(part, index)) add(at > clock ? at - clock : 0);
  if (part == Part::Channel) add(writing_ ? 1 : 0);
  if (part == Part::PseudoChannel) {
    for (const std::uint64_t at : activates_[index]) {
      const bool matters = at != kNever && at + nFAW > clock;
      add(matters ? at + nFAW - clock : 0);
    }
  }
  return state;
}

void EmulatorChannel::set_state(Part part, unsigned index, PartState state, std::uint64_t clock) {
  const auto take = [&] {
    const std::uint64_t byte = state & 0xFF;
    state >>= 8;
    return byte;
  };
  for (std::uint64_t& at : const_cast<Ready&>(ready_of(part, index))) at = clock + take();
  if (part == Part::Channel) writing_ = take() != 0;
  if (part == Part::PseudoChannel) {
    for (std::uint64_t& at : activates_[index]) {
      const std::uint64_t left = take();
      at = left == 0 ? kNever : clock + left - nFAW;
    }
  }
}

bool EmulatorChannel::offer_read(std::uint64_t block, const EmulatorPlace& place,
                                 std::uint64_t clock) {
  // A read of what is about to be written is answered from the write queue with the next tick.
  if (std::ranges::find(writes_.waiting, block, &Waiting::block) != writes_.waiting.end()) {
    arriving_.push_back(clock + 1);
    return true;
  }
  return enqueue(reads_, {block, clock, place, false});
}

bool EmulatorChannel::offer_write(std::uint64_t block, const EmulatorPlace& place,
                                  std::uint64_t clock) {
  return enqueue(writes_, {block, clock, place, true});
}

bool EmulatorChannel::enqueue(Queue& queue, const Waiting& waiting) {
  if (queue.waiting.size() >= kQueue) return false;
  queue.waiting.push_back(waiting);
  queue.quiet_until = std::min(queue.quiet_until, ready_at(next_command(waiting), waiting.place));
  return true;
}

bool EmulatorChannel::tick(std::uint64_t clock) {
  const bool done = !arriving_.empty() && arriving_.front() <= clock;
  if (done) arriving_.pop_front();
  if (serve(activated_, clock)) return done;
  change_mode();
  static_cast<void>(serve(writing_ ? writes_ : reads_, clock));
  return done;
}

void EmulatorChannel::change_mode() {
  if (!writing_) {
    writing_ = writes_.waiting.size() > kStartWriting || reads_.waiting.empty();
  } else if (writes_.waiting.size() < kStopWriting && !reads_.waiting.empty()) {
    writing_ = false;
  }
}

// Sends the next command of the first request of a queue that is ready. Where none is, nothing
// will be before the earliest of them, unless a command is sent or a request comes in.
bool EmulatorChannel::serve(Queue& queue, std::uint64_t clock) {
  if (clock < queue.quiet_until) return false;
  std::uint64_t earliest = ~std::uint64_t{0};
  for (auto it = queue.waiting.begin(); it != queue.waiting.end(); ++it) {
    const Command command = next_command(*it);
    const std::uint64_t at = ready_at(command, it->place);
    if (at > clock) {
      earliest = std::min(earliest, at);
      continue;
    }
    // A row that was opened for a request stays open until its column command. Nothing else is
    // sent instead.
    if (command == Command::Precharge && awaited(it->place.bank)) return true;
    send(command, it->place, clock);
    if (command == Command::Precharge) return true;
    const Waiting waiting = *it;
    queue.waiting.erase(it);
    if (command == Command::Read) arriving_.push_back(clock + nCL + nBL);
    if (command == Command::Activate) open_for(waiting);
    return true;
  }
  queue.quiet_until = earliest;
  return false;
}

// Among those that arrived together the row opened first comes first.
void EmulatorChannel::open_for(const Waiting& waiting) {
  const auto later = [](const Waiting& a, const Waiting& b) { return a.arrived < b.arrived; };
  auto& opened = activated_.waiting;
  opened.insert(std::upper_bound(opened.begin(), opened.end(), waiting, later), waiting);
}

bool EmulatorChannel::awaited(unsigned bank) const {
  return std::ranges::any_of(activated_.waiting,
                             [&](const Waiting& w) { return w.place.bank == bank; });
}

EmulatorChannel::Command EmulatorChannel::next_command(const Waiting& waiting) const {
  const std::int64_t open = open_row_[waiting.place.bank];
  if (open < 0) return Command::Activate;
  if (open != static_cast<std::int64_t>(waiting.place.row)) return Command::Precharge;
  return waiting.write ? Command::Write : Command::Read;
}

// Commands only ever make others wait longer, but for a bank's row: then its requests want another
// command, which may be ready at `at`.
void EmulatorChannel::wake(std::uint64_t at) {
  for (Queue* queue : {&reads_, &writes_, &activated_})
    queue->quiet_until = std::min(queue->quiet_until, at);
}

void EmulatorChannel::send(Command command, const EmulatorPlace& place, std::uint64_t clock) {
  constexpr auto kActivate = static_cast<std::size_t>(Command::Activate);
  constexpr auto kPrecharge = static_cast<std::size_t>(Command::Precharge);
  constexpr auto kRead = static_cast<std::size_t>(Command::Read);
  constexpr auto kWrite = static_cast<std::size_t>(Command::Write);
  Ready& pseudo_channel = pseudo_channel_[place.pseudo_channel()];
  Ready& group = group_[place.group];
  Ready& bank = bank_[place.bank];
  switch (command) {
    case Command::Activate: {
      open_row_[place.bank] = static_cast<std::int64_t>(place.row);
      raise(channel_[kActivate], clock + kActivateTicks);
      raise(channel_[kPrecharge], clock + kActivateTicks);
      raise(pseudo_channel[kActivate], clock + nRRDS);
      auto& latest = activates_[place.pseudo_channel()];
      std::shift_left(latest.begin(), latest.end(), 1);
      latest.back() = clock;
      if (latest.front() != kNever) raise(pseudo_channel[kActivate], latest.front() + nFAW);
      raise(group[kActivate], clock + nRRDL);
      raise(bank[kActivate], clock + nRC);
      raise(bank[kPrecharge], clock + nRAS);
      raise(bank[kRead], clock + nRCD);
      raise(bank[kWrite], clock + nRCD);
      wake(std::min({bank[kRead], bank[kWrite], bank[kPrecharge]}));
      break;
    }
    case Command::Precharge:
      open_row_[place.bank] = -1;
      raise(bank[kActivate], clock + nRP);
      wake(bank[kActivate]);
      break;
    case Command::Read:
      raise(pseudo_channel[kRead], clock + kBus);
      raise(pseudo_channel[kWrite], clock + kReadToWrite);
      raise(group[kRead], clock + nCCDL);
      raise(bank[kPrecharge], clock + nRTP);
      break;
    case Command::Write:
      raise(pseudo_channel[kWrite], clock + kBus);
      raise(pseudo_channel[kRead], clock + nCWL + nBL + nWTRS);
      raise(group[kWrite], clock + nCCDL);
      raise(group[kRead], clock + nCWL + nBL + nWTRL);
      raise(bank[kPrecharge], clock + nCWL + nBL + nWR);
      break;
  }
}

}  // namespace plena
