// Several observers of one run, each told in turn.
#pragma once

#include <utility>
#include <vector>

#include "plena/sim/engine.h"

namespace plena {

class Observers final : public Observer {
 public:
  /// The observer must outlive this.
  void add(Observer& observer) { observers_.push_back(&observer); }
  /// What a run is given: nothing, the only one, or this. Call it after the last add().
  [[nodiscard]] Observer* observer() {
    if (observers_.empty()) return nullptr;
    return observers_.size() == 1 ? observers_.front() : this;
  }

  void about_to_run(const Machine& machine, std::uint64_t pc,
                    const Instruction& instruction) override {
    for (Observer* observer : observers_) observer->about_to_run(machine, pc, instruction);
  }
  void moved_row(const HbmRow& row) override {
    for (Observer* observer : observers_) observer->moved_row(row);
  }
  void retired(const Machine& machine, std::uint64_t pc, const Instruction& instruction) override {
    for (Observer* observer : observers_) observer->retired(machine, pc, instruction);
  }

 private:
  std::vector<Observer*> observers_;
};

}  // namespace plena
