// What a run tells of itself in time: who listens sees every instruction, transfer and command of
// the memory, with its cycle.
#pragma once

#include <cstdint>
#include <span>

#include "plena/dram/command.h"
#include "plena/timing/clock_ratio.h"
#include "plena/timing/unit.h"

namespace plena {

/// One instruction as it was placed in time. A transfer's `complete` is 0 here: it is told later.
struct IssueEvent {
  std::uint32_t pc = 0;
  Unit unit{};
  Cycle issue = 0;
  Cycle complete = 0;
  std::uint64_t stall = 0;  // cycles it was the next to issue and could not
  Cause cause{};            // of the stall
};

/// One transfer, told when it is complete: later than instructions that issued behind it.
struct TransferEvent {
  std::uint32_t pc = 0;
  Unit unit{};
  Cycle issue = 0;
  Cycle complete = 0;
  std::uint64_t bursts = 0;
};

/// Watches a run in time, for traces and reports. `issued` comes in program order.
class TimelineListener {
 public:
  virtual ~TimelineListener() = default;
  virtual void issued(const IssueEvent& event) = 0;
  virtual void transferred(const TransferEvent& event) = 0;
  /// Commands a DRAM controller sent, in order within each channel; `clock` tells the cycles of
  /// their ticks. Told some time later, the last when nobody listens any more. The ideal memory and
  /// that of plena-rs tell none.
  virtual void commanded(std::span<const dram::CommandRecord> commands, const ClockRatio& clock);
};

inline void TimelineListener::commanded(std::span<const dram::CommandRecord> /*commands*/,
                                        const ClockRatio& /*clock*/) {}

}  // namespace plena
