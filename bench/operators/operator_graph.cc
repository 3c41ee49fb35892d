#include "operator_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

namespace plena::bench {

namespace {

constexpr float kEpsilon = 1e-5F;
constexpr float kStep = 0.25F;        // of inputs and weights: multiples of it from -1 to 1
constexpr std::uint64_t kLevels = 9;  // so that E4M3 holds each of them, whatever its scale
constexpr ValueId kInput = 0;
constexpr ValueId kResult = 1;

LaneMap dense_lanes(std::size_t width) {
  LaneMap lanes(width);
  std::iota(lanes.begin(), lanes.end(), 0U);
  return lanes;
}

Value dense(std::string name, std::uint32_t width) {
  return {std::move(name), Layout::Dense, width};
}

}  // namespace

OperatorGraph::OperatorGraph(const OperatorShape& shape, const Settings& settings) : shape_(shape) {
  graph_.rows_in_order = true;
  graph_.context = shape.rows;
  graph_.residual = kInput;
  graph_.logits = kResult;
  graph_.kinds.emplace_back();
  graph_.layers.emplace_back();
  graph_.heads = {1, 1, shape.inputs};
  switch (shape.kind) {
    case OperatorKind::Linear:
      build_linear();
      break;
    case OperatorKind::FeedForward:
      build_feed_forward();
      break;
    case OperatorKind::RmsNorm:
    case OperatorKind::LayerNorm:
      build_norm();
      break;
    case OperatorKind::Attention:
      build_attention(settings);
      break;
  }
  graph_.head_order = plain_order(graph_.heads.head_dim);
  graph_.dim = shape_.inputs;
  graph_.vocab = std::max(shape_.rows, width_);
  input_.resize(std::size_t{graph_.vocab} * shape_.inputs);
  graph_.tokens.table = keep(input_, graph_.vocab, shape_.inputs);
}

// SplitMix64, cut to a few levels.
std::vector<float> OperatorGraph::draw(std::size_t count, float step) {
  std::vector<float> values(count);
  for (float& value : values) {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    value = step * (static_cast<float>((z ^ z >> 31) % kLevels) - 4);
  }
  return values;
}

Tensor OperatorGraph::keep(std::vector<float> values, std::uint64_t rows, std::uint64_t columns) {
  kept_.push_back(std::move(values));
  return Tensor::f32(kept_.back(), rows, columns);
}

void OperatorGraph::add_product(MatrixRole role, std::uint32_t outputs, std::uint32_t inputs,
                                float factor) {
  Matrix matrix;
  matrix.weight = keep(draw(std::size_t{outputs} * inputs, kStep), outputs, inputs);
  matrix.factor = factor;
  graph_.layers[0].matrices[role].push_back(std::move(matrix));
}

// rows W^T, in f64 rounded once.
std::vector<float> OperatorGraph::multiply(const std::vector<float>& rows, MatrixRole role,
                                           float factor) const {
  const Tensor& weight = graph_.layers[0].matrices.at(role)[0].weight;
  const std::vector<float> w = weight.values();
  const std::size_t inputs = weight.columns();
  const std::size_t outputs = weight.rows();
  std::vector<float> y(rows.size() / inputs * outputs);
  for (std::size_t i = 0; i < y.size(); ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < inputs; ++k) {
      sum += double{rows[i / outputs * inputs + k]} * double{w[i % outputs * inputs + k]};
    }
    y[i] = factor * static_cast<float>(sum);
  }
  return y;
}

void OperatorGraph::build_linear() {
  width_ = shape_.outputs;
  graph_.values = {dense("x", shape_.inputs), dense("y", width_)};
  input_ = draw(std::size_t{shape_.rows} * shape_.inputs, kStep);
  add_product(MatrixRole::Down, width_, shape_.inputs, 1);
  expected_ = multiply(input_, MatrixRole::Down, 1);
  ProductOp product{.from = kInput,
                    .to = kResult,
                    .matrices = {{MatrixRole::Down, Layout::Dense, width_}},
                    .bias = {},
                    .add = false};
  if (shape_.bias) {
    graph_.kinds[0].vectors.push_back({"bias", Layout::Dense, width_});
    graph_.layers[0].vectors.push_back(draw(width_, kStep));
    product.bias = 0;
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      expected_[i] += graph_.layers[0].vectors[0][i % width_];
    }
  }
  graph_.kinds[0].operators.emplace_back(product);
}

