// A tensor of a model file: a matrix over mapped bytes that is decoded to f32 row by row, when
// somebody asks. Slices, transposes and the like are views, so that no weight is copied or read
// before it is wanted.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace plena {

/// How the elements of a tensor are stored.
enum class StoredType : std::uint8_t {
  F32,
  F16,
  BF16,
  // Blocks of 32 elements, as GGUF has them.
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Mxfp4Block,  // E8M0 scale, E2M1
  // Blocks of 256 elements, as GGUF has them.
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  Mxfp4,   // gpt-oss's blocks of 32: 16 bytes of E2M1, low nibble first; a scale byte a block, kept
           // apart
  Normal,  // in no file: drawn from a normal distribution, for models of which only the shape is
           // known
};

/// Name as people write it, `BF16`, `Q4_K`.
std::string_view name_of(StoredType type);

/// Elements a block holds; 1 for plain types.
std::uint32_t block_elements(StoredType type);

/// Bytes a block takes, without Mxfp4's scales; 0 for Normal.
std::uint32_t block_bytes(StoredType type);

/// A matrix [rows, columns], row-major to whoever reads it; a vector is one row. An object is a few
/// words that point into storage kept alive elsewhere (Model::storage); copies are cheap.
class Tensor {
 public:
  /// No tensor: 0 rows, 0 columns.
  Tensor() = default;

  /// A stored matrix. `bytes` holds rows * columns elements, the last index fastest; with blocks,
  /// `columns` is a multiple of block_elements(type).
  static Tensor stored(StoredType type, std::span<const std::uint8_t> bytes, std::uint64_t rows,
                       std::uint64_t columns);
  static Tensor f32(std::span<const float> elements, std::uint64_t rows, std::uint64_t columns);
  /// Mxfp4 blocks [rows, columns / 32, 16] and their scales [rows, columns / 32], 2^(byte - 127).
  static Tensor mxfp4(std::span<const std::uint8_t> blocks, std::span<const std::uint8_t> scales,
                      std::uint64_t rows, std::uint64_t columns);
  /// A matrix of normally distributed elements with mean 0. The same seed gives the same elements,
  /// in whatever order they are read.
  static Tensor normal(std::uint64_t seed, float deviation, std::uint64_t rows,
                       std::uint64_t columns);

  /// Whether there is a tensor at all.
  explicit operator bool() const { return rows_ != 0; }
  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  [[nodiscard]] std::uint64_t columns() const { return columns_; }
  [[nodiscard]] std::uint64_t size() const { return rows_ * columns_; }
  [[nodiscard]] StoredType type() const { return type_; }

  /// Rows first … first + count - 1.
  [[nodiscard]] Tensor slice_rows(std::uint64_t first, std::uint64_t count) const;
  /// Rows first, first + step, … (an interleaved pair of matrices is two of these, step 2).
  [[nodiscard]] Tensor every_row(std::uint64_t first, std::uint64_t step) const;
  [[nodiscard]] Tensor transposed() const;
  /// Every element plus `addend`, in f32.
  [[nodiscard]] Tensor plus(float addend) const;

  /// Decodes a row into `out`, which has `columns()` elements.
  void read_row(std::uint64_t row, std::span<float> out) const { read(row, 0, out); }

  /// Decodes `out.size()` elements of a row from `first_column` on.
  void read(std::uint64_t row, std::uint64_t first_column, std::span<float> out) const;

  /// Decodes rows first_row … into `out` [count, columns()], which says how many. Faster than row
  /// by row for a transposed tensor, whose rows are scattered over the file.
  void read_rows(std::uint64_t first_row, std::span<float> out) const;

  /// All elements, [rows, columns]. For vectors and tests.
  [[nodiscard]] std::vector<float> values() const;

 private:
  // Decodes storage elements first, first + stride, …
  void gather(std::uint64_t first, std::uint64_t stride, std::span<float> out) const;
  // Decodes consecutive storage elements from `first` on.
  void decode(std::uint64_t first, std::span<float> out) const;
  void decode_blocks(std::uint64_t first, std::span<float> out) const;

  StoredType type_ = StoredType::F32;
  float addend_ = 0;
  float deviation_ = 0;  // of Normal
  const std::uint8_t* bytes_ = nullptr;
  const std::uint8_t* scales_ = nullptr;  // of Mxfp4
  std::uint64_t seed_ = 0;                // of Normal
  std::uint64_t rows_ = 0;
  std::uint64_t columns_ = 0;
  // Element (row, column) is storage element origin + row * row_stride + column * column_stride.
  std::uint64_t origin_ = 0;
  std::uint64_t row_stride_ = 0;
  std::uint64_t column_stride_ = 1;
};

}  // namespace plena
