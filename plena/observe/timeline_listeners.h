// Several listeners of one timed run, each told in turn.
#pragma once

#include <vector>

#include "plena/timing/timeline.h"

namespace plena {

class TimelineListeners final : public TimelineListener {
 public:
  /// The listener must outlive this.
  void add(TimelineListener& listener) { listeners_.push_back(&listener); }
  /// What a clock is given: the only one, or this. Call it after the last add().
  [[nodiscard]] TimelineListener* listener() {
    return listeners_.size() == 1 ? listeners_.front() : this;
  }

  void issued(const IssueEvent& event) override {
    for (TimelineListener* listener : listeners_) listener->issued(event);
  }
  void transferred(const TransferEvent& event) override {
    for (TimelineListener* listener : listeners_) listener->transferred(event);
  }
  void commanded(std::span<const dram::CommandRecord> commands, const ClockRatio& clock) override {
    for (TimelineListener* listener : listeners_) listener->commanded(commands, clock);
  }

 private:
  std::vector<TimelineListener*> listeners_;
};

}  // namespace plena
