// Single operators as graphs of their own, with inputs and weights that every number format of the
// machine holds exactly, and what they come to in f32.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plena/compiler/graph.h"
#include "plena/config/settings.h"

namespace plena::bench {

enum class OperatorKind : std::uint8_t { Linear, FeedForward, Attention, RmsNorm, LayerNorm };

struct OperatorShape {
  OperatorKind kind = OperatorKind::Linear;
  std::uint32_t rows = 0;
  std::uint32_t inputs = 0;   // width of a row; of attention: derived
  std::uint32_t outputs = 0;  // of linear
  std::uint32_t hidden = 0;   // of a feed-forward layer
  bool bias = false;          // of linear
  bool gain = false;          // of a norm
  HeadShape heads;            // of attention
};

/// A graph that points into the tensors kept here; not to be moved.
class OperatorGraph {
 public:
  /// The settings decide how attention's heads lie in the rows it starts from.
  OperatorGraph(const OperatorShape& shape, const Settings& settings);
  OperatorGraph(const OperatorGraph&) = delete;
  OperatorGraph& operator=(const OperatorGraph&) = delete;

  [[nodiscard]] const Graph& graph() const { return graph_; }
  /// The result in f32 arithmetic [rows, width], in the lanes the machine has it in.
  [[nodiscard]] const std::vector<float>& expected() const { return expected_; }
  [[nodiscard]] std::uint32_t width() const { return width_; }

 private:
  std::vector<float> draw(std::size_t count, float step);
  Tensor keep(std::vector<float> values, std::uint64_t rows, std::uint64_t columns);
  void add_product(MatrixRole role, std::uint32_t outputs, std::uint32_t inputs, float factor);
  std::vector<float> multiply(const std::vector<float>& rows, MatrixRole role, float factor) const;

  void add_identities();

  void build_linear();
  void build_feed_forward();
  void build_norm();
  void build_attention(const Settings& settings);

  OperatorShape shape_;
  Graph graph_;
  std::vector<std::vector<float>> kept_;
  std::vector<float> input_;  // [rows, inputs]
  std::vector<float> expected_;
  std::uint32_t width_ = 0;
  std::uint64_t state_ = 1;
};

}  // namespace plena::bench
