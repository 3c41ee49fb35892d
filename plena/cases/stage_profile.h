// --stage-profile-asm: what a run did in each stage of a routed mixture of experts, as the public
// emulator writes it. Stages are told apart by the comments of the generated assembly.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plena/cases/emulator_run.h"
#include "plena/config/settings.h"
#include "plena/sim/engine.h"

namespace plena {

/// In the order of the report.
enum class Stage : std::uint8_t {
  RouterTopk,
  AccumulatorInit,
  Gather,
  ExpertWeightAddress,
  ExpertWeightPrefetch,
  ExpertProjection,
  ExpertActivation,
  ExpertBias,
  ExpertRouteWeight,
  ScatterCombine,
  Other,
};
inline constexpr std::size_t kStageCount = 11;
std::string_view stage_name(Stage stage);  // `router_topk`, …

/// Where an instruction of the program belongs.
struct StageLabel {
  Stage stage = Stage::Other;
  std::optional<std::uint32_t> pair;  // slot of a routed (token, expert) pair

  friend bool operator==(const StageLabel&, const StageLabel&) = default;
};

/// One label a line that holds an instruction (it begins with an upper-case letter), from the
/// comment lines above it.
std::vector<StageLabel> stage_labels(std::string_view assembly);

class StageProfile final : public Observer {
 public:
  /// `memory_time`: as EmulatorOptions has it, of a memory of its own; where empty, HBM is free.
  StageProfile(std::vector<StageLabel> labels, Settings settings, MemoryTime memory_time = {});

  void about_to_run(const Machine& machine, std::uint64_t pc,
                    const Instruction& instruction) override;
  void retired(const Machine& machine, std::uint64_t pc, const Instruction& instruction) override;
  void moved_row(const HbmRow& row) override;

  [[nodiscard]] std::size_t label_count() const { return labels_.size(); }
  /// The report: JSON with a line feed at its end. Seconds are those of the latency.
  [[nodiscard]] std::string json() const;

 private:
  struct Usage {
    std::uint64_t instructions = 0;
    std::uint64_t nanoseconds = 0;
    std::uint64_t hbm_read = 0;
    std::uint64_t hbm_written = 0;
  };
  using Stages = std::array<Usage, kStageCount>;

  template <class Change>
  void change(std::uint64_t pc, Change&& change);
  static Usage total(const Stages& stages);

  std::vector<StageLabel> labels_;
  Settings settings_;
  MemoryTime memory_time_;
  std::uint64_t pc_ = 0;
  std::uint64_t now_ = 0;  // nanoseconds
  Stages stages_{};
  std::map<std::uint32_t, Stages> pairs_;
};

}  // namespace plena
