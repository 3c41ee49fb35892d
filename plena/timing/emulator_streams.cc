#include "plena/timing/emulator_streams.h"

#include <algorithm>

namespace plena {

namespace {

constexpr std::uint64_t kBlock = 64;    // bytes of an access
constexpr std::uint64_t kRequest = 16;  // bytes of a request
constexpr std::size_t kMostKnown = 1024;
constexpr std::size_t kLongest = 1U << 10;  // blocks of a load worth keeping, 8 bytes each

}  // namespace

// The key of a load, and the rows of every bank. False where it is too large to be kept.
bool EmulatorStreams::describe(const Channels& channels, EmulatorClocks before,
                               const std::vector<std::uint64_t>& blocks) {
  key_.clear();
  if (blocks.size() > kLongest) return false;
  const auto lag = static_cast<std::int64_t>(before.next - before.now);
  for (unsigned byte = 0; byte < sizeof lag; ++byte)
    key_.push_back(static_cast<char>(lag >> (8 * byte)));
  for (std::size_t c = 0; c < kChannels; ++c) {
    const EmulatorChannel::State state = channels[c].state(before.next);
    key_.append(reinterpret_cast<const char*>(state.data()), state.size());
    for (unsigned bank = 0; bank < kBanks; ++bank) {
      const std::int64_t open = channels[c].open_row(bank);
      rows_[c][bank].assign(1, open);
      key_.push_back(open < 0 ? 0 : 1);
    }
  }
  for (const std::uint64_t block : blocks) {
    for (std::uint64_t offset = 0; offset < kBlock; offset += kRequest) {
      const EmulatorPlace place = emulator_place((block + offset) / kRequest);
      Rows& rows = rows_[place.channel][place.bank];
      const auto row = static_cast<std::int64_t>(place.row);
      // The latest row is the likely one.
      const auto found = std::find(rows.rbegin(), rows.rend(), row);
      const std::size_t index =
          found == rows.rend() ? rows.size() : static_cast<std::size_t>(rows.rend() - found) - 1;
      if (index == rows.size()) rows.push_back(row);
      if (index > kMostRows) {
        key_.clear();
        return false;
      }
      key_.push_back(static_cast<char>(place.channel * kBanks + place.bank));
      key_.push_back(static_cast<char>(index));
    }
  }
  return true;
}

std::optional<EmulatorClocks> EmulatorStreams::recall(Channels& channels, EmulatorClocks before,
                                                      const std::vector<std::uint64_t>& blocks) {
  if (!describe(channels, before, blocks)) return std::nullopt;
  const auto found = known_.find(key_);
  if (found == known_.end()) return std::nullopt;
  const Outcome& outcome = found->second;
  const EmulatorClocks after{before.next + static_cast<std::uint64_t>(outcome.now),
                             before.next + outcome.next};
  for (std::size_t c = 0; c < kChannels; ++c) {
    channels[c].set_state(outcome.states[c], after.next);
    for (unsigned bank = 0; bank < kBanks; ++bank)
      channels[c].set_open_row(bank, rows_[c][bank][outcome.open[c][bank]]);
  }
  return after;
}

void EmulatorStreams::remember(const Channels& channels, EmulatorClocks before,
                               EmulatorClocks after) {
  if (key_.empty() || known_.size() >= kMostKnown) return;
  Outcome outcome;
  outcome.now = static_cast<std::int64_t>(after.now - before.next);
  outcome.next = after.next - before.next;
  for (std::size_t c = 0; c < kChannels; ++c) {
    outcome.states[c] = channels[c].state(after.next);
    for (unsigned bank = 0; bank < kBanks; ++bank) {
      const Rows& rows = rows_[c][bank];
      const auto open = std::find(rows.begin(), rows.end(), channels[c].open_row(bank));
      if (open == rows.end()) return;  // a bank that was closed: cannot be said by an index
      outcome.open[c][bank] = static_cast<std::uint8_t>(open - rows.begin());
    }
  }
  known_.emplace(std::move(key_), outcome);
}

}  // namespace plena
