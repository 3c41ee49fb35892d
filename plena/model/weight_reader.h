// The named tensors of a checkpoint, whatever file they come from, and the shapes a family asks of
// them. Like ConfigReader, it keeps the first error and goes on.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plena/base/error.h"
#include "plena/model/model.h"

namespace plena {

/// A tensor as a file describes it.
struct StoredTensor {
  std::string dtype;  // as the file calls it
  std::optional<StoredType>
      type;  // nothing: a dtype that is no weight of a model that is read here
  std::vector<std::uint64_t> shape;  // outermost first
  std::span<const std::uint8_t> bytes;
};

/// Tensors by name. Importers see to it that the bytes of each are as many as shape and type ask
/// for.
using TensorTable = std::unordered_map<std::string, StoredTensor>;

class WeightReader {
 public:
  /// Reads from `table`, which outlives this; `name` stands for the files in errors.
  WeightReader(const TensorTable& table, std::string name)
      : table_(&table), name_(std::move(name)) {}

  /// Makes weights up: matrices drawn so that activations keep their size, norms of 1.
  static WeightReader drawn(std::uint64_t seed) { return WeightReader(seed); }

  /// Whether a file holds the tensor; no where weights are made up.
  [[nodiscard]] bool has(const std::string& name) const;

  [[nodiscard]] bool makes_up() const { return table_ == nullptr; }

  /// A tensor of this shape as a matrix whose columns are the last dimension: [experts, out, in] is
  /// experts * out rows. A missing tensor or another shape is an error.
  Tensor tensor(const std::string& name, std::initializer_list<std::uint64_t> shape);
  /// A norm's weight, and bias where there is one.
  Norm norm(const std::string& prefix, std::uint64_t size);
  /// `prefix.weight` [out, in], and `prefix.bias` [out] where `with_bias`.
  Linear linear(const std::string& prefix, std::uint64_t out, std::uint64_t in,
                bool with_bias = false);
  /// MXFP4 `prefix_blocks` [experts, rows, columns / 32, 16] and `prefix_scales`.
  Tensor mxfp4(const std::string& prefix, std::uint64_t experts, std::uint64_t rows,
               std::uint64_t columns);

  [[nodiscard]] bool ok() const { return !error_; }
  [[nodiscard]] Status status() const;

 private:
  explicit WeightReader(std::uint64_t seed) : seed_(seed) {}
  const StoredTensor* find(const std::string& name, std::span<const std::uint64_t> shape);
  void reject(ErrorCode code, std::string message, std::string hint);

  const TensorTable* table_ = nullptr;  // null: made up
  std::string name_;
  std::uint64_t seed_ = 0;
  std::optional<Error> error_;
};

}  // namespace plena
