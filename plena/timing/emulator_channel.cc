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

void raise(std::uint64_t& ready, std::uint64_t to) {
  ready = std::max(ready, to);
}

}  // namespace

// Two column bits, channel, pseudo-channel, bank group, bank, three column bits, row; the column is
// xored over the parts above it.
EmulatorPlace emulator_place(std::uint64_t number) {
  const auto take = [&](unsigned bits) {
    const std::uint64_t value = number & ((std::uint64_t{1} << bits) - 1);
    number >>= bits;
    return static_cast<unsigned>(value);
  };
  unsigned column = take(2);
  unsigned channel = take(3);
  unsigned pseudo_channel = take(1);
  unsigned group = take(2);
  const unsigned bank = take(2);
  column |= take(3) << 2;
  channel ^= column & 7;
  pseudo_channel ^= column >> 3 & 1;
  group ^= column >> 4 & 3;
  group += 4 * pseudo_channel;
  return {static_cast<std::uint8_t>(channel), static_cast<std::uint8_t>(group),
          static_cast<std::uint8_t>(4 * group + bank), number};
}

EmulatorChannel::EmulatorChannel() {
  open_row_.fill(-1);
}

bool EmulatorChannel::offer(const EmulatorRequest& request, const EmulatorPlace& place,
                            std::uint64_t clock) {
  // A read of what is about to be written is answered from the write queue with the next tick.
  const auto same = [&](const Waiting& w) { return w.request.number == request.number; };
  if (!request.write && std::ranges::any_of(writes_, same)) {
    arriving_.push_back({clock + 1, request.id});
    return true;
  }
  auto& queue = request.write ? writes_ : reads_;
  if (queue.size() >= kQueue) return false;
  queue.push_back({request, place, clock});
  return true;
}

void EmulatorChannel::tick(std::uint64_t clock, std::vector<std::uint32_t>& done) {
  if (!arriving_.empty() && arriving_.front().at <= clock) {
    done.push_back(arriving_.front().id);
    arriving_.pop_front();
  }
  if (serve(activated_, clock)) return;
  change_mode();
  static_cast<void>(serve(writing_ ? writes_ : reads_, clock));
}

void EmulatorChannel::change_mode() {
  if (!writing_) {
    writing_ = writes_.size() > kStartWriting || reads_.empty();
  } else if (writes_.size() < kStopWriting && !reads_.empty()) {
    writing_ = false;
  }
}

// Sends the next command of the best request of a queue, if it is ready.
bool EmulatorChannel::serve(std::vector<Waiting>& queue, std::uint64_t clock) {
  const std::size_t index = best(queue, clock);
  if (index == kNone) return false;
  const Waiting waiting = queue[index];
  const Command command = next_command(waiting);
  if (!ready(command, waiting.place, clock)) return false;
  // A row that was opened for a request stays open until its column command. Nothing else is sent
  // instead.
  if (command == Command::Precharge && awaited(waiting.place.bank)) return true;
  send(command, waiting.place, clock);
  if (command == Command::Read) arriving_.push_back({clock + nCL + nBL, waiting.request.id});
  if (command == Command::Activate) activated_.push_back(waiting);
  if (command != Command::Precharge)
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(index));
  return true;
}

// Ready before not ready, then the one that arrived first, then the earlier in the queue.
std::size_t EmulatorChannel::best(const std::vector<Waiting>& queue, std::uint64_t clock) const {
  std::size_t candidate = kNone;
  bool candidate_ready = false;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const bool is_ready = ready(next_command(queue[i]), queue[i].place, clock);
    const bool better =
        candidate == kNone || (is_ready && !candidate_ready) ||
        (is_ready == candidate_ready && queue[i].arrived < queue[candidate].arrived);
    if (!better) continue;
    candidate = i;
    candidate_ready = is_ready;
  }
  return candidate;
}

bool EmulatorChannel::awaited(unsigned bank) const {
  return std::ranges::any_of(activated_, [&](const Waiting& w) { return w.place.bank == bank; });
}

EmulatorChannel::Command EmulatorChannel::next_command(const Waiting& waiting) const {
  const std::int64_t open = open_row_[waiting.place.bank];
  if (open < 0) return Command::Activate;
  if (open != static_cast<std::int64_t>(waiting.place.row)) return Command::Precharge;
  return waiting.request.write ? Command::Write : Command::Read;
}

bool EmulatorChannel::ready(Command command, const EmulatorPlace& place,
                            std::uint64_t clock) const {
  const auto c = static_cast<std::size_t>(command);
  return clock >= channel_[c] && clock >= pseudo_channel_[place.pseudo_channel()][c] &&
         clock >= group_[place.group][c] && clock >= bank_[place.bank][c];
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
      latest.push_back(clock);
      if (latest.size() > 4) latest.pop_front();
      if (latest.size() == 4) raise(pseudo_channel[kActivate], latest.front() + nFAW);
      raise(group[kActivate], clock + nRRDL);
      raise(bank[kActivate], clock + nRC);
      raise(bank[kPrecharge], clock + nRAS);
      raise(bank[kRead], clock + nRCD);
      raise(bank[kWrite], clock + nRCD);
      break;
    }
    case Command::Precharge:
      open_row_[place.bank] = -1;
      raise(bank[kActivate], clock + nRP);
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
