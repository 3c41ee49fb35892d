// The operator graph: what a model computes for one token, over named vectors. It knows widths and
// tensors, but neither tiles nor memory; layers that compute alike share one list of operators.
//
// Nothing here names a family: operators follow from the model's description.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plena/base/error.h"
#include "plena/compiler/hadamard.h"
#include "plena/compiler/tiling.h"
#include "plena/model/model.h"

namespace plena {

/// How the elements of a vector lie in lanes.
enum class Layout : std::uint8_t {
  Dense,    // one after the other
  Queries,  // heads in the slots of query rows, as RoPE turns them
  Outputs,  // heads in the slots of query rows
  Keys,     // heads in the slots of key rows, as RoPE turns them
  Values,   // heads in the slots of key rows
  Qkv,      // query rows, key rows, value rows
  Head,     // one head, repeated in every slot
  Gated,    // gate and up, a tile of each in turn; width is that of one
};

struct Value {
  std::string name;
  Layout layout = Layout::Dense;
  std::uint32_t width = 0;  // elements; of Dense vectors

  friend bool operator==(const Value&, const Value&) = default;
};
using ValueId = std::size_t;  // in Graph::values

/// A vector of numbers that belongs to a layer (a bias, a norm's gain): its place among them.
using VectorId = std::size_t;  // in LayerKind::vectors

enum class MatrixRole : std::uint8_t {
  Query,
  Key,
  Value,
  AttentionOutput,
  Gate,
  Up,
  Down,
  Router,
  Logits,
};
std::string_view matrix_role_name(MatrixRole role);

/// A matrix as the compiler reads it: y = factor * (W - centre) (input_gain x), for x and y that
/// are turned or not.
struct Matrix {
  Tensor weight;                                         // [rows, columns]
  std::shared_ptr<const std::vector<float>> input_gain;  // [columns]; null: 1
  float factor = 1.0F;
  std::vector<float> centre;  // [columns], subtracted from every row; empty: 0
  Hadamard input_turn;        // of x, behind the gain
  Hadamard output_turn;       // of y; its blocks divide the rows of an output tile
};

struct MatrixUse {
  MatrixRole role = MatrixRole::Query;
  Layout outputs = Layout::Dense;
  std::uint32_t width = 0;  // of Dense outputs

  friend bool operator==(const MatrixUse&, const MatrixUse&) = default;
};

struct ActivationShape {
  Activation kind = Activation::Silu;
  float limit = 0;  // of ClampedSwiglu
  float alpha = 0;  // of ClampedSwiglu

  friend bool operator==(const ActivationShape&, const ActivationShape&) = default;
};

/// to = from / sqrt(sum of squares + epsilon) [* gain]; with `add`, added to `to`. Where `gain` is
/// absent it is part of the matrices that follow.
struct NormOp {
  ValueId from = 0;
  ValueId to = 0;
  float epsilon = 0;  // width times the model's
  std::optional<VectorId> gain;
  bool add = false;

  friend bool operator==(const NormOp&, const NormOp&) = default;
};

/// to = [W...] from [+ bias]; with `add`, added to `to`.
struct ProductOp {
  ValueId from = 0;
  ValueId to = 0;
  std::vector<MatrixUse> matrices;  // their outputs follow one another
  std::optional<VectorId> bias;
  bool add = false;

  friend bool operator==(const ProductOp&, const ProductOp&) = default;
};

enum class HeadPart : std::uint8_t { Queries, Keys };

/// RMSNorm of each head of the query or key rows, with a gain.
struct HeadNormOp {
  ValueId qkv = 0;
  HeadPart part = HeadPart::Queries;
  float epsilon = 0;  // head_dim times the model's
  VectorId gain = 0;

  friend bool operator==(const HeadNormOp&, const HeadNormOp&) = default;
};

/// Turns query and key rows by the position: table `table` of Graph::rotary.
struct RotateOp {
  ValueId qkv = 0;
  std::size_t table = 0;

