// Elements of HBM to rows of an SRAM format and back (semantics 5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plena/base/divisor.h"
#include "plena/config/data_type.h"
#include "plena/numerics/simd_kernels.h"
#include "plena/numerics/simd_target.h"

namespace plena {

/// Value of one element code without its scale, exact: semantics 5.1. `fixed_point`: integers carry
/// width-2 fraction bits, as inside an MX block; a plain Int is a whole number.
double element_value(ElementType element, std::uint32_t code, bool fixed_point);

/// Exponent of the largest finite element (mx.md).
int element_emax(ElementType element);

/// Elements of an MX type as bf16 bits, by code, and the scales that can be applied by adding to
/// the exponent field: those that keep every finite value a normal bf16.
struct BlockValueTable {
  std::vector<std::uint16_t> bits;  // empty where bf16 does not hold every value
  int least_exponent = 0;           // of a scale
  int most_exponent = -1;
};

/// Converts rows between one HBM type and one SRAM format. Built once, when a program is prepared;
/// holds whatever tables make it fast.
class HbmCodec {
 public:
  HbmCodec(DataType hbm, ElementType sram, SimdTarget target = simd_target());

  /// Decodes elements first … first+n-1 of a tensor. `elements` points at the byte that holds the
  /// first bit of element `first` (bit first*width of the element region, so the bit offset inside
  /// it is first*width % 8); `scales` points at the scale byte of element `first` (unused for a
  /// plain type). Writes n values of the SRAM format: the exact product, rounded once.
  void decode(const std::uint8_t* elements, const std::uint8_t* scales, std::uint64_t first,
              std::size_t n, void* out) const;

  /// Quantises a row of n SRAM values that starts on a block and on a whole byte and is whole
  /// blocks long (semantics 5.2). Writes n*width/8 element bytes and n/block scale bytes.
  void encode(const void* row, std::size_t n, std::uint8_t* elements, std::uint8_t* scales) const;

  [[nodiscard]] const DataType& hbm_type() const { return hbm_; }
  /// Elements that share a scale; one of a plain type.
  [[nodiscard]] const Divisor& block() const { return block_; }

 private:
  void decode_plain(const std::uint8_t* elements, std::uint32_t first_bit, std::size_t n,
                    void* out) const;
  // Elements `begin` … `end`-1 of a decode() call, the first of which is element `first_in_block`
  // of its block.
  void decode_blocks(const std::uint8_t* elements, const std::uint8_t* scales,
                     std::uint32_t first_bit, std::uint32_t first_in_block, std::size_t begin,
                     std::size_t end, void* out) const;
  // Codes that share a scale.
  void decode_codes(const std::uint32_t* codes, std::size_t n, std::uint8_t scale, std::size_t at,
                    void* out) const;
  void encode_plain(const void* row, std::size_t n, std::uint8_t* elements) const;
  // Encodes the block at row element `first`; returns its scale byte.
  std::uint8_t encode_block(const void* row, std::size_t first, std::uint8_t* elements) const;

  DataType hbm_;
  Divisor block_;
  ElementType sram_;
  int emax_;
  BlockDecoder decoder_;
  BlockEncoder encoder_;
  const VectorKernels* sram_lanes_;
  const VectorKernels* plain_lanes_ = nullptr;  // where a plain type is a format of its own
  std::vector<float> element_values_;           // by code, for elements of up to 16 bits
  BlockValueTable bf16_values_;                 // by code, for elements of up to 8 bits
};

}  // namespace plena