void OperatorGraph::build_feed_forward() {
  constexpr ValueId kHidden = 2;
  width_ = shape_.inputs;
  graph_.values = {dense("x", width_), dense("y", width_), dense("hidden", shape_.hidden)};
  input_ = draw(std::size_t{shape_.rows} * shape_.inputs, kStep / 4);
  // A gated SiLU has the negatives of both matrices (FeedForwardOp).
  add_product(MatrixRole::Gate, shape_.hidden, width_, -1);
  add_product(MatrixRole::Up, shape_.hidden, width_, -1);
  add_product(MatrixRole::Down, width_, shape_.hidden, 1);
  std::vector<float> hidden = multiply(input_, MatrixRole::Gate, 1);
  const std::vector<float> up = multiply(input_, MatrixRole::Up, 1);
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    hidden[i] = hidden[i] / (1 + std::exp(-hidden[i])) * up[i];
  }
  expected_ = multiply(hidden, MatrixRole::Down, 1);
  FeedForwardOp feed_forward;
  feed_forward.from = kInput;
  feed_forward.to = kHidden;
  graph_.kinds[0].operators.emplace_back(feed_forward);
  graph_.kinds[0].operators.emplace_back(
      ProductOp{.from = kHidden,
                .to = kResult,
                .matrices = {{MatrixRole::Down, Layout::Dense, width_}},
                .bias = {},
                .add = false});
}

// LayerNorm is an RMSNorm of rows without a mean, which whatever writes them sees to (norm.cc).
void OperatorGraph::build_norm() {
  width_ = shape_.inputs;
  graph_.values = {dense("x", width_), dense("y", width_)};
  input_ = draw(std::size_t{shape_.rows} * width_, kStep);
  std::vector<float> gain(width_, 1.0F);
  NormOp norm{.from = kInput,
              .to = kResult,
              .epsilon = kEpsilon * static_cast<float>(width_),
              .gain = {},
              .add = false};
  if (shape_.gain) {
    gain = draw(width_, kStep);
    graph_.kinds[0].vectors.push_back({"gain", Layout::Dense, width_});
    graph_.layers[0].vectors.push_back(gain);
    norm.gain = 0;
  }
  graph_.tokens.centred = shape_.kind == OperatorKind::LayerNorm;
  // Rows whose mean is 0 stay as they are when they are centred.
  for (std::size_t i = 1; graph_.tokens.centred && i < input_.size(); i += 2) {
    input_[i] = -input_[i - 1];
  }
  for (std::size_t row = 0; row < shape_.rows; ++row) {
    const auto x = std::span(input_).subspan(row * width_, width_);
    double mean = 0;
    for (const float value : x) mean += double{value} / width_;
    if (!graph_.tokens.centred) mean = 0;
    double squares = 0;
    for (const float value : x) squares += (value - mean) * (value - mean);
    const double scale = 1 / std::sqrt(squares + double{norm.epsilon});
    for (std::size_t k = 0; k < width_; ++k) {
      expected_.push_back(static_cast<float>((x[k] - mean) * scale * double{gain[k]}));
    }
  }
  graph_.kinds[0].operators.emplace_back(norm);
}

void OperatorGraph::add_identities() {
  const HeadShape& heads = shape_.heads;
  ProductOp product{.from = kInput, .to = 2, .matrices = {}, .bias = {}, .add = false};
  std::size_t first = 0;
  for (const auto& [role, layout, count] :
       {std::tuple{MatrixRole::Query, Layout::Queries, heads.heads},
        std::tuple{MatrixRole::Key, Layout::Keys, heads.kv_heads},
        std::tuple{MatrixRole::Value, Layout::Values, heads.kv_heads}}) {
    const std::size_t rows = std::size_t{count} * heads.head_dim;
    std::vector<float> identity(rows * shape_.inputs, 0.0F);
    for (std::size_t i = 0; i < rows; ++i) identity[i * shape_.inputs + first + i] = 1;
    first += rows;
    Matrix matrix;
    matrix.weight = keep(std::move(identity), rows, shape_.inputs);
    graph_.layers[0].matrices[role].push_back(std::move(matrix));
    product.matrices.push_back({role, layout, 0});
  }
  graph_.kinds[0].operators.emplace_back(product);
}

