#include "plena/cases/stage_profile.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plena {

namespace {

constexpr std::array<std::string_view, kStageCount> kStageNames = {"router_topk",
                                                                   "accumulator_init",
                                                                   "gather",
                                                                   "expert_weight_address",
                                                                   "expert_weight_prefetch",
                                                                   "expert_projection",
                                                                   "expert_activation",
                                                                   "expert_bias",
                                                                   "expert_route_weight",
                                                                   "scatter_combine",
                                                                   "other"};

// A comment that has `phrase`, and `also` where that is not empty, begins `stage`; where `within`
// is named, only if that stage is going on. The first row that fits decides.
struct StageRule {
  Stage stage;
  std::string_view phrase;
  std::string_view also = {};
  std::optional<Stage> within = std::nullopt;
};

constexpr std::string_view kAllocatePair = "allocate vram matrix step6_pair";

constexpr auto kStageRules = std::to_array<StageRule>({
    {Stage::RouterTopk, "gpt-oss router"},
    {Stage::RouterTopk, "router token"},
    {Stage::RouterTopk, "router dot token"},
    {Stage::ScatterCombine, "gpt-oss vram scatter-add"},
    {Stage::ScatterCombine, "_scatter"},
    {Stage::ExpertRouteWeight, kAllocatePair, "_route"},
    {Stage::ExpertRouteWeight, "materialize route weight"},
    {Stage::ExpertRouteWeight, "vram matrix mul"},
    {Stage::ExpertRouteWeight, "true-zero vram rows", {}, Stage::ExpertRouteWeight},
    {Stage::AccumulatorInit, "step6_device_routing_acc"},
    {Stage::AccumulatorInit, "true-zero vram rows"},
    {Stage::Gather, "gpt-oss gather token rows"},
    {Stage::Gather, "gather pair"},
    {Stage::Gather, "clear gather padding"},
    {Stage::Gather, kAllocatePair, "_gather"},
    {Stage::ExpertBias, "dynamic expert bias add"},
    {Stage::ExpertActivation, kAllocatePair, "_sigmoid"},
    {Stage::ExpertActivation, "tile row min fp"},
    {Stage::ExpertActivation, "tile row max fp"},
    {Stage::ExpertActivation, "vram fill zero", {}, Stage::ExpertActivation},
    {Stage::ExpertActivation, "vram matrix add", {}, Stage::ExpertActivation},
    {Stage::ExpertWeightAddress, "dynamic hbm weight prefetch"},
    {Stage::ExpertWeightAddress, "expert_id_to_weight_base"},
    {Stage::ExpertWeightPrefetch, "subblock ["},
    {Stage::ExpertProjection, "sub projection"},
    {Stage::ExpertProjection, "vram block"},
    {Stage::ExpertProjection, kAllocatePair},
});

Stage stage_of(std::string_view comment, Stage current) {
  std::string text(comment);
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const auto fits = [&](const StageRule& rule) {
    return text.find(rule.phrase) != std::string::npos &&
           text.find(rule.also) != std::string::npos && (!rule.within || *rule.within == current);
  };
  const auto found = std::find_if(kStageRules.begin(), kStageRules.end(), fits);
  return found == kStageRules.end() ? current : found->stage;
}

// The number in `step6_pair12` or `pair=12`.
std::optional<std::uint32_t> pair_of(std::string_view comment) {
  for (const std::string_view prefix : {"step6_pair", "pair="}) {
    for (std::size_t at = 0; (at = comment.find(prefix, at)) != std::string_view::npos;) {
      at += prefix.size();
      std::uint32_t pair = 0;
      const char* const begin = comment.data() + at;
      if (std::from_chars(begin, comment.data() + comment.size(), pair).ec == std::errc())
        return pair;
    }
  }
  return std::nullopt;
}

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r\v\f";
  const std::size_t begin = line.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kSpace) - begin + 1);
}

void read_comment(std::string_view comment, StageLabel& label) {
  label.stage = stage_of(comment, label.stage);
  const bool between_pairs =
      label.stage == Stage::RouterTopk || label.stage == Stage::AccumulatorInit;
  if (const auto pair = pair_of(comment)) {
    label.pair = pair;
  } else if (between_pairs) {
    label.pair = std::nullopt;
  }
}

}  // namespace

std::string_view stage_name(Stage stage) {
  return kStageNames[static_cast<std::size_t>(stage)];
}

