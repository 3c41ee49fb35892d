// What a run did, in numbers that need no clock: instructions, work of the units, HBM traffic.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "plena/config/settings.h"
#include "plena/isa/dialect.h"
#include "plena/sim/engine.h"

namespace plena {

/// Bytes of HBM that hold the elements and scales of transfers; what a controller widens them to is
/// not counted here. A byte that two transfers touch counts twice.
struct HbmTraffic {
  std::uint64_t elements_read = 0;
  std::uint64_t scales_read = 0;
  std::uint64_t elements_written = 0;
  std::uint64_t scales_written = 0;

  friend bool operator==(const HbmTraffic&, const HbmTraffic&) = default;
};

/// Counts a run that it observes.
class Statistics final : public Observer {
 public:
  Statistics(const Settings& settings, const Dialect& dialect)
      : settings_(settings), dialect_(dialect) {}

  void retired(const Machine& machine, std::uint64_t pc, const Instruction& instruction) override;
  void moved_row(const HbmRow& row) override;

  [[nodiscard]] std::uint64_t count(Op op) const { return counts_[static_cast<std::size_t>(op)]; }
  [[nodiscard]] std::uint64_t count(InstructionClass instruction_class) const;
  [[nodiscard]] std::uint64_t total() const;
  /// Products the array added to its accumulators.
  [[nodiscard]] std::uint64_t multiply_adds() const;
  /// Lanes V-type instructions worked on, masked ones included.
  [[nodiscard]] std::uint64_t lane_operations() const;
  [[nodiscard]] const HbmTraffic& traffic() const { return traffic_; }

 private:
  Settings settings_;
  Dialect dialect_;
  std::array<std::uint64_t, kOpcodeCount> counts_{};
  std::uint64_t wide_topk_ = 0;  // V_TOPK over 128 lanes instead of 32
  HbmTraffic traffic_;
};

/// A table for people, of several lines.
std::string to_text(const Statistics& statistics);
nlohmann::ordered_json to_json(const Statistics& statistics);

}  // namespace plena