  friend bool operator==(const RotateOp&, const RotateOp&) = default;
};

/// Key and value rows to the cache, then softmax(q K^T) V over the positions in sight.
struct AttentionOp {
  ValueId qkv = 0;
  ValueId to = 0;
  std::uint32_t window = 0;  // positions in sight, this one included; 0: all
  bool causal = true;        // positions behind this one are out of sight
  float score_cap = 0;       // cap * tanh(score / cap); 0: none
  bool sinks = false;        // one more logit a head in the softmax

  friend bool operator==(const AttentionOp&, const AttentionOp&) = default;
};

/// to = activation(gate) [* up], tile by tile. For a gated SiLU both matrices hold the negatives:
/// gate * sigmoid(gate) * up = g u / (1 + exp(g)) with g = -gate and u = -up.
struct FeedForwardOp {
  ValueId from = 0;
  ValueId to = 0;
  ActivationShape activation;
  bool gated = true;
  std::optional<VectorId> bias;  // in turn of a gate tile and an up tile where it is gated

  friend bool operator==(const FeedForwardOp&, const FeedForwardOp&) = default;
};

/// Picks experts by their logits, then for each: up(from), down; to = [to +] their weighted sum.
struct ExpertsOp {
  ValueId logits = 0;
  ValueId to = 0;
  bool add = true;
  std::uint32_t experts = 0;
  std::uint32_t chosen = 0;
  bool renormalise = true;  // weights of the chosen ones sum to 1
  FeedForwardOp up;
  ProductOp down;  // into a value of its own

  friend bool operator==(const ExpertsOp&, const ExpertsOp&) = default;
};

/// value = cap * tanh(value / cap), for a value that already is divided by cap / 2.
struct SoftCapOp {
  ValueId value = 0;
  float cap = 0;

  friend bool operator==(const SoftCapOp&, const SoftCapOp&) = default;
};

using Operator = std::variant<NormOp, ProductOp, HeadNormOp, RotateOp, AttentionOp, FeedForwardOp,
                              ExpertsOp, SoftCapOp>;

struct VectorShape {
  std::string name;
  Layout layout = Layout::Dense;
  std::uint32_t width = 0;

  friend bool operator==(const VectorShape&, const VectorShape&) = default;
};

/// Layers that compute alike.
struct LayerKind {
  std::vector<Operator> operators;
  std::vector<VectorShape> vectors;         // of the layer
  std::vector<VectorShape> expert_vectors;  // of each of its experts

  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

/// One layer: its kind and its tensors.
struct Layer {
  std::size_t kind = 0;                                         // in Graph::kinds
  std::map<MatrixRole, std::vector<Matrix>> matrices;           // one, or one an expert
  std::vector<std::vector<float>> vectors;                      // by VectorId
  std::vector<std::vector<std::vector<float>>> expert_vectors;  // [expert][VectorId]
  std::vector<float> sinks;                                     // [heads]; empty: none
};

/// Rows that tokens or positions look up.
struct Embedding {
  Tensor table;  // [rows, dim]
  float scale = 1;
  bool centred = false;  // every row less its mean
  Hadamard turn;         // of the residual stream

  /// Row `row` as the residual stream takes it.
  void read_row(std::uint64_t row, std::span<float> to) const;
};

struct Graph {
  std::string summary;  // one line for people
  // An operator on its own, not a language model: token i of a block is row i of the embedding, and
  // every one has its result. The embedding lies tile by tile, as a block's rows do.
  bool rows_in_order = false;
  std::uint32_t dim = 0;
  std::uint32_t vocab = 0;
  std::uint32_t context = 0;
  HeadShape heads;
  std::vector<std::uint32_t> head_order;  // element of a query or key head in each lane
  std::vector<Value> values;
  ValueId residual = 0;
  ValueId logits = 0;
  Embedding tokens;
  std::optional<Embedding> positions;  // learned; added to the token's
  std::vector<RotaryTable> rotary;
  std::vector<LayerKind> kinds;
  std::vector<Layer> layers;
  LayerKind ending;  // the last norm and the logits: a layer of its own
  Layer ending_tensors;
};

/// The graph as text: values, the operators of each kind of layer, and which layers are of it.
std::string describe(const Graph& graph);

}  // namespace plena
