#include "plena/compiler/graph.h"

#include <numeric>

#include <fmt/format.h>

namespace plena {

std::string_view matrix_role_name(MatrixRole role) {
  switch (role) {
    case MatrixRole::Query:
      return "query";
    case MatrixRole::Key:
      return "key";
    case MatrixRole::Value:
      return "value";
    case MatrixRole::AttentionOutput:
      return "attention_output";
    case MatrixRole::Gate:
      return "gate";
    case MatrixRole::Up:
      return "up";
    case MatrixRole::Down:
      return "down";
    case MatrixRole::Router:
      return "router";
    case MatrixRole::Logits:
      return "logits";
  }
  return "";
}

void Embedding::read_row(std::uint64_t row, std::span<float> to) const {
  table.read_row(row, to);
  const double sum = centred ? std::accumulate(to.begin(), to.end(), 0.0) : 0.0;
  const auto mean = static_cast<float>(sum / static_cast<double>(to.size()));
  for (float& value : to) value = scale * (value - mean);
  turn.turn(to);
}

}  // namespace plena
