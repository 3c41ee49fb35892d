#include "plena/timing/emulator_streams.h"

#include <algorithm>

namespace plena {

namespace {

constexpr std::size_t kMostRows = 255;  // of a bank
constexpr std::size_t kMostKnown = 1024;
constexpr std::size_t kLongest = 1U << 12;  // blocks of a load worth keeping, 2 bytes each

void append_bytes(std::uint64_t value, std::string& key) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_byte(std::size_t value, std::string& key) {
  key.push_back(static_cast<char>(value));
}

}  // namespace

void EmulatorStreams::Numbers::clear() {
  numbers_.fill(kNone);
  next_ = 0;
}

bool EmulatorStreams::Numbers::number(std::size_t part) {
  if (numbers_[part] != kNone) return false;
  numbers_[part] = next_++;
  return true;
}

// Appends a part's number to the key and, where it is new, the state it is in. True when it is new.
bool EmulatorStreams::come_to(const Channels& channels, EmulatorClocks before, PartOfChannel part) {
  Numbers& numbers = numbers_[static_cast<std::size_t>(part.part)];
  const std::size_t place = part.channel * EmulatorChannel::kBanks + part.index;
  const bool is_new = numbers.number(place);
  append_byte(numbers[place], key_);
  if (is_new) {
    parts_.push_back(part);
    append_bytes(channels[part.channel].state(part.part, part.index, before.next), key_);
  }
  return is_new;
}

EmulatorStreams::Bank& EmulatorStreams::new_bank(std::uint8_t channel, std::uint8_t index,
                                                 std::int64_t open) {
  if (bank_count_ == banks_.size()) banks_.emplace_back();
  Bank& bank = banks_[bank_count_++];
  bank.channel = channel;
  bank.index = index;
  bank.rows.assign(1, open);
  return bank;
}

// A bank by its number, with all it is a part of where it is new, and a row by its number there.
bool EmulatorStreams::describe_block(const Channels& channels, EmulatorClocks before,
                                     const EmulatorPlace& place) {
  const std::uint8_t c = place.half;
  if (come_to(channels, before, {Part::Bank, c, place.bank})) {
    const std::int64_t open = channels[c].open_row(place.bank);
    new_bank(c, place.bank, open);
    append_byte(open < 0 ? 0 : 1, key_);
    come_to(channels, before, {Part::Group, c, place.group});
    come_to(channels, before,
            {Part::PseudoChannel, c, static_cast<std::uint8_t>(place.pseudo_channel())});
    come_to(channels, before, {Part::Channel, c, 0});
  }
  const Numbers& banks = numbers_[static_cast<std::size_t>(Part::Bank)];
  auto& rows = banks_[banks[c * EmulatorChannel::kBanks + place.bank]].rows;
  const auto row = static_cast<std::int64_t>(place.row);
  // The latest row is the likely one.
  const auto found = std::find(rows.rbegin(), rows.rend(), row);
  const std::size_t number =
      found == rows.rend() ? rows.size() : static_cast<std::size_t>(rows.rend() - found) - 1;
  if (number == rows.size()) rows.push_back(row);
  append_byte(number, key_);
  return number <= kMostRows;
}

// The key of a load: its parts and rows, numbered as they appear. False where it is too large.
bool EmulatorStreams::describe(const Channels& channels, EmulatorClocks before,
                               const std::vector<std::uint64_t>& blocks) {
  key_.clear();
  if (blocks.size() > kLongest) return false;
  for (Numbers& numbers : numbers_) numbers.clear();
  parts_.clear();
  bank_count_ = 0;
  append_bytes(before.next - before.now, key_);
  for (const std::uint64_t block : blocks) {
    if (describe_block(channels, before, emulator_place(block))) continue;
    key_.clear();
    return false;
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
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const auto& [part, channel, index] = parts_[k];
    channels[channel].set_state(part, index, outcome.states[k], after.next);
  }
  for (std::size_t k = 0; k < bank_count_; ++k) {
    const Bank& bank = banks_[k];
    channels[bank.channel].set_open_row(bank.index, bank.rows[outcome.open[k]]);
  }
  return after;
}

void EmulatorStreams::remember(const Channels& channels, EmulatorClocks before,
                               EmulatorClocks after) {
  if (key_.empty() || known_.size() >= kMostKnown) return;
  Outcome outcome;
  outcome.now = static_cast<std::int64_t>(after.now - before.next);
  outcome.next = after.next - before.next;
  for (const auto& [part, channel, index] : parts_)
    outcome.states.push_back(channels[channel].state(part, index, after.next));
  for (std::size_t k = 0; k < bank_count_; ++k) {
    const Bank& bank = banks_[k];
    const std::int64_t row = channels[bank.channel].open_row(bank.index);
    const auto open = std::ranges::find(bank.rows, row);
    if (open == bank.rows.end()) return;  // a bank that was closed: cannot be said by a number
    outcome.open.push_back(static_cast<std::uint8_t>(open - bank.rows.begin()));
  }
  known_.emplace(std::move(key_), std::move(outcome));
}

}  // namespace plena
