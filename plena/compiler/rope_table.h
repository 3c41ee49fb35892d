// Rotary embedding as table rows in HBM: for each position the cosines and sines of every lane.
//
// A narrow HBM type would spoil them, so each row is kept as a sum of rows that are each exact in
// that type: the quantised row, the quantised rest, and so on.
#pragma once

#include <cstdint>

#include "plena/base/error.h"
#include "plena/compiler/tiling.h"
#include "plena/compiler/weight_stream.h"

namespace plena {

struct RopeTable {
  std::uint32_t terms = 0;  // rows that add up to one row of cosines, or of sines
  QuantisedTensor tensor;   // [context][cosines, sines][terms][mlen]

  [[nodiscard]] std::uint32_t rows_per_position() const { return 2 * terms; }
};

/// Lanes 2i and 2i+1 of every head turn by position * theta^(-2i / head_dim). As many terms as it
/// takes to be as good as `sram`, the type of Vector SRAM, up to four; an error where `hbm` cannot
/// hold such values at all.
Result<RopeTable> make_rope_table(const LlamaConfig& config, const LlamaTiling& tiling,
                                  DataType hbm, ElementType sram);

}  // namespace plena
