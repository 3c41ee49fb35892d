// Elements of the five memories as numbers: what loading, dumping and comparing share.
// Inside observe only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plena/base/files.h"
#include "plena/base/npy.h"
#include "plena/machine/machine.h"

namespace plena {

/// The floating-point format of a memory; nothing for INT_MEM and the bytes of HBM.
std::optional<ElementType> float_format(const Machine& machine, MemoryKind memory);

/// Elements in a row: VLEN of Vector SRAM, MLEN of Matrix SRAM, 0 where there are no rows.
std::uint64_t row_length(const Machine& machine, MemoryKind memory);

/// State-file bytes (little-endian, Machine::file_element_bytes each) as bit patterns.
std::vector<std::uint32_t> element_bits(std::span<const std::uint8_t> bytes,
                                        std::size_t element_bytes);

/// The number a bit pattern of a memory stands for: exact.
double element_number(std::optional<ElementType> format, std::uint32_t bits);

/// `1.5 (0x3FC0)`, `17 (0x00000011)`.
std::string element_text(const Machine& machine, MemoryKind memory, std::uint32_t bits);

/// Whether an array can stand for elements `first` … of a memory:
/// - FP memories take floats and integers, INT_MEM integers, HBM uint8;
/// - an array whose rows are as long as those of a tile SRAM starts on a row;
/// - all elements lie inside.
/// `name` stands for the array in errors.
Status check_array(const Machine& machine, MemoryKind memory, const NpyArray& array,
                   std::uint64_t first, const std::string& name);

/// Elements first … first+count-1 of an array as f64, so that a large one never exists twice.
std::vector<double> array_numbers(const NpyArray& array, std::uint64_t first, std::uint64_t count);

/// The bit pattern of a number in a memory of this format: one rounding, integers of up to 53 bits.
/// INT_MEM takes -2^31 (two's complement) to 2^32 - 1. Nothing for what the memory cannot hold.
std::optional<std::uint32_t> bits_of_number(std::optional<ElementType> format, NpyType from,
                                            double number);

/// Elements first … first+count-1 of `file` lie inside the memory, or an error that says by how
/// much they do not.
Status check_fits(const Machine& machine, MemoryKind memory, std::uint64_t first,
                  std::uint64_t count, const std::string& file);

/// A raw file of `bytes` bytes is whole elements.
Status check_whole(const Machine& machine, MemoryKind memory, std::uint64_t bytes,
                   const std::string& file);

/// The bytes of a raw file: mapped where that is possible, read from a pipe.
class RawFile {
 public:
  static Result<RawFile> open(const std::string& path);
  [[nodiscard]] std::span<const std::uint8_t> bytes() const {
    return mapped_ ? mapped_->bytes() : std::span<const std::uint8_t>(read_);
  }

 private:
  std::optional<MappedFile> mapped_;
  Bytes read_;
};

}  // namespace plena
