// Transposed copies of tiles in Matrix SRAM that M_TMM goes through as a whole, again and again,
// and that the tile cache does not hold. Each is right until its tile is loaded anew.
#pragma once

#include <cstdint>
#include <vector>

#include "plena/numerics/matrix_kernels.h"

namespace plena {

class TurnedTiles {
 public:
  TurnedTiles(const MatrixKernels& kernels, std::size_t mlen, std::size_t element_bytes)
      : kernels_(kernels), mlen_(mlen), tile_bytes_(mlen * mlen * element_bytes) {}

  /// The transpose of the tile at a place of Matrix SRAM, which holds `tile`.
  const std::uint8_t* columns(std::uint64_t place, const std::uint8_t* tile) {
    if (place >= turned_.size()) turned_.resize(place + 1);
    Turned& turned = turned_[place];
    if (!turned.holds) {
      turned.columns.resize(tile_bytes_);
      kernels_.transpose(tile, turned.columns.data(), mlen_);
      turned.holds = true;
    }
    return turned.columns.data();
  }
  /// The tile is about to be written.
  void before_load(std::uint64_t place) {
    if (place < turned_.size()) turned_[place].holds = false;
  }

 private:
  struct Turned {
    std::vector<std::uint8_t> columns;
    bool holds = false;
  };

  const MatrixKernels& kernels_;
  std::size_t mlen_, tile_bytes_;
  std::vector<Turned> turned_;  // by place
};

}  // namespace plena
