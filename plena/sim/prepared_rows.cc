#include "plena/sim/prepared_rows.h"

#include <algorithm>

#include "plena/sim/prepared.h"

namespace plena {

namespace {
struct LanesScratch {};
}  // namespace

const void* ArrangedRows::at(std::uint64_t row, const PreparedProgram& program,
                             const Machine& machine) {
  const std::size_t lines = StreamedProduct::prepared_bytes(program.mlen) / sizeof(CacheLine);
  if (arranged_ == nullptr) arranged_ = std::make_unique_for_overwrite<CacheLine[]>(kMost * lines);
  std::uint16_t& newest = newest_[program.mlen_divisor.quotient(row) % newest_.size()];
  if (newest >= count_ || rows_[newest] != row) {
    newest = static_cast<std::uint16_t>(count_++);
    rows_[newest] = row;
    auto* lanes = static_cast<float*>(thread_scratch<LanesScratch>(program.mlen * sizeof(float)));
    program.vector->to_f32(machine.vram.data() + row * program.vector_bytes, lanes, program.mlen);
    program.streamed_weights.prepare(lanes, program.mlen, &arranged_[newest * lines]);
  }
  return &arranged_[newest * lines];
}

const void* PackedRows::at(std::uint64_t first, std::size_t rows, const PreparedProgram& program,
                           const Machine& machine) {
  const std::size_t lines =
      MatrixUnit::packed_bytes(program.mlen, program.mlen) / sizeof(CacheLine);
  if (packed_ == nullptr) packed_ = std::make_unique_for_overwrite<CacheLine[]>(kMost * lines);
  const Rows wanted{first, rows};
  for (std::size_t i = 0; i < count_; ++i) {
    if (rows_[i] == wanted) return &packed_[i * lines];
  }
  if (count_ == kMost) return nullptr;
  const std::uint64_t end = first + (rows - 1) * std::uint64_t{program.vlen} + program.mlen;
  begin_ = count_ == 0 ? first : std::min(begin_, first);
  end_ = std::max(end_, end);
  rows_[count_] = wanted;
  void* packed = &packed_[count_++ * lines];
  program.matrix_unit->pack_rows(machine.vram.data() + first * program.vector_bytes, program.vlen,
                                 rows, program.mlen, packed);
  return packed;
}

}  // namespace plena
