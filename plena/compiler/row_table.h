// Tables of rows in HBM that a narrow type would spoil: cosines and sines, biases, gains. Each row
// is kept as a sum of rows that are exact in that type: the quantised row, the quantised rest, and
// so on, until it is as good as Vector SRAM's own type.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "plena/base/error.h"
#include "plena/compiler/memory_plan.h"
#include "plena/compiler/tensor_pieces.h"

namespace plena {

/// What a table holds: `fill` writes the rows [rows][mlen] of an entry into zeros, on any thread.
struct TableContents {
  std::string_view name;
  std::uint64_t entries = 0;
  std::uint32_t rows = 0;
  std::function<void(std::uint64_t entry, std::span<double> rows)> fill;
};

/// As many terms as it takes, up to four, to leave less than half a unit of `sram` in the last
/// place of an entry's largest value. An error where `hbm` cannot hold such values at all.
Result<TableShape> measure_table(const TableContents& contents, std::uint32_t mlen, DataType hbm,
                                 ElementType sram);

/// The table [entries][terms][rows][mlen] of that shape.
TensorPieces pack_table(TableContents contents, const TableShape& shape, std::uint32_t mlen,
                        DataType hbm);

}  // namespace plena
