// NumPy's .npy files: tensors in and out. Little-endian, C order, plain number types only; no
// structured types, no pickled objects, no archives.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "plena/base/error.h"
#include "plena/base/files.h"

namespace plena {

/// `f4`, `u1`, … as NumPy's dtype strings without the byte order.
struct NpyType {
  enum class Kind : char { Float = 'f', Signed = 'i', Unsigned = 'u' };

  Kind kind = Kind::Float;
  std::uint8_t bytes = 4;  // 1, 2, 4 or 8; at least 2 for Float

  template <class T>
  static constexpr NpyType of() {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8);
    constexpr Kind kKind = std::is_floating_point_v<T> ? Kind::Float
                           : std::is_signed_v<T>       ? Kind::Signed
                                                       : Kind::Unsigned;
    return {kKind, sizeof(T)};
  }

  [[nodiscard]] std::string name() const;
  friend constexpr bool operator==(const NpyType&, const NpyType&) = default;
};

struct NpyArray {
  NpyType type;
  std::vector<std::uint64_t> shape;  // outermost first; empty: one scalar
  Bytes bytes;                       // elements, little-endian, the last index fastest

  [[nodiscard]] std::uint64_t size() const { return bytes.size() / type.bytes; }

  /// The elements as they are; T must be the type of the array.
  template <class T>
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> elements(size());
    if (type == NpyType::of<T>() && !bytes.empty()) {
      std::memcpy(elements.data(), bytes.data(), bytes.size());
    }
    return elements;
  }

  /// The elements of any type as f64: exact but for integers beyond 2^53, which are rounded.
  [[nodiscard]] std::vector<double> to_f64() const;
};

/// Reads versions 1 to 3 of the format. Anything else (a truncated file, bytes left over, Fortran
/// order, big-endian or non-numeric elements) is an error that names `path` and what is expected.
Result<NpyArray> read_npy(const std::string& path);

/// The same from memory; `name` stands for the file in errors.
Result<NpyArray> parse_npy(std::span<const std::uint8_t> file, std::string_view name);

/// What a version 1 file starts with; the elements follow it.
Bytes npy_header(NpyType type, std::span<const std::uint64_t> shape);

/// The bytes of a version 1 file. `elements` holds the product of `shape` elements.
Bytes npy_file(NpyType type, std::span<const std::uint64_t> shape,
               std::span<const std::uint8_t> elements);

/// Writes `elements` as an array of `shape`, whose product is their number.
template <class T>
Status write_npy(const std::string& path, std::span<const std::uint64_t> shape,
                 std::span<const T> elements) {
  return write_file(path, npy_file(NpyType::of<T>(), shape,
                                   {reinterpret_cast<const std::uint8_t*>(elements.data()),
                                    elements.size_bytes()}));
}

}  // namespace plena
