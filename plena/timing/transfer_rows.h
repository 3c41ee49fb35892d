// Which bytes of HBM an H-type instruction moves, row by row, and the bursts they are widened to
// (semantics 5.5; timing.md, rule 6).
#pragma once

#include <cstdint>

#include "plena/machine/machine.h"
#include "plena/sim/engine.h"

namespace plena {

inline constexpr std::uint64_t kBurstBytes = 32;

struct TransferRows {
  std::uint64_t base = 0;    // byte address
  std::uint64_t first = 0;   // element of row 0, counted from base (bytes under rs-hbm-bytes)
  std::uint64_t stride = 0;  // from row to row, in the same unit
  std::uint64_t scale = 0;   // SCALE_REG
  std::uint32_t count = 0;   // rows
  std::uint32_t length = 0;  // elements of a row
  std::uint32_t width = 0;   // bits of an element
  std::uint32_t block = 0;   // elements that share a scale byte; 0: none
  bool write = false;
  bool in_bytes = false;     // rs-hbm-bytes
  bool whole_codes = false;  // a store whose codes take whole bytes (rs-mx)

  [[nodiscard]] HbmRow row(std::uint32_t index) const;

  /// All rows as one: of elements and of scales, from the first byte to the last.
  [[nodiscard]] HbmRow extent() const;

  /// Bursts of every row where each has equally many and none is asked for twice in a row; else 0.
  [[nodiscard]] std::uint32_t uniform_bursts() const;
};

/// The rows of an H-type instruction, from the registers of a machine about to execute it or that
/// just did.
TransferRows transfer_rows(const Machine& machine, const Instruction& instruction);

/// The HBM type an H-type instruction moves.
const DataType& transfer_type(const Settings& settings, const Instruction& instruction);

/// Calls `burst(address, row)` for each burst of a transfer in order, `address` a multiple of 32:
/// rows in order, elements before scales, a burst just asked for not repeated. `row_done(row,
/// bytes)` follows the bursts of each row.
template <class Burst, class RowDone>
void for_each_burst(const TransferRows& rows, Burst&& burst, RowDone&& row_done) {
  std::uint64_t last = ~std::uint64_t{0};
  const auto widen = [&](std::uint64_t address, std::uint64_t bytes, std::uint32_t row) {
    if (bytes == 0) return;
    const std::uint64_t end = (address + bytes - 1) / kBurstBytes;
    for (std::uint64_t number = address / kBurstBytes; number <= end; ++number) {
      if (number != last) burst(number * kBurstBytes, row);
      last = number;
    }
  };
  for (std::uint32_t index = 0; index < rows.count; ++index) {
    const HbmRow row = rows.row(index);
    widen(row.element_address, row.element_bytes, index);
    widen(row.scale_address, row.scale_bytes, index);
    row_done(index, row);
  }
}

/// Bursts of all rows, as for_each_burst() counts them.
std::uint64_t bursts_of(const TransferRows& rows);

}  // namespace plena
