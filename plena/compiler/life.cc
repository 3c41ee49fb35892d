#include "plena/compiler/life.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace plena {

namespace {

struct OperatorName {
  std::string operator()(const NormOp&) const { return "norm"; }
  std::string operator()(const ProductOp& op) const {
    std::string name;
    for (const MatrixUse& use : op.matrices) {
      name += (name.empty() ? "" : "_") + std::string(matrix_role_name(use.role));
    }
    return name;
  }
  std::string operator()(const HeadNormOp&) const { return "head_norm"; }
  std::string operator()(const RotateOp&) const { return "rope"; }
  std::string operator()(const AttentionOp&) const { return "attention"; }
  std::string operator()(const FeedForwardOp&) const { return "feed_forward"; }
  std::string operator()(const ExpertsOp&) const { return "experts"; }
  std::string operator()(const SoftCapOp&) const { return "soft_cap"; }
};

// What an operator does to a value; `first_write` where it needs nothing of what was there.
struct Touch {
  bool touches = false;
  bool first_write = false;
};

struct TouchOf {
  ValueId value;

  [[nodiscard]] Touch result(bool reads, bool writes, bool adds) const {
    return {reads || writes, writes && !reads && !adds};
  }
  Touch operator()(const NormOp& op) const {
    return result(op.from == value, op.to == value, op.add);
  }
  Touch operator()(const ProductOp& op) const {
    return result(op.from == value, op.to == value, op.add);
  }
  Touch operator()(const HeadNormOp& op) const { return result(op.qkv == value, false, false); }
  Touch operator()(const RotateOp& op) const { return result(op.qkv == value, false, false); }
  Touch operator()(const AttentionOp& op) const {
    return result(op.qkv == value, op.to == value, false);
  }
  Touch operator()(const FeedForwardOp& op) const {
    return result(op.from == value, op.to == value, false);
  }
  Touch operator()(const ExpertsOp& op) const {
    const bool reads = op.logits == value || op.up.from == value;
    const bool inside = op.up.to == value || op.down.from == value || op.down.to == value;
    return result(reads, inside || op.to == value, op.add && op.to == value);
  }
  Touch operator()(const SoftCapOp& op) const { return result(op.value == value, false, false); }
};

// The first and the last operator that touch a value, and whether the first one writes it anew.
struct Stretch {
  std::size_t first = 0;
  std::size_t last = 0;
  bool written_first = false;
};

std::optional<Stretch> stretch_of(const std::vector<Operator>& operators, ValueId value) {
  std::optional<Stretch> stretch;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const Touch touch = std::visit(TouchOf{value}, operators[i]);
    if (!touch.touches) continue;
    if (!stretch) stretch = {i, i, touch.first_write};
    stretch->last = i;
    // A norm may be late: what reads its output then reads its input (program.cc).
    const auto* norm = std::get_if<NormOp>(&operators[i]);
    if (norm != nullptr && norm->from == value && i + 1 < operators.size()) stretch->last = i + 1;
  }
  return stretch;
}

}  // namespace

bool Life::meets(const Life& other) const {
  if (endless() || other.endless()) return true;
  for (std::size_t step = 0; step < steps(); ++step) {
    if (has(step) && other.has(step)) return true;
  }
  return false;
}

Life Life::with(const Life& other) const {
  if (endless() || other.endless()) return {};
  std::vector<bool> both = steps_;
  for (std::size_t step = 0; step < both.size(); ++step) {
    if (other.has(step)) both[step] = true;
  }
  return Life(std::move(both));
}

bool is_positioned(const Step& step) {
  return step.op != nullptr && (std::holds_alternative<HeadNormOp>(*step.op) ||
                                std::holds_alternative<RotateOp>(*step.op) ||
                                std::holds_alternative<AttentionOp>(*step.op));
}

StepOrder::StepOrder(const Graph& graph) : graph_(&graph) {
  using Stage = Step::Stage;
  for (const ProgramEntry entry : kProgramEntries) {
    const auto add = [&](Stage stage, const std::vector<Operator>& operators) {
      for (const Operator& op : operators) {
        steps_.push_back({entry, stage, &op, std::visit(OperatorName{}, op)});
      }
    };
    steps_.push_back({entry, Stage::Setup, nullptr, "setup"});
    steps_.push_back({entry, Stage::Embedding, nullptr, "embedding"});
    for (const LayerKind& kind : graph.kinds) add(Stage::Layer, kind.operators);
    steps_.push_back({entry, Stage::HandOver, nullptr, "last token"});
    add(Stage::Ending, graph.ending.operators);
  }
}

Life StepOrder::where(const std::function<bool(const Step&)>& chosen) const {
  std::vector<bool> steps;
  steps.reserve(steps_.size());
  for (const Step& step : steps_) steps.push_back(chosen(step));
  return Life(std::move(steps));
}

Life StepOrder::all(ProgramEntry entry) const {
  return where([&](const Step& step) { return step.entry == entry; });
}

Life StepOrder::of_value(ProgramEntry entry, ValueId value) const {
  std::vector<const Operator*> used;
  std::vector<const LayerKind*> kinds{&graph_->ending};
  for (const LayerKind& kind : graph_->kinds) kinds.push_back(&kind);
  for (const LayerKind* kind : kinds) {
    const auto stretch = stretch_of(kind->operators, value);
    if (!stretch) continue;
    if (!stretch->written_first) return all(entry);
    for (std::size_t i = stretch->first; i <= stretch->last; ++i) {
      used.push_back(&kind->operators[i]);
    }
  }
  return where([&](const Step& step) {
    return step.entry == entry && std::ranges::find(used, step.op) != used.end();
  });
}

Life StepOrder::without_sharing(const Life& life) const {
  if (life.endless()) return life;
  // Layers of a prompt end with the hand-over.
  const auto part_of = [](const Step& step) {
    const bool whole = step.entry != ProgramEntry::Prompt || step.stage < Step::Stage::HandOver;
    return std::pair(step.entry, whole ? Step::Stage::Setup : step.stage);
  };
  std::vector<std::pair<ProgramEntry, Step::Stage>> parts;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (life.has(i)) parts.push_back(part_of(steps_[i]));
  }
  return where(
      [&](const Step& step) { return std::ranges::find(parts, part_of(step)) != parts.end(); });
}

std::string StepOrder::describe(const Life& life) const {
  if (life.endless()) return "always";
  std::string text;
  for (const ProgramEntry entry : kProgramEntries) {
    const Step* first = nullptr;
    const Step* last = nullptr;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].entry != entry || !life.has(i)) continue;
      if (first == nullptr) first = &steps_[i];
      last = &steps_[i];
    }
    if (first == nullptr) continue;
    constexpr const char* kNames[] = {"decode", "block", "batch"};
    text += (text.empty() ? "" : "; ") + std::string(kNames[static_cast<int>(entry)]) + ": " +
            first->name + (first == last ? "" : " … " + last->name);
  }
  return text.empty() ? "never" : text;
}

}  // namespace plena
