// Number formats as the settings name them (semantics 1 and 5): data, not arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plena/base/error.h"

namespace plena {

/// One element: a floating-point format (sign, exponent and mantissa bits) or a two's complement
/// integer of `width` bits.
struct ElementType {
  enum class Kind : std::uint8_t { Fp, Int };

  Kind kind = Kind::Fp;
  bool sign = true;
  std::uint8_t exponent = 8;
  std::uint8_t mantissa = 7;
  std::uint8_t int_width = 0;

  static constexpr ElementType fp(int exponent, int mantissa, bool sign = true) {
    return {Kind::Fp, sign, static_cast<std::uint8_t>(exponent),
            static_cast<std::uint8_t>(mantissa), 0};
  }
  static constexpr ElementType integer(int width) {
    return {Kind::Int, true, 0, 0, static_cast<std::uint8_t>(width)};
  }

  /// Bits one element occupies.
  [[nodiscard]] constexpr std::uint32_t width() const {
    return kind == Kind::Int ? int_width : (sign ? 1U : 0U) + exponent + mantissa;
  }

  friend constexpr bool operator==(const ElementType&, const ElementType&) = default;
};

inline constexpr ElementType kBf16 = ElementType::fp(8, 7);
inline constexpr ElementType kFp16 = ElementType::fp(5, 10);
inline constexpr ElementType kFp32 = ElementType::fp(8, 23);
inline constexpr ElementType kE4M3 = ElementType::fp(4, 3);
inline constexpr ElementType kE5M2 = ElementType::fp(5, 2);
inline constexpr ElementType kE3M2 = ElementType::fp(3, 2);
inline constexpr ElementType kE2M3 = ElementType::fp(2, 3);
inline constexpr ElementType kE2M1 = ElementType::fp(2, 1);

/// A plain type, or an MX type: blocks of `block` elements that share one E8M0 scale byte.
struct DataType {
  ElementType element = kBf16;
  std::uint32_t block = 0;  // 0: plain, no scale

  [[nodiscard]] constexpr bool is_mx() const { return block != 0; }
  [[nodiscard]] constexpr std::uint32_t width() const { return element.width(); }

  static constexpr DataType plain(ElementType element) { return {element, 0}; }
  static constexpr DataType mx(ElementType element, std::uint32_t block) {
    return {element, block};
  }

  /// `bf16`, `mxfp8_e4m3`, `mxint4:block32`, … (cli.md); block 8 unless named. Types without such a
  /// name are spelled out: `fp(1,6,9)` is sign, exponent and mantissa bits, `int(8)` a whole
  /// number, `mx(fp(1,4,3)):block16` either of them with scales. An unknown name is an error that
  /// suggests the near one.
  static Result<DataType> parse(std::string_view name);

  /// The shortest name that parse() turns back into this type.
  [[nodiscard]] std::string name() const;

  friend constexpr bool operator==(const DataType&, const DataType&) = default;
};

}  // namespace plena