std::vector<StageLabel> stage_labels(std::string_view assembly) {
  std::vector<StageLabel> labels;
  StageLabel label;
  for (std::size_t begin = 0; begin < assembly.size();) {
    const std::size_t end = std::min(assembly.find('\n', begin), assembly.size());
    const std::string_view line = trimmed(assembly.substr(begin, end - begin));
    begin = end + 1;
    if (line.starts_with(';')) {
      read_comment(line, label);
    } else if (!line.empty() && line.front() >= 'A' && line.front() <= 'Z') {
      labels.push_back(label);
    }
  }
  return labels;
}

StageProfile::StageProfile(std::vector<StageLabel> labels, Settings settings,
                           MemoryTime memory_time)
    : labels_(std::move(labels)),
      settings_(std::move(settings)),
      memory_time_(std::move(memory_time)) {}

// Instructions after the last label belong to no stage.
template <class Change>
void StageProfile::change(std::uint64_t pc, Change&& change) {
  const StageLabel label = pc < labels_.size() ? labels_[pc] : StageLabel{};
  const auto stage = static_cast<std::size_t>(label.stage);
  change(stages_[stage]);
  if (label.pair) change(pairs_[*label.pair][stage]);
}

void StageProfile::about_to_run(const Machine& /*machine*/, std::uint64_t pc,
                                const Instruction& /*instruction*/) {
  pc_ = pc;
}

void StageProfile::retired(const Machine& machine, std::uint64_t pc,
                           const Instruction& instruction) {
  const std::uint64_t start = now_;
  const bool transfers = row_of(instruction.op).instruction_class == InstructionClass::Memory;
  now_ = transfers && memory_time_ ? memory_time_(machine, instruction, start)
                                   : start + emulator_cycles(instruction, settings_);
  change(pc, [&](Usage& usage) {
    ++usage.instructions;
    usage.nanoseconds += now_ - start;  // 1 cycle is 1 ns
  });
}

void StageProfile::moved_row(const HbmRow& row) {
  const EmulatorTraffic traffic = emulator_traffic(row);
  change(pc_, [&](Usage& usage) {
    usage.hbm_read += traffic.read;
    usage.hbm_written += traffic.written;
  });
}

StageProfile::Usage StageProfile::total(const Stages& stages) {
  Usage sum;
  for (const Usage& usage : stages) {
    sum.instructions += usage.instructions;
    sum.nanoseconds += usage.nanoseconds;
    sum.hbm_read += usage.hbm_read;
    sum.hbm_written += usage.hbm_written;
  }
  return sum;
}

namespace {

double seconds(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

double fraction(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string StageProfile::json() const {
  using Json = nlohmann::ordered_json;
  const Usage all = total(stages_);
  Json stages = Json::object();
  for (std::size_t k = 0; k < kStageCount; ++k) {
    const Usage& usage = stages_[k];
    stages[std::string(kStageNames[k])] = {
        {"instructions", usage.instructions},
        {"seconds", seconds(usage.nanoseconds)},
        {"instruction_fraction", fraction(usage.instructions, all.instructions)},
        {"time_fraction", fraction(usage.nanoseconds, all.nanoseconds)},
        {"hbm_bytes_read", usage.hbm_read},
        {"hbm_bytes_written", usage.hbm_written}};
  }
  const auto describe = [](const Usage& usage) {
    return Json{{"instructions", usage.instructions},
                {"seconds", seconds(usage.nanoseconds)},
                {"hbm_bytes_read", usage.hbm_read},
                {"hbm_bytes_written", usage.hbm_written}};
  };
  Json pairs = Json::object();
  for (const auto& [pair, pair_stages] : pairs_) {
    Json entry = describe(total(pair_stages));
    for (std::size_t k = 0; k < kStageCount; ++k)
      entry["stages"][std::string(kStageNames[k])] = describe(pair_stages[k]);
    pairs[std::to_string(pair)] = std::move(entry);
  }
  const Json report = {
      {"schema_version", 1},
      {"label_count", labels_.size()},
      {"total_instructions_executed", all.instructions},
      {"total_profiled_seconds", seconds(all.nanoseconds)},
      {"total_hbm_bytes_read", all.hbm_read},
      {"total_hbm_bytes_written", all.hbm_written},
      {"stages", stages},
      {"pairs", pairs},
      {"caveat", fmt::format("Stages and pairs are read from the comments of the assembly. "
                             "Time is that of instructions{}. Bytes are whole 64-byte "
                             "blocks, by the instruction that moved them. A pair is a "
                             "slot of the program, not an expert.",
                             memory_time_ ? " and their transfers" : "; HBM is free")}};
  return report.dump(2) + "\n";
}

}  // namespace plena
