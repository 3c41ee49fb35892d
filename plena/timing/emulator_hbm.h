// The memory of the profile `plena-rs`: blocking accesses of 64 bytes, four requests each, as the
// public Rust emulator makes them (dialect-plena-rs 6 and 7).
#pragma once

#include <array>
#include <vector>

#include "plena/timing/emulator_channel.h"
#include "plena/timing/emulator_streams.h"
#include "plena/timing/hbm_model.h"

namespace plena {

/// A transfer runs to its end when it starts: nothing else happens meanwhile, since this memory
/// goes with serial overlap only.
class EmulatorHbm final : public HbmModel {
 public:
  /// `remembers`: loads that were seen before, in every respect that matters, are not simulated
  /// again; the times are the same.
  explicit EmulatorHbm(std::uint32_t clock_mhz, bool remembers = true)
      : clock_(kTickFs, clock_mhz), remembers_(remembers) {}

  Ticket start(const TransferStart& start, const TransferRows& rows) override;
  Cycle delivered(Ticket /*ticket*/, std::uint32_t /*first*/, std::uint32_t /*last*/) override {
    return complete_;
  }
  Cycle accepted(Ticket /*ticket*/) override { return complete_; }
  Cycle complete(Ticket /*ticket*/) override { return complete_; }
  bool accepted_by(Ticket /*ticket*/, Cycle horizon) override { return complete_ <= horizon; }
  bool complete_by(Ticket /*ticket*/, Cycle horizon) override { return complete_ <= horizon; }
  Cycle first_complete(std::span<const Ticket> /*tickets*/) override { return complete_; }
  void release(Ticket /*ticket*/) override {}
  /// A request of 16 bytes a pseudo-channel and two ticks, eight channels: 128 bytes a tick.
  [[nodiscard]] PeakRate peak() const override { return clock_.rate(4, 1); }

 private:
  static constexpr std::uint64_t kTickFs = 1'000'000;  // 1 ns

  void load(const TransferRows& rows);
  void store(const TransferRows& rows);
  void store_bytes(std::uint64_t address, std::uint64_t bytes);
  void read(const std::vector<std::uint64_t>& blocks);
  void simulate_read(const std::vector<std::uint64_t>& blocks);
  void write(std::uint64_t block);
  void wait_until(std::uint64_t instant);
  std::size_t tick();

  ClockRatio clock_;
  EmulatorStreams::Channels channels_;
  std::uint64_t now_ = 0;   // instant, in ticks
  std::uint64_t next_ = 0;  // the tick that comes next; tick t happens at instant t
  Cycle complete_ = 0;
  bool remembers_;
  EmulatorStreams streams_;
};

}  // namespace plena
