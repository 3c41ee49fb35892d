// The memory behind the transfer units: when rows of a transfer arrive (timing.md, rule 6).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "plena/base/error.h"
#include "plena/dram/statistics.h"
#include "plena/timing/clock_ratio.h"
#include "plena/timing/timeline.h"
#include "plena/timing/transfer_rows.h"
#include "plena/timing/unit.h"

namespace plena {

/// Names a transfer while it is alive.
using Ticket = std::uint32_t;

/// What one transfer needs beside its rows.
struct TransferStart {
  Unit unit{};
  Cycle issue = 0;
  Cycle before = 1;  // cycles from issue to the first burst offered
  Cycle after = 3;   // cycles from a row's last burst to its delivery
};

/// What went over the memory's pins, in bursts of 32 bytes.
struct BurstTraffic {
  std::uint64_t read = 0;
  std::uint64_t written = 0;

  [[nodiscard]] std::uint64_t total() const { return read + written; }
};

/// Time in the memory goes on only as far as a question needs. Transfers start in the order of
/// their issue; a question may be asked at any time, and answers never change.
class HbmModel {
 public:
  virtual ~HbmModel() = default;

  virtual Ticket start(const TransferStart& start, const TransferRows& rows) = 0;

  /// When rows first … last have been delivered (a store: taken by the memory).
  virtual Cycle delivered(Ticket ticket, std::uint32_t first_row, std::uint32_t last_row) = 0;
  /// When the last burst of a transfer has been accepted by the memory.
  virtual Cycle accepted(Ticket ticket) = 0;
  /// When the last row has been delivered.
  virtual Cycle complete(Ticket ticket) = 0;
  /// The same two as questions that let the memory go on no further than `horizon`.
  virtual bool accepted_by(Ticket ticket, Cycle horizon) = 0;
  virtual bool complete_by(Ticket ticket, Cycle horizon) = 0;
  /// The earliest completion among some transfers.
  virtual Cycle first_complete(std::span<const Ticket> tickets) = 0;
  /// Nobody will ask about this transfer again.
  virtual void release(Ticket ticket) = 0;
  /// All transfers are complete: brings what is counted up to date.
  virtual void catch_up() {}

  [[nodiscard]] virtual PeakRate peak() const = 0;
  /// What its controller counted; nothing where there is none.
  [[nodiscard]] virtual std::optional<dram::ChannelStatistics> controller_statistics() const {
    return std::nullopt;
  }
  /// Bursts in its queues at this moment of its own time.
  [[nodiscard]] virtual std::uint64_t queued_bursts() const { return 0; }
  [[nodiscard]] const BurstTraffic& traffic() const { return traffic_; }
  /// Counts bursts that an issue model moved without a start().
  void note_traffic(bool write, std::uint64_t bursts) {
    (write ? traffic_.written : traffic_.read) += bursts;
  }
  /// Tells it of commands from now on, where there are any; null: nobody.
  virtual void set_listener(TimelineListener* /*listener*/) {}
  /// Why the memory cannot go on, if it cannot: requests that never finish. All answers are 0 then.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 protected:
  BurstTraffic traffic_;
  std::optional<Error> failure_;
};

}  // namespace plena
