// When a buffer of an on-chip memory is in use: at which steps of which entry of the program.
//
// Two buffers may share room where their lives have no step in common. A layer is one turn of a
// loop: what one turn leaves for the next is in use at every step.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "plena/compiler/graph.h"

namespace plena {

/// The entries of a program: decoding, blocks of a prompt, a token of each of several sequences.
enum class ProgramEntry : std::uint8_t { Decode, Prompt, Sequences };
inline constexpr std::initializer_list<ProgramEntry> kProgramEntries = {
    ProgramEntry::Decode, ProgramEntry::Prompt, ProgramEntry::Sequences};

/// Steps by their index in a StepOrder; none: it lasts for ever, across runs.
class Life {
 public:
  Life() = default;
  explicit Life(std::vector<bool> steps) : steps_(std::move(steps)) {}

  [[nodiscard]] bool endless() const { return steps_.empty(); }
  [[nodiscard]] bool has(std::size_t step) const { return endless() || steps_[step]; }
  /// Steps it knows of; 0 where it is endless.
  [[nodiscard]] std::size_t steps() const { return steps_.size(); }
  [[nodiscard]] bool meets(const Life& other) const;
  /// Both; they are of one step_order, or endless.
  [[nodiscard]] Life with(const Life& other) const;

 private:
  std::vector<bool> steps_;
};

/// One step: what comes before the layers, an operator of a kind of layer or of the ending, or the
/// hand-over of the last token of a prompt to decoding's ending.
struct Step {
  enum class Stage : std::uint8_t { Setup, Embedding, Layer, HandOver, Ending };
  ProgramEntry entry = ProgramEntry::Decode;
  Stage stage = Stage::Setup;
  const Operator* op = nullptr;
  std::string name;
};

/// Whether sequences take this step one by one, with decoding's rows and tiles: it knows positions.
bool is_positioned(const Step& step);

/// The steps of all entries in the order in which a run takes them; kinds of layers one after the
/// other.
class StepOrder {
 public:
  StepOrder() = default;
  /// `graph` outlives it.
  explicit StepOrder(const Graph& graph);

  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }

  /// The steps that `chosen` picks.
  [[nodiscard]] Life where(const std::function<bool(const Step&)>& chosen) const;
  [[nodiscard]] Life all(ProgramEntry entry) const;

  /// A value's steps in one entry: in each kind of layer those from where it is written to where it
  /// is read for the last time; all of them where a layer reads what the one before left.
  [[nodiscard]] Life of_value(ProgramEntry entry, ValueId value) const;

  /// Every step of each entry that `life` has a step of; of prompts, all layers or all of the
  /// ending. What lives so long shares room with other entries alone.
  [[nodiscard]] Life without_sharing(const Life& life) const;

  /// "decode: query_key_value … attention", or "always".
  [[nodiscard]] std::string describe(const Life& life) const;

 private:
  const Graph* graph_ = nullptr;
  std::vector<Step> steps_;
};

}  // namespace plena
