// Channels of the memory that the public Rust emulator simulates: Ramulator 2, revision be93be78,
// preset HBM2_2Gbps with its data bus occupancy halved (dialect-plena-rs 7). One command a tick, a
// tick a nanosecond; its refresh manager finds no ranks in HBM2, so nothing is ever refreshed.
//
// An access there is always a block of 64 bytes, four requests of 16, and the address map sends
// these to the same row of the same bank of four channels, 0 … 3 or 4 … 7. Channels that have
// always been asked for the same are in the same state, so that one of them stands for all four.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace plena {

/// Where the requests of a block lie, by the emulator's address map (MOP4CLXOR, 8 channels).
struct EmulatorPlace {
  std::uint8_t half = 0;   // channels 0 … 3 or 4 … 7
  std::uint8_t group = 0;  // bank group of the channel: pseudo-channel · 4 + group
  std::uint8_t bank = 0;   // of the channel: group · 4 + bank
  std::uint32_t row = 0;

  [[nodiscard]] unsigned pseudo_channel() const { return group / 4U; }
};
/// `block`: address / 64.
EmulatorPlace emulator_place(std::uint64_t block);

class EmulatorChannel {
 public:
  EmulatorChannel();

  /// Hands over the request of a block between two ticks, `clock` ticks having passed; false: the
  /// queue is full.
  bool offer_read(std::uint64_t block, const EmulatorPlace& place, std::uint64_t clock);
  bool offer_write(std::uint64_t block, const EmulatorPlace& place, std::uint64_t clock);

  /// The tick that ends at `clock`. True when a read is done with it.
  bool tick(std::uint64_t clock);

  static constexpr unsigned kBanks = 32;

  /// The parts of a channel that have times of their own. All parts of a kind are alike.
  enum class Part : std::uint8_t { Channel, PseudoChannel, Group, Bank };
  static constexpr std::size_t kPartKinds = 4;

  /// All that matters of a part of an idle channel for what comes after `clock`, a byte each: the
  /// times until commands may be sent, relative to it; of the channel the mode, of a pseudo-channel
  /// the latest activations. The row that is open in a bank is not part of it.
  using PartState = std::uint64_t;
  [[nodiscard]] PartState state(Part part, unsigned index, std::uint64_t clock) const;
  void set_state(Part part, unsigned index, PartState state, std::uint64_t clock);

  /// The row open in a bank of the channel, or -1.
  [[nodiscard]] std::int64_t open_row(unsigned bank) const { return open_row_[bank]; }
  void set_open_row(unsigned bank, std::int64_t row) { open_row_[bank] = row; }

  /// Nothing waits and nothing is under way.
  [[nodiscard]] bool idle() const {
    return reads_.waiting.empty() && writes_.waiting.empty() && activated_.waiting.empty() &&
           arriving_.empty();
  }

 private:
  enum class Command : std::uint8_t { Activate, Precharge, Read, Write };

  struct Waiting {
    std::uint64_t block = 0;
    std::uint64_t arrived = 0;
    EmulatorPlace place;
    bool write = false;
  };
  // In the order of arrival. Nothing in it is ready before `quiet_until`.
  struct Queue {
    std::vector<Waiting> waiting;
    std::uint64_t quiet_until = 0;
  };
  // When each command may be sent again, by Command.
  using Ready = std::array<std::uint64_t, 4>;

  [[nodiscard]] Command next_command(const Waiting& waiting) const;
  [[nodiscard]] std::uint64_t ready_at(Command command, const EmulatorPlace& place) const {
    const auto c = static_cast<std::size_t>(command);
    const std::uint64_t wide = std::max(channel_[c], pseudo_channel_[place.pseudo_channel()][c]);
    return std::max(wide, std::max(group_[place.group][c], bank_[place.bank][c]));
  }
  [[nodiscard]] const Ready& ready_of(Part part, unsigned index) const;
  bool enqueue(Queue& queue, const Waiting& waiting);
  [[nodiscard]] bool serve(Queue& queue, std::uint64_t clock);
  void open_for(const Waiting& waiting);
  void wake(std::uint64_t at);
  [[nodiscard]] bool awaited(unsigned bank) const;
  void change_mode();
  void send(Command command, const EmulatorPlace& place, std::uint64_t clock);

  Queue reads_;
  Queue writes_;
  Queue activated_;                     // rows opened for them, column command to come
  std::deque<std::uint64_t> arriving_;  // when reads will be done
  bool writing_ = false;

  std::array<std::int64_t, kBanks> open_row_;  // by bank; -1: closed
  Ready channel_{};
  std::array<Ready, 2> pseudo_channel_{};
  std::array<Ready, 8> group_{};
  std::array<Ready, kBanks> bank_{};
  // The latest four of a pseudo-channel, the oldest first.
  std::array<std::array<std::uint64_t, 4>, 2> activates_;
};

}  // namespace plena
