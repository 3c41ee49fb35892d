// One channel of the memory that the public Rust emulator simulates: Ramulator 2, revision
// be93be78, preset HBM2_2Gbps with its data bus occupancy halved (dialect-plena-rs 7). One command
// a tick, a tick a nanosecond; its refresh manager finds no ranks in HBM2, so nothing is ever
// refreshed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace plena {

/// A request of 16 bytes, by the emulator's address map (MOP4CLXOR, 8 channels).
struct EmulatorRequest {
  std::uint64_t number = 0;  // address / 16
  std::uint32_t id = 0;
  bool write = false;
};

/// Where a request lies.
struct EmulatorPlace {
  std::uint8_t channel = 0;
  std::uint8_t group = 0;  // bank group of the channel: pseudo-channel · 4 + group
  std::uint8_t bank = 0;   // of the channel: group · 4 + bank
  std::uint64_t row = 0;

  [[nodiscard]] unsigned pseudo_channel() const { return group / 4U; }
};
EmulatorPlace emulator_place(std::uint64_t number);

class EmulatorChannel {
 public:
  EmulatorChannel();

  /// Hands a request over between two ticks, `clock` ticks having passed; false: its queue is full.
  bool offer(const EmulatorRequest& request, const EmulatorPlace& place, std::uint64_t clock);

  /// The tick that ends at `clock`. Appends the read that is done with it, if any, to `done`.
  void tick(std::uint64_t clock, std::vector<std::uint32_t>& done);

  /// All that matters of an idle channel for what comes after `clock`, as bytes: times until
  /// commands may be sent, relative to it, and the mode. Rows that are open are not part of it.
  static constexpr std::size_t kStateBytes = 4 + 2 * 4 + 8 * 4 + 32 * 4 + 2 * 4 + 1;
  using State = std::array<std::uint8_t, kStateBytes>;
  [[nodiscard]] State state(std::uint64_t clock) const;
  void set_state(const State& state, std::uint64_t clock);

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
    EmulatorRequest request;
    EmulatorPlace place;
    std::uint64_t arrived = 0;
  };
  // In the order of arrival. Nothing in it is ready before `quiet_until`.
  struct Queue {
    std::vector<Waiting> waiting;
    std::uint64_t quiet_until = 0;
  };
  struct Arriving {
    std::uint64_t at = 0;
    std::uint32_t id = 0;
  };
  // When each command may be sent again, by Command.
  using Ready = std::array<std::uint64_t, 4>;

  [[nodiscard]] Command next_command(const Waiting& waiting) const;
  [[nodiscard]] static bool wants_the_same(const Waiting& a, const Waiting& b) {
    return a.place.bank == b.place.bank && a.place.row == b.place.row &&
           a.request.write == b.request.write;
  }
  [[nodiscard]] std::uint64_t ready_at(Command command, const EmulatorPlace& place) const {
    const auto c = static_cast<std::size_t>(command);
    const std::uint64_t wide = std::max(channel_[c], pseudo_channel_[place.pseudo_channel()][c]);
    return std::max(wide, std::max(group_[place.group][c], bank_[place.bank][c]));
  }
  [[nodiscard]] bool serve(Queue& queue, std::uint64_t clock);
  void open_for(const Waiting& waiting);
  void wake(std::uint64_t at);
  [[nodiscard]] bool awaited(unsigned bank) const;
  void change_mode();
  void send(Command command, const EmulatorPlace& place, std::uint64_t clock);

  Queue reads_;
  Queue writes_;
  Queue activated_;  // rows opened for them, column command to come
  std::deque<Arriving> arriving_;
  bool writing_ = false;

  std::array<std::int64_t, 32> open_row_;  // by bank; -1: closed
  Ready channel_{};
  std::array<Ready, 2> pseudo_channel_{};
  std::array<Ready, 8> group_{};
  std::array<Ready, 32> bank_{};
  // The latest four of a pseudo-channel, the oldest first.
  std::array<std::array<std::uint64_t, 4>, 2> activates_;
};

}  // namespace plena
