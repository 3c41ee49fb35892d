#include "plena/sim/column_sweeps.h"

#include <algorithm>
#include <cstring>

namespace plena {

namespace {

// One vector a row: most of what is left of an M_MM is this.
template <std::size_t kBlen>
void add_block(const float* from, std::size_t stride, float* accumulators) {
  using Row [[gnu::vector_size(kBlen * sizeof(float))]] = float;
  for (std::size_t row = 0; row < kBlen; ++row) {
    Row product, sum;
    std::memcpy(&product, from + row * stride, sizeof product);
    std::memcpy(&sum, accumulators + row * kBlen, sizeof sum);
    sum += product;
    std::memcpy(accumulators + row * kBlen, &sum, sizeof sum);
  }
}

}  // namespace

ColumnSweeps::Sweep& ColumnSweeps::at(const SweepKey& key, std::size_t block) {
  // Tiles of one product follow each other in Matrix SRAM.
  Sweep& sweep = sweeps_[(key.place * 2 + (key.transposed ? 1 : 0)) % kSweeps];
  if (sweep.length == 0 || sweep.next != block || !(sweep.key == key)) {
    sweep.to_the_end = sweep.length != 0 && sweep.next == blocks_ && block == 0;
    sweep.has_second = sweep.length >= 2;
    drop(sweep);
    sweep.key = key;
    sweep.length = 0;
  }
  ++sweep.length;
  sweep.next = block + 1;
  return sweep;
}

float* ColumnSweeps::begin_computing(Sweep& sweep, Blocks blocks) {
  const std::uint64_t rows = sweep.key.rows;
  lowest_ = computed_ == 0 ? rows : std::min(lowest_, rows);
  highest_ = computed_ == 0 ? rows + window_ : std::max(highest_, rows + window_);
  ++computed_;
  sweep.begin = blocks.begin;
  sweep.end = blocks.end;
  sweep.products.resize(minus_zeros_.size());
  float* products = sweep.products.data() + blocks.begin * blen_;
  if (blocks.end - blocks.begin == blocks_) {
    std::memcpy(products, minus_zeros_.data(), minus_zeros_.size() * sizeof(float));
  } else {
    const std::size_t row_bytes = (blocks.end - blocks.begin) * blen_ * sizeof(float);
    for (std::size_t row = 0; row < blen_; ++row)
      std::memcpy(products + row * mlen_, minus_zeros_.data(), row_bytes);
  }
  return products;
}

void ColumnSweeps::add(Sweep& sweep, std::size_t block, float* accumulators) {
  const float* from = sweep.products.data() + block * blen_;
  if (blen_ == 4) {
    add_block<4>(from, mlen_, accumulators);
  } else {
    for (std::size_t row = 0; row < blen_; ++row) {
      for (std::size_t column = 0; column < blen_; ++column)
        accumulators[row * blen_ + column] += from[row * mlen_ + column];
    }
  }
  if (block + 1 == sweep.end) drop(sweep);
}

void ColumnSweeps::drop(Sweep& sweep) {
  if (!sweep.computed()) return;
  sweep.begin = sweep.end = 0;
  if (--computed_ == 0) lowest_ = highest_ = 0;
}

void ColumnSweeps::drop_rows(std::uint64_t element, std::uint64_t count) {
  for (Sweep& sweep : sweeps_) {
    if (element < sweep.key.rows + window_ && element + count > sweep.key.rows) drop(sweep);
  }
}

void ColumnSweeps::before_load(std::uint64_t place) {
  if (computed_ == 0) return;
  for (Sweep& sweep : sweeps_) {
    if (sweep.key.place == place) drop(sweep);
  }
}

}  // namespace plena
