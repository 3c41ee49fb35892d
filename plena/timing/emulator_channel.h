// One channel of the memory that the public Rust emulator simulates: Ramulator 2, revision
// be93be78, preset HBM2_2Gbps with its data bus occupancy halved (dialect-plena-rs 7). One command
// a tick, a tick a nanosecond; its refresh manager finds no ranks in HBM2, so nothing is ever
// refreshed.
#pragma once

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

  /// Nothing waits and nothing is under way.
  [[nodiscard]] bool idle() const {
    return reads_.empty() && writes_.empty() && activated_.empty() && arriving_.empty();
  }

 private:
  enum class Command : std::uint8_t { Activate, Precharge, Read, Write };

  struct Waiting {
    EmulatorRequest request;
    EmulatorPlace place;
    std::uint64_t arrived = 0;
  };
  struct Arriving {
    std::uint64_t at = 0;
    std::uint32_t id = 0;
  };
  // When each command may be sent again, by Command.
  using Ready = std::array<std::uint64_t, 4>;

  static constexpr std::size_t kNone = ~std::size_t{0};

  [[nodiscard]] Command next_command(const Waiting& waiting) const;
  [[nodiscard]] bool ready(Command command, const EmulatorPlace& place, std::uint64_t clock) const;
  [[nodiscard]] std::size_t best(const std::vector<Waiting>& queue, std::uint64_t clock) const;
  [[nodiscard]] bool serve(std::vector<Waiting>& queue, std::uint64_t clock);
  [[nodiscard]] bool awaited(unsigned bank) const;
  void change_mode();
  void send(Command command, const EmulatorPlace& place, std::uint64_t clock);

  std::vector<Waiting> reads_;
  std::vector<Waiting> writes_;
  std::vector<Waiting> activated_;  // rows opened for them, column command to come
  std::deque<Arriving> arriving_;
  bool writing_ = false;

  std::array<std::int64_t, 32> open_row_;  // by bank; -1: closed
  Ready channel_{};
  std::array<Ready, 2> pseudo_channel_{};
  std::array<Ready, 8> group_{};
  std::array<Ready, 32> bank_{};
  std::array<std::deque<std::uint64_t>, 2> activates_;  // latest four of a pseudo-channel
};

}  // namespace plena