// Every position sees every other. Rows start as [q, k, v] in the lanes that attention reads, so
// that storing K and V counts, too. Where several heads of a group share a tile of K, blocks pack
// the queries as they come out of a product: then there is one, with identities as matrices.
void OperatorGraph::build_attention(const Settings& settings) {
  const HeadShape& heads = shape_.heads;
  const std::size_t dim = heads.head_dim;
  const std::size_t rows = shape_.rows;
  graph_.heads = heads;
  const auto order = plain_order(heads.head_dim);
  LaneMap queries;
  LaneMap keys;
  bool shared = false;
  // Rows are as wide as the layout makes them, and the layout follows from how wide they are.
  for (std::uint32_t before = 0; before != shape_.inputs || before == 0;) {
    before = shape_.inputs;
    const auto layout =
        lay_out_heads(heads, settings.mlen, settings.blen, {before, shape_.rows}).value();
    queries = query_lanes(heads, layout, order, settings.mlen);
    keys = key_lanes(heads, layout, order, settings.mlen);
    shared = layout.groups > 1;
    shape_.inputs = static_cast<std::uint32_t>(queries.size() + 2 * keys.size());
  }
  width_ = static_cast<std::uint32_t>(queries.size());
  constexpr ValueId kTurned = 2;
  graph_.values = {{"q, k, v", Layout::Qkv, 0}, {"y", Layout::Outputs, 0}};
  if (shared) {
    shape_.inputs = (heads.heads + 2 * heads.kv_heads) * heads.head_dim;
    graph_.values[kInput] = dense("x", shape_.inputs);
    graph_.values.push_back({"q, k, v", Layout::Qkv, 0});
    add_identities();
  }

  const std::size_t width_q = heads.heads * dim;
  const std::size_t width_kv = heads.kv_heads * dim;
  const std::vector<float> q = draw(rows * width_q, kStep);
  const std::vector<float> k = draw(rows * width_kv, kStep);
  const std::vector<float> v = draw(rows * width_kv, kStep);
  std::vector<float> y(rows * width_q);
  std::vector<double> weight(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto append = [&](const LaneMap& lanes, const std::vector<float>& from, std::size_t n) {
      for (const std::uint32_t lane : lanes) {
        input_.push_back(lane == kPadding ? 0 : from[row * n + lane]);
      }
    };
    if (shared) {
      append(dense_lanes(width_q), q, width_q);
      append(dense_lanes(width_kv), k, width_kv);
      append(dense_lanes(width_kv), v, width_kv);
    } else {
      append(queries, q, width_q);
      append(keys, k, width_kv);
      append(keys, v, width_kv);
    }
    for (std::size_t head = 0; head < heads.heads; ++head) {
      const std::size_t kv = head / (heads.heads / heads.kv_heads);
      double sum = 0;
      for (std::size_t at = 0; at < rows; ++at) {
        double score = 0;
        for (std::size_t i = 0; i < dim; ++i) {
          score +=
              double{q[row * width_q + head * dim + i]} * double{k[at * width_kv + kv * dim + i]};
        }
        sum += weight[at] = std::exp(score);
      }
      for (std::size_t i = 0; i < dim; ++i) {
        double out = 0;
        for (std::size_t at = 0; at < rows; ++at) {
          out += weight[at] / sum * double{v[at * width_kv + kv * dim + i]};
        }
        y[row * width_q + head * dim + i] = static_cast<float>(out);
      }
    }
    for (const std::uint32_t lane : queries) {
      expected_.push_back(lane == kPadding ? 0 : y[row * width_q + lane]);
    }
  }
  AttentionOp attention;
  attention.qkv = shared ? kTurned : kInput;
  attention.to = kResult;
  attention.causal = false;
  graph_.kinds[0].operators.emplace_back(attention);
}

}  // namespace plena::bench
